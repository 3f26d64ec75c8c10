noinst_LIBRARIES += libwire.a
libwire_a_SOURCES = \
	wire/address.c \
	wire/bulk.c wire/bulk.h \
	wire/channel.c wire/channel.h \
	wire/connecting.c wire/connecting.h \
	wire/evaluation.c wire/evaluation.h wire/kinds.def \
	wire/failpoints.c wire/failpoints.h \
	wire/flush_index.c wire/flush_index.h \
	wire/frame.c wire/frame.h \
	wire/host.c wire/host.h \
	wire/host_parts.h wire/host_run.c \
	wire/inlet.c wire/inlet.h \
	wire/key.c wire/key.h \
	wire/links.c wire/links.h \
	wire/mapping.c wire/mapping.h \
	wire/message.c wire/message.h wire/messages.def \
	wire/options.c \
	wire/outbox.c wire/outbox.h \
	wire/outlet.c wire/outlet.h \
	wire/peer.c wire/peer.h \
	wire/place.h \
	wire/program.c wire/program.h \
	wire/segment.c wire/segment.h \
	wire/tenancy.c wire/tenancy.h \
	wire/tls.c wire/tls.h \
	wire/tls_socket.c wire/tls_socket.h \
	wire/validity.c
libwire_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(SSL_CFLAGS)
WIRE_LIBS = libwire.a $(DEVICE_LIBS) $(EVENT_LIBS) $(SSL_LIBS)

noinst_LIBRARIES += libwire.a
libwire_a_SOURCES = \
	wire/address.c wire/address.h \
	wire/bulk.c wire/bulk.h \
	wire/channel.c wire/channel.h \
	wire/compact.c wire/compact.h \
	wire/dial.c \
	wire/evaluation.c wire/evaluation.h \
	wire/frame.c wire/frame.h \
	wire/host.c wire/host.h \
	wire/host_options.c \
	wire/host_parts.h \
	wire/host_run.c \
	wire/key.c wire/key.h \
	wire/kinds.def \
	wire/listed.c wire/listed.h \
	wire/lookup.c wire/lookup.h \
	wire/message.c wire/message.h \
	wire/messages.def \
	wire/peer.c wire/peer.h \
	wire/program.c wire/program.h \
	wire/tls.c \
	wire/transfer.c wire/transfer.h \
	wire/validity.c \
	wire/wanted.c wire/wanted.h
libwire_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(SSL_CFLAGS)
WIRE_LIBS = libwire.a $(DEVICE_LIBS) $(EVENT_LIBS) $(SSL_LIBS)

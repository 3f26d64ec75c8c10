noinst_LIBRARIES += libwire.a
libwire_a_SOURCES = \
	wire/message.c wire/message.h wire/messages.def \
	wire/outbox.c wire/outbox.h \
	wire/program.c wire/program.h
libwire_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
WIRE_LIBS = libwire.a $(EVENT_LIBS)

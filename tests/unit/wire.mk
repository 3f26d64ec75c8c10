# unit tests of wire/: a file is a suite of the program wire_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/wire_tests
TESTS += tests/unit/wire_tests
tests_unit_wire_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_address.c tests/unit/test_channel.c tests/unit/test_compact.c tests/unit/test_connecting.c \
	tests/unit/test_evaluation.c tests/unit/test_flush_index.c tests/unit/test_frame.c \
	tests/unit/test_finer.c tests/unit/test_host.c tests/unit/test_key.c tests/unit/test_message.c tests/unit/test_peer.c \
	tests/unit/test_program.c tests/unit/test_validity.c \
	tests/unit/connect_fixture.h tests/unit/folder_fixture.h tests/unit/layout_fixture.h \
	tests/unit/peer_fixture.h \
	tests/unit/tls_fixture.h
tests_unit_wire_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(SSL_CFLAGS) $(CRYPTO_CFLAGS)
tests_unit_wire_tests_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_wire_tests_LDFLAGS = -Wl,--wrap=SSL_SESSION_new
endif

if HAVE_CMOCKA
wire_tests = tests/unit/test_message tests/unit/test_validity tests/unit/test_program tests/unit/test_peer \
	tests/unit/test_frame \
	tests/unit/test_host tests/unit/test_address tests/unit/test_connecting \
	tests/unit/test_evaluation tests/unit/test_flush_index tests/unit/test_key tests/unit/test_channel
check_PROGRAMS += $(wire_tests)
TESTS += $(wire_tests)
endif

tests_unit_test_message_SOURCES = tests/unit/test_message.c
tests_unit_test_message_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_validity_SOURCES = tests/unit/test_validity.c
tests_unit_test_validity_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_flush_index_SOURCES = tests/unit/test_flush_index.c
tests_unit_test_flush_index_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_program_SOURCES = tests/unit/test_program.c
tests_unit_test_program_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_peer_SOURCES = tests/unit/test_peer.c tests/unit/connect_fixture.h \
	tests/unit/peer_fixture.h
tests_unit_test_peer_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_frame_SOURCES = tests/unit/test_frame.c tests/unit/peer_fixture.h
tests_unit_test_frame_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_address_SOURCES = tests/unit/test_address.c tests/unit/connect_fixture.h
tests_unit_test_address_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_host_SOURCES = tests/unit/test_host.c tests/unit/connect_fixture.h
tests_unit_test_host_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_connecting_SOURCES = tests/unit/test_connecting.c tests/unit/connect_fixture.h
tests_unit_test_connecting_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_evaluation_SOURCES = tests/unit/test_evaluation.c
tests_unit_test_evaluation_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_key_SOURCES = tests/unit/test_key.c tests/unit/folder_fixture.h
tests_unit_test_key_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_channel_SOURCES = tests/unit/test_channel.c tests/unit/tls_fixture.h
tests_unit_test_channel_CFLAGS = $(AM_CFLAGS) $(SSL_CFLAGS) $(CRYPTO_CFLAGS)
tests_unit_test_channel_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_channel_LDFLAGS = -Wl,--wrap=SSL_SESSION_new

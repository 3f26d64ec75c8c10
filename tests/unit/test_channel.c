/* Channels with TLS: what they carry, and whom they refuse for which reason. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "tests/unit/tls_fixture.h"
#include "wire/channel.h"

/* ---- what is carried ---- */

static void fill(uint8_t *data, size_t length) {
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < length; i++)
        data[i] = (uint8_t)random_next(&random);
}

/* Sends all of it in three places a call, and receives it in two. */
static void carry(struct channel *from, struct channel *to, size_t length) {
    uint8_t *sent = memory_new(length, 1), *received = memory_new(length + 1, 1);
    size_t out = 0, in = 0;
    fill(sent, length);
    while (in < length) {
        size_t rest = length - out, first = rest < 64 ? rest : 64;
        size_t second = rest - first < 100 ? rest - first : 100, room = length - in;
        struct iovec places[] = {{sent + out, first},
                                 {sent + out + first, second},
                                 {sent + out + first + second, rest - first - second}};
        struct msghdr message = {.msg_iov = places, .msg_iovlen = 3};
        ssize_t got = rest ? channel_send(from, &message) : 0;
        assert_true(got >= 0 || errno == EAGAIN);
        out += got > 0 ? (size_t)got : 0;
        assert_int_equal(channel_flush(from), 0);
        struct iovec holes[] = {{received + in, room / 2 + 1},
                                {received + in + room / 2 + 1, room}};
        holes[1].iov_len = room - room / 2;
        message = (struct msghdr){.msg_iov = holes, .msg_iovlen = 2};
        got = channel_receive(to, &message);
        assert_true(got > 0 || (got < 0 && errno == EAGAIN));
        in += got > 0 ? (size_t)got : 0;
    }
    assert_memory_equal(sent, received, length);
    free(sent);
    free(received);
}

static void bytes_come_as_they_were_sent(void **state) {
    (void)state;
    struct tls_pair pair;
    tls_pair_init(&pair, &key_a, &key_a);
    assert_int_equal(tls_pair_shake(&pair), 1);
    assert_false(channel_is_local(pair.server));
    carry(pair.client, pair.server, 5000001);
    carry(pair.server, pair.client, 300);
    carry(pair.server, pair.client, 3000001);
    assert_int_equal(channel_unsent(pair.client), 0);
    assert_false(channel_pending(pair.client));
    tls_pair_release(&pair);
}

/* AES-GCM wears out: the keys change, and nobody notices. */
static void keys_change_on_the_way(void **state) {
    (void)state;
    uint64_t usual = tls_rekey_bytes;
    struct tls_pair pair;
    tls_rekey_bytes = 700000;
    tls_pair_init(&pair, &key_a, &key_a);
    assert_int_equal(tls_pair_shake(&pair), 1);
    carry(pair.client, pair.server, 5000001);
    assert_int_equal(channel_error(pair.server), FRAME_FINE);
    tls_pair_release(&pair);
    tls_rekey_bytes = usual;
}

/* What is in the clear must not be readable on the way. */
static void nothing_is_sent_in_clear(void **state) {
    (void)state;
    struct tls_pair pair;
    char seen[65536];
    static const char secret[] = "attack at dawn, attack at dawn";
    tls_pair_init(&pair, &key_a, &key_a);
    assert_int_equal(tls_pair_shake(&pair), 1);
    assert_int_equal(say(pair.client, secret, sizeof secret), sizeof secret);
    ssize_t length = recv(channel_descriptor(pair.server), seen, sizeof seen, MSG_DONTWAIT);
    assert_true(length > (ssize_t)sizeof secret);
    assert_null(memmem(seen, (size_t)length, "dawn", 4));
    tls_pair_release(&pair);
}

/* ---- keys ---- */

static void both_ends_know_that_the_keys_differ(void **state) {
    (void)state;
    struct tls_pair pair;
    tls_pair_init(&pair, &key_a, &key_b);
    assert_int_equal(tls_pair_shake(&pair), -1);
    assert_int_equal(channel_error(pair.server), FRAME_TLS_OTHER_KEY);
    assert_string_equal(channel_other_key(pair.server), key_b.name);
    assert_int_equal(channel_error(pair.client), FRAME_TLS_OTHER_KEY);
    tls_pair_release(&pair);
}

static void the_name_of_a_key_is_not_the_key(void **state) {
    (void)state;
    struct tls_pair pair;
    struct key liar = key_b;
    strcpy(liar.name, key_a.name);
    tls_pair_init(&pair, &key_a, &liar);
    assert_int_equal(tls_pair_shake(&pair), -1);
    assert_int_equal(channel_error(pair.server), FRAME_TLS_PROOF);
    assert_int_equal(channel_error(pair.client), FRAME_TLS_PROOF);
    tls_pair_release(&pair);
}

/* ---- programs that are not ours ---- */

/* What the server says of a client made by hand. */
static enum frame_error error_of_server(const struct foreign_options *options) {
    struct tls_pair pair;
    tls_pair_init(&pair, &key_a, NULL);
    struct foreign *foreign = foreign_new(pair.raw, options);
    for (int i = 0; i < 20; i++) {
        foreign_turn(foreign);
        (void)channel_handshake(pair.server);
    }
    (void)hear(pair.server);
    enum frame_error error = channel_error(pair.server);
    foreign_free(foreign);
    tls_pair_release(&pair);
    return error;
}

static void clients_with_another_identity_or_none_are_refused(void **state) {
    (void)state;
    assert_int_equal(error_of_server(&(struct foreign_options){
                         .client = true, .secret = key_a.secret, .identity = "somebody"}),
                     FRAME_TLS_NO_KEY);
    assert_int_equal(error_of_server(&(struct foreign_options){.client = true}), FRAME_TLS_NO_KEY);
}

static void older_versions_are_refused(void **state) {
    (void)state;
    assert_int_equal(
        error_of_server(&(struct foreign_options){.client = true, .version = TLS1_2_VERSION}),
        FRAME_TLS_VERSION);
}

static void early_data_is_not_taken(void **state) {
    (void)state;
    char identity[64];
    snprintf(identity, sizeof identity, "dml %s", key_a.name);
    struct foreign_options options = {.client = true, .secret = key_a.secret, .identity = identity};
    assert_int_equal(error_of_server(&options), FRAME_FINE);
    options.early = true;
    assert_int_equal(error_of_server(&options), FRAME_TLS_BROKEN);
}

/* ---- age ---- */

static time_t session_age; /* seconds that the session of a key is old when it is made */

SSL_SESSION *__real_SSL_SESSION_new(void);
SSL_SESSION *__wrap_SSL_SESSION_new(void);

/* The linker puts this in the place of OpenSSL's. */
SSL_SESSION *__wrap_SSL_SESSION_new(void) {
    SSL_SESSION *session = __real_SSL_SESSION_new();
    SSL_SESSION_set_time(session, time(NULL) - session_age);
    return session;
}

/* A worker or a coordinator may be connected to long after its start; and clocks are set, so that
 * a start can seem to lie far back, or in the future. */
static void a_key_serves_however_long_ago_it_was_read(void **state) {
    (void)state;
    static const time_t ages[] = {303, 305, 600, 86400, 20L * 365 * 86400, -86400};
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        struct tls_pair pair;
        session_age = ages[i];
        tls_pair_init(&pair, &key_a, &key_a);
        session_age = 0;
        if (tls_pair_shake(&pair) != 1)
            fail_msg("after %lld s: %s", (long long)ages[i],
                     frame_error_text(channel_error(pair.server)));
        assert_int_equal(say(pair.client, "hello", 5), 5);
        assert_int_equal(hear(pair.server), 5);
        tls_pair_release(&pair);
    }
}

/* A server that has the key, but is not one of ours. */
static enum frame_error error_of_client(const struct foreign_options *options) {
    struct tls_pair pair;
    tls_pair_init(&pair, NULL, &key_a);
    struct foreign *foreign = foreign_new(pair.raw, options);
    for (int i = 0; i < 20; i++) {
        (void)channel_handshake(pair.client);
        foreign_turn(foreign);
    }
    (void)hear(pair.client);
    enum frame_error error = channel_error(pair.client);
    foreign_free(foreign);
    tls_pair_release(&pair);
    return error;
}

static void a_server_is_believed_only_with_the_key(void **state) {
    (void)state;
    char identity[64];
    snprintf(identity, sizeof identity, "dml %s", key_a.name);
    assert_int_equal(
        error_of_client(&(struct foreign_options){.secret = key_a.secret, .identity = identity}),
        FRAME_FINE);
    assert_int_equal(error_of_client(&(struct foreign_options){.certificate = true}),
                     FRAME_TLS_NO_KEY);
    assert_int_equal(
        error_of_client(&(struct foreign_options){.certificate = true, .version = TLS1_2_VERSION}),
        FRAME_TLS_VERSION);
}

static void tickets_are_not_taken(void **state) {
    (void)state;
    char identity[64];
    snprintf(identity, sizeof identity, "dml %s", key_a.name);
    assert_int_equal(error_of_client(&(struct foreign_options){
                         .secret = key_a.secret, .identity = identity, .tickets = true}),
                     FRAME_TLS_FLOOD);
}

/* Each message comes with a change of keys. */
static void a_flood_of_key_updates_is_refused(void **state) {
    (void)state;
    uint64_t usual = tls_rekey_bytes;
    struct tls_pair pair;
    ssize_t got = 1;
    tls_rekey_bytes = 1;
    tls_pair_init(&pair, &key_a, &key_a);
    assert_int_equal(tls_pair_shake(&pair), 1);
    for (int i = 0; i < 30 && got > 0; i++) {
        say(pair.client, "x", 1);
        got = hear(pair.server);
    }
    assert_int_equal(got, -1);
    assert_int_equal(channel_error(pair.server), FRAME_TLS_FLOOD);
    tls_pair_release(&pair);
    tls_rekey_bytes = usual;
}

/* ---- what is not TLS ---- */

/* What the server says of these bytes, and what it answers. */
static enum frame_error told(const void *data, size_t length, bool closed, uint8_t answer[64]) {
    struct tls_pair pair;
    tls_pair_init(&pair, &key_a, NULL);
    assert_int_equal(send(pair.raw, data, length, MSG_NOSIGNAL), length);
    if (closed)
        shutdown(pair.raw, SHUT_WR);
    (void)hear(pair.server);
    enum frame_error error = channel_error(pair.server);
    memset(answer, 0, 64);
    (void)!recv(pair.raw, answer, 64, MSG_DONTWAIT);
    tls_pair_release(&pair);
    return error;
}

static void plain_text_and_garbage_are_no_tls(void **state) {
    (void)state;
    uint8_t answer[64], hello[FRAME_HEADER_BYTES];
    frame_header_encode(&(struct frame_header){.type = 1}, hello);
    assert_int_equal(told(hello, sizeof hello, false, answer), FRAME_TLS_GARBAGE);
    assert_int_equal(told("GET / HTTP/1.0\r\n\r\n", 18, false, answer), FRAME_TLS_GARBAGE);
    assert_int_equal(told("x", 1, true, answer), FRAME_TLS_GARBAGE);
    memset(answer, 0, sizeof answer);
    assert_int_equal(told(answer, 64, false, answer), FRAME_TLS_GARBAGE);
    static const uint8_t bad[] = {22, 3, 1, 0, 4, 1, 0, 0, 0};
    assert_int_equal(told(bad, sizeof bad, false, answer), FRAME_TLS_BROKEN);
}

/* OpenSSL would gather 128 KiB of a first message. */
static void a_handshake_that_is_too_long_is_refused(void **state) {
    (void)state;
    uint8_t record[5 + 16384] = {22, 3, 1, 0x40, 0}, answer[64];
    struct tls_pair pair;
    static const uint8_t begin[] = {1, 1, 0xff, 0xff, 3, 3};
    memcpy(record + 5, begin, sizeof begin);
    assert_int_equal(told(record, 1000, false, answer), FRAME_FINE); /* it waits for more */
    assert_int_equal(told(record, sizeof record, false, answer), FRAME_TLS_BROKEN);
    tls_pair_init(&pair, &key_a, &key_a); /* nothing of it holds for what comes later */
    assert_int_equal(tls_pair_shake(&pair), 1);
    carry(pair.client, pair.server, 100000);
    tls_pair_release(&pair);
}

/* ---- on the way ---- */

/* Hands bytes from one socket to another, and records them. */
static void relay(int from, int to, struct bytes *recording) {
    uint8_t data[65536];
    ssize_t length;
    while ((length = recv(from, data, sizeof data, MSG_DONTWAIT)) > 0) {
        bytes_append(recording, data, (size_t)length);
        assert_int_equal(send(to, data, (size_t)length, MSG_NOSIGNAL), length);
    }
}

/* The client of `left` and the server of `right` shake hands. */
static void shake_over_relay(struct tls_pair *left, struct tls_pair *right,
                             struct bytes *from_client, struct bytes *from_server) {
    tls_pair_init(left, NULL, &key_a);
    tls_pair_init(right, &key_a, NULL);
    for (int i = 0; i < 10; i++) {
        (void)channel_handshake(left->client);
        relay(left->raw, right->raw, from_client);
        (void)channel_handshake(right->server);
        relay(right->raw, left->raw, from_server);
    }
}

/* A conversation over a relay: the client says something and gets an answer. */
static void record(struct bytes *from_client, struct bytes *from_server) {
    struct tls_pair left, right;
    shake_over_relay(&left, &right, from_client, from_server);
    assert_int_equal(say(left.client, "pay him", 7), 7);
    relay(left.raw, right.raw, from_client);
    assert_int_equal(hear(right.server), 7);
    assert_int_equal(say(right.server, "paid", 4), 4);
    relay(right.raw, left.raw, from_server);
    assert_int_equal(hear(left.client), 4);
    tls_pair_release(&left);
    tls_pair_release(&right);
}

static void a_recording_of_one_link_is_refused_on_another(void **state) {
    (void)state;
    struct bytes from_client, from_server;
    struct tls_pair pair;
    bytes_init(&from_client);
    bytes_init(&from_server);
    record(&from_client, &from_server);
    tls_pair_init(&pair, &key_a, NULL);
    assert_int_equal(send(pair.raw, from_client.data, from_client.length, 0), from_client.length);
    assert_int_equal(hear(pair.server), -1);
    assert_int_equal(channel_error(pair.server), FRAME_TLS_RECORD);
    tls_pair_release(&pair);
    tls_pair_init(&pair, NULL, &key_a);
    assert_int_equal(channel_handshake(pair.client), 0);
    assert_int_equal(send(pair.raw, from_server.data, from_server.length, 0), from_server.length);
    assert_int_equal(hear(pair.client), -1);
    assert_true(channel_error(pair.client));
    tls_pair_release(&pair);
    bytes_release(&from_client);
    bytes_release(&from_server);
}

/* A record is taken away, sent twice or changed: what follows is refused. */
static void what_was_changed_on_the_way_is_refused(void **state) {
    (void)state;
    for (int change = 0; change < 3; change++) {
        struct tls_pair left, right;
        struct bytes sent;
        bytes_init(&sent);
        shake_over_relay(&left, &right, &sent, &sent);
        uint8_t record[256];
        assert_int_equal(say(left.client, "one", 3), 3);
        ssize_t length = recv(left.raw, record, sizeof record, MSG_DONTWAIT);
        assert_true(length > 3);
        if (change == 0)
            record[length - 1] ^= 1;
        if (change == 1)
            (void)!send(right.raw, record, (size_t)length, 0);
        if (change == 2) {
            assert_int_equal(say(left.client, "two", 3), 3);
            length = recv(left.raw, record, sizeof record, MSG_DONTWAIT);
        }
        (void)!send(right.raw, record, (size_t)length, 0);
        assert_int_equal(hear(right.server), change == 1 ? 3 : -1);
        assert_int_equal(hear(right.server), -1);
        assert_int_equal(channel_error(right.server), FRAME_TLS_RECORD);
        tls_pair_release(&left);
        tls_pair_release(&right);
        bytes_release(&sent);
    }
}

static void the_end_of_a_stream_is_no_failure(void **state) {
    (void)state;
    for (int rude = 0; rude < 2; rude++) {
        struct tls_pair pair;
        tls_pair_init(&pair, &key_a, &key_a);
        assert_int_equal(tls_pair_shake(&pair), 1);
        say(pair.client, "last", 4);
        if (rude)
            shutdown(channel_descriptor(pair.client), SHUT_RDWR);
        channel_free(pair.client);
        pair.client = NULL;
        assert_int_equal(hear(pair.server), 4);
        assert_int_equal(hear(pair.server), 0);
        assert_int_equal(hear(pair.server), 0);
        assert_int_equal(channel_error(pair.server), FRAME_FINE);
        tls_pair_release(&pair);
    }
}

static void a_handshake_waits_for_bytes_that_come_one_by_one(void **state) {
    (void)state;
    struct tls_pair left, right;
    tls_pair_init(&left, NULL, &key_a);
    tls_pair_init(&right, &key_a, NULL);
    uint8_t byte;
    int done = 0;
    while (done < 2) {
        done = 0;
        done += channel_handshake(left.client) == 1;
        while (recv(left.raw, &byte, 1, MSG_DONTWAIT) == 1) {
            assert_int_equal(send(right.raw, &byte, 1, 0), 1);
            assert_true(channel_handshake(right.server) >= 0);
        }
        done += channel_handshake(right.server) == 1;
        while (recv(right.raw, &byte, 1, MSG_DONTWAIT) == 1) {
            assert_int_equal(send(left.raw, &byte, 1, 0), 1);
            assert_true(channel_handshake(left.client) >= 0);
        }
    }
    tls_pair_release(&left);
    tls_pair_release(&right);
}

SUITE(channel) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_as_they_were_sent),
        cmocka_unit_test(keys_change_on_the_way),
        cmocka_unit_test(nothing_is_sent_in_clear),
        cmocka_unit_test(both_ends_know_that_the_keys_differ),
        cmocka_unit_test(the_name_of_a_key_is_not_the_key),
        cmocka_unit_test(clients_with_another_identity_or_none_are_refused),
        cmocka_unit_test(older_versions_are_refused),
        cmocka_unit_test(early_data_is_not_taken),
        cmocka_unit_test(a_key_serves_however_long_ago_it_was_read),
        cmocka_unit_test(a_server_is_believed_only_with_the_key),
        cmocka_unit_test(tickets_are_not_taken),
        cmocka_unit_test(a_flood_of_key_updates_is_refused),
        cmocka_unit_test(plain_text_and_garbage_are_no_tls),
        cmocka_unit_test(a_handshake_that_is_too_long_is_refused),
        cmocka_unit_test(a_recording_of_one_link_is_refused_on_another),
        cmocka_unit_test(what_was_changed_on_the_way_is_refused),
        cmocka_unit_test(the_end_of_a_stream_is_no_failure),
        cmocka_unit_test(a_handshake_waits_for_bytes_that_come_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

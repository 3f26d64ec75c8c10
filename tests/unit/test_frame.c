/* Frames that are damaged, cut short or from strangers: the peer is dropped with a counted reason.
 */
#define _GNU_SOURCE
#include "tests/unit/suites.h"
#include "tests/unit/peer_fixture.h"

#include <sys/mman.h>

#include "base/hash.h"
#include "wire/compact.h"
#include "wire/frame.h"

static void send_raw(struct pair *pair, struct frame_header header, const void *body, size_t length,
                     int descriptor) {
    uint8_t raw[FRAME_HEADER_BYTES + 256];
    header.body_hash ^= hash64(body, length);
    frame_header_encode(&header, raw);
    memcpy(raw + FRAME_HEADER_BYTES, body, length);
    struct iovec place = {raw, FRAME_HEADER_BYTES + length};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    assert_int_equal(sendmsg(pair->raw, &message, 0), (ssize_t)place.iov_len);
}

static void assert_refused(struct frame_header header, const void *body, size_t length,
                           int descriptor, enum frame_error error) {
    struct pair pair;
    pair_init(&pair, true);
    uint64_t before = frame_error_counts[error];
    send_raw(&pair, header, body, length, descriptor);
    turn(&pair);
    assert_null(pair.b.peer);
    assert_int_equal(pair.b.messages, 0);
    assert_int_equal(frame_error_counts[error], before + 1);
    if (error != FRAME_MALFORMED)
        assert_string_equal(pair.b.reason, frame_error_text(error));
    pair_release(&pair);
}

static void bad_headers_and_bodies_drop_the_peer_with_a_counted_reason(void **state) {
    (void)state;
    const uint8_t eight[8] = {1, 0, 0, 0, 1}, nine[9] = {1, 0, 0, 0, 1};
    const struct frame_header good = {.type = MESSAGE_WANT, .body_length = 8};
    struct frame_header bad = good;
    bad.type = 22;
    assert_refused(bad, eight, 8, -1, FRAME_BAD_TYPE);
    bad = good;
    bad.flags = 64;
    assert_refused(bad, eight, 8, -1, FRAME_BAD_FLAGS);
    bad = good;
    bad.flags = FRAME_SHARED;
    assert_refused(bad, eight, 8, -1, FRAME_BAD_FLAGS);
    bad = good;
    bad.body_length = 65;
    assert_refused(bad, eight, 8, -1, FRAME_BODY_TOO_LONG);
    bad = good;
    bad.bulk_length = 8;
    assert_refused(bad, eight, 8, -1, FRAME_BULK_TOO_LONG);
    bad = good;
    bad.body_hash = 1;
    assert_refused(bad, eight, 8, -1, FRAME_BAD_BODY);
    bad = good;
    bad.body_length = 9;
    assert_refused(bad, nine, 9, -1, FRAME_MALFORMED);
}

static void a_message_that_cannot_be_drops_the_peer(void **state) {
    (void)state;
    const uint8_t no_attempt[8] = {0, 0, 0, 0, 1};
    const struct frame_header header = {.type = MESSAGE_WANT, .body_length = 8};
    assert_refused(header, no_attempt, 8, -1, FRAME_MALFORMED);
}

static void bulk_with_a_bad_checksum_drops_the_peer(void **state) {
    (void)state;
    const struct frame_header header = {
        .type = MESSAGE_EXPONENTS, .body_length = 20, .bulk_length = 8};
    uint8_t body[20] = {0}, bulk[8] = {1};
    struct pair pair;
    pair_init(&pair, true);
    send_raw(&pair, header, body, sizeof body, -1);
    assert_int_equal(send(pair.raw, bulk, sizeof bulk, 0), sizeof bulk);
    turn(&pair);
    assert_string_equal(pair.b.reason, frame_error_text(FRAME_BAD_BULK));
    pair_release(&pair);
}

/* Bulk of 512 zeros is packed into 77 bytes. */
static void assert_packed_is_refused(struct frame_header header, uint8_t first,
                                     enum frame_error error) {
    const uint8_t body[20] = {1, 0, 0, 0, [13] = 1}; /* attempt 1, 256 exponents */
    uint8_t packed[COMPACT_HEADER_BYTES + COMPACT_WORDS] = {0};
    struct pair pair;
    pair_init(&pair, true);
    memset(packed, 0xff, 8);
    packed[0] = first;
    header.bulk_place = hash64(packed, sizeof packed);
    send_raw(&pair, header, body, sizeof body, -1);
    assert_int_equal(send(pair.raw, packed, sizeof packed, 0), sizeof packed);
    turn(&pair);
    assert_string_equal(pair.b.reason, error ? frame_error_text(error) : "");
    assert_int_equal(pair.b.bulk_length, error ? 0 : 512);
    pair_release(&pair);
}

static void packed_bulk_that_is_not_what_it_says_drops_the_peer(void **state) {
    (void)state;
    const struct frame_header good = {.type = MESSAGE_EXPONENTS,
                                      .flags = FRAME_PACKED,
                                      .body_length = 20,
                                      .bulk_length = 512,
                                      .packed_length = COMPACT_HEADER_BYTES + COMPACT_WORDS};
    struct frame_header bad = good;
    assert_packed_is_refused(good, 0xff, FRAME_FINE);
    assert_packed_is_refused(good, 0xfe, FRAME_BAD_PACKED);
    bad.bulk_length = good.packed_length; /* no shorter */
    assert_packed_is_refused(bad, 0xff, FRAME_BAD_PACKED);
    bad.bulk_length = UINT64_C(1) << 30; /* for so few bytes */
    assert_packed_is_refused(bad, 0xff, FRAME_BAD_PACKED);
    bad = good;
    bad.packed_length = 0;
    assert_packed_is_refused(bad, 0xff, FRAME_BAD_FLAGS);
    bad = good;
    bad.flags = 0;
    bad.segment = 77;
    assert_packed_is_refused(bad, 0xff, FRAME_BAD_FLAGS);
    bad = good;
    bad.flags |= FRAME_SHARED;
    assert_packed_is_refused(bad, 0xff, FRAME_BAD_FLAGS);
}

static void damage_anywhere_in_a_header_is_noticed(void **state) {
    (void)state;
    const struct frame_header header = {.type = MESSAGE_WANT, .body_length = 8};
    uint8_t raw[FRAME_HEADER_BYTES];
    struct frame_header back;
    frame_header_encode(&header, raw);
    assert_int_equal(frame_header_decode(raw, &back), FRAME_FINE);
    for (size_t i = 0; i < FRAME_HEADER_BYTES; i++) {
        raw[i] ^= 4;
        assert_int_not_equal(frame_header_decode(raw, &back), FRAME_FINE);
        raw[i] ^= 4;
    }
}

static void an_end_within_a_frame_is_told_from_an_end_between_frames(void **state) {
    (void)state;
    for (unsigned cut = 0; cut < 2; cut++) {
        struct pair pair;
        pair_init(&pair, true);
        const uint8_t eight[8] = {1, 0, 0, 0, 1}; /* attempt 1, evaluation 1 */
        const struct frame_header header = {.type = MESSAGE_WANT, .body_length = 8};
        send_raw(&pair, header, eight, 8, -1);
        if (cut)
            assert_int_equal(send(pair.raw, "DML1", 4, 0), 4);
        close(pair.raw);
        pair.raw = -1;
        turn(&pair);
        assert_int_equal(pair.b.messages, 1);
        assert_string_equal(pair.b.reason,
                            cut ? frame_error_text(FRAME_CUT_SHORT) : "closed by the other end");
        pair_release(&pair);
    }
}

static void a_frame_that_does_not_go_on_drops_the_peer(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, true);
    uint64_t before = frame_error_counts[FRAME_SLOW];
    peer_set_patience(pair.b.peer, 10);
    const uint8_t eight[8] = {1, 0, 0, 0, 1}; /* attempt 1, evaluation 1 */
    const struct frame_header header = {.type = MESSAGE_WANT, .body_length = 8};
    send_raw(&pair, header, eight, 8, -1);
    assert_int_equal(send(pair.raw, "DML1", 4, 0), 4);
    while (!*pair.b.reason)
        event_base_loop(pair.base, EVLOOP_ONCE);
    assert_int_equal(pair.b.messages, 1);
    assert_string_equal(pair.b.reason, frame_error_text(FRAME_SLOW));
    assert_int_equal(frame_error_counts[FRAME_SLOW], before + 1);
    pair_release(&pair);
}

static void silence_between_frames_drops_nobody(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, true);
    peer_set_patience(pair.b.peer, 1);
    const uint8_t eight[8] = {1, 0, 0, 0, 1}; /* attempt 1, evaluation 1 */
    const struct frame_header header = {.type = MESSAGE_WANT, .body_length = 8};
    uint8_t raw[FRAME_HEADER_BYTES];
    struct frame_header hashed = header;
    hashed.body_hash = hash64(eight, 8);
    frame_header_encode(&hashed, raw);
    assert_int_equal(send(pair.raw, raw, 10, 0), 10); /* begins to wait, */
    event_base_loop(pair.base, EVLOOP_ONCE);
    assert_int_equal(send(pair.raw, raw + 10, sizeof raw - 10, 0), sizeof raw - 10);
    assert_int_equal(send(pair.raw, eight, 8, 0), 8);
    event_base_loop(pair.base, EVLOOP_ONCE); /* has all, */
    usleep(5000);
    turn(&pair); /* and waits no longer */
    assert_int_equal(pair.b.messages, 1);
    assert_string_equal(pair.b.reason, "");
    pair_release(&pair);
}

static void a_stranger_may_say_hello_greet_and_ping_only(void **state) {
    (void)state;
    for (unsigned trusted = 0; trusted < 2; trusted++) {
        int ends[2];
        struct pair pair = {.base = event_base_new(), .raw = -1};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        pair.a.peer = peer_new(pair.base, channel_new(ends[0]), &callbacks, &pair.a);
        pair.b.peer = peer_new_stranger(pair.base, channel_new(ends[1]), &callbacks, &pair.b);
        peer_send(pair.a.peer,
                  &(struct message){.type = MESSAGE_HELLO,
                                    .hello = {.run = "run", .role = ROLE_SHARD, .incarnation = 1}});
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_PING});
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_GREET,
                                                 .greet = {.run = "run", .incarnation = 1}});
        turn(&pair);
        assert_int_equal(pair.b.messages, 3);
        if (trusted)
            peer_trust(pair.b.peer);
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_READY, .ready = {.attempt = 1}});
        turn(&pair);
        assert_int_equal(pair.b.messages, trusted ? 4 : 3);
        assert_string_equal(pair.b.reason, trusted ? "" : frame_error_text(FRAME_STRANGER));
        pair_release(&pair);
    }
}

static void segments_that_can_shrink_or_are_too_short_drop_the_peer(void **state) {
    (void)state;
    struct frame_header header = {.type = MESSAGE_EXPONENTS,
                                  .flags = FRAME_SHARED | FRAME_DESCRIPTOR,
                                  .body_length = 20,
                                  .bulk_length = 64,
                                  .segment = 5};
    uint8_t body[20] = {0};
    int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(loose, 4096), 0);
    assert_refused(header, body, sizeof body, loose, FRAME_BAD_SEGMENT);
    close(loose);
    struct segment *segment = segment_new(4096);
    header.bulk_place = 4096 - 32;
    assert_refused(header, body, sizeof body, segment->descriptor, FRAME_BAD_SEGMENT);
    header.bulk_place = 4096 - 64 + 8;
    header.bulk_length = 8;
    assert_refused(header, body, sizeof body, segment->descriptor, FRAME_BAD_SEGMENT);
    header.bulk_place = 0;
    assert_refused(header, body, sizeof body, -1, FRAME_BAD_DESCRIPTOR);
    header.flags = FRAME_SHARED;
    assert_refused(header, body, sizeof body, -1, FRAME_BAD_SEGMENT);
    segment_free(segment);
}

SUITE(frame) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_headers_and_bodies_drop_the_peer_with_a_counted_reason),
        cmocka_unit_test(a_message_that_cannot_be_drops_the_peer),
        cmocka_unit_test(bulk_with_a_bad_checksum_drops_the_peer),
        cmocka_unit_test(packed_bulk_that_is_not_what_it_says_drops_the_peer),
        cmocka_unit_test(damage_anywhere_in_a_header_is_noticed),
        cmocka_unit_test(an_end_within_a_frame_is_told_from_an_end_between_frames),
        cmocka_unit_test(a_frame_that_does_not_go_on_drops_the_peer),
        cmocka_unit_test(silence_between_frames_drops_nobody),
        cmocka_unit_test(a_stranger_may_say_hello_greet_and_ping_only),
        cmocka_unit_test(segments_that_can_shrink_or_are_too_short_drop_the_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "wire/frame.h"
#include "wire/peer.h"
#include "wire/segment.h"

/* One end of a connection, and what came over it. */
struct end {
    struct peer *peer;
    unsigned messages;
    enum message_type last;
    uint64_t epoch;
    double first_element;
    size_t bulk_length;
    const void *bulk_data;
    bool keep;
    struct kept_bulk kept;
    char reason[200];
    bool answer; /* a BYE to each message */
    bool leave;  /* frees the peer in the message call */
};

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct end *end = context;
    end->messages++;
    end->last = message->type;
    end->epoch = message->epoch;
    end->bulk_length = message->bulk.length;
    end->bulk_data = message->bulk.data;
    if (message->bulk.length)
        memcpy(&end->first_element, message->bulk.data, sizeof end->first_element);
    if (end->keep && message->bulk.length)
        bulk_keep(&message->bulk, &end->kept);
    if (end->answer)
        peer_send(peer, &(struct message){.type = MESSAGE_BYE});
    if (end->leave) {
        peer_free(peer);
        end->peer = NULL;
    }
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    (void)peer;
    struct end *end = context;
    snprintf(end->reason, sizeof end->reason, "%s", reason);
    end->peer = NULL;
}

static const struct peer_callbacks callbacks = {on_message, on_closed};

struct pair {
    struct event_base *base;
    struct end a, b;
    int raw; /* instead of a: an end without a peer */
};

static void pair_init(struct pair *pair, bool raw) {
    int ends[2];
    *pair = (struct pair){.base = event_base_new(), .raw = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    pair->b.peer = peer_new(pair->base, ends[1], &callbacks, &pair->b);
    if (raw)
        pair->raw = ends[0];
    else
        pair->a.peer = peer_new(pair->base, ends[0], &callbacks, &pair->a);
}

static void pair_release(struct pair *pair) {
    peer_free(pair->a.peer);
    peer_free(pair->b.peer);
    if (pair->raw >= 0)
        close(pair->raw);
    kept_bulk_release(&pair->b.kept);
    event_base_free(pair->base);
}

static void turn(struct pair *pair) {
    for (unsigned i = 0; i < 200; i++)
        event_base_loop(pair->base, EVLOOP_NONBLOCK);
}

static struct message slice(const void *data, size_t count, struct segment *segment) {
    return (struct message){.type = MESSAGE_SLICE,
                            .epoch = 3,
                            .slice = {.first = 0, .count = count},
                            .bulk = {.data = data, .length = count * 8, .segment = segment}};
}

static void many_small_messages_arrive_in_one_go(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    for (uint32_t i = 0; i < 500; i++)
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_READY, .epoch = 42, .ready = {i}});
    turn(&pair);
    assert_int_equal(pair.b.messages, 500);
    assert_int_equal(pair.b.epoch, 42);
    assert_int_equal(peer_queued(pair.a.peer), 0);
    assert_int_equal(peer_pid(pair.a.peer), getpid());
    pair_release(&pair);
}

static void copied_bulk_larger_than_the_socket_arrives_whole_and_aligned(void **state) {
    (void)state;
    enum { COUNT = 1 << 18 };
    struct pair pair;
    pair_init(&pair, false);
    double *data = memory_new(COUNT, sizeof *data);
    for (size_t i = 0; i < COUNT; i++)
        data[i] = (double)i + 0.5;
    pair.b.keep = true;
    struct message message = slice(data, COUNT, NULL);
    peer_send(pair.a.peer, &message);
    peer_send(pair.a.peer, &(struct message){.type = MESSAGE_BYE});
    assert_true(peer_queued(pair.a.peer) > 0);
    double *copy = memory_new(COUNT, sizeof *copy);
    memcpy(copy, data, COUNT * sizeof *data);
    memset(data, 0, COUNT * sizeof *data); /* the queue has a copy of its own */
    pair.b.keep = true;
    for (unsigned i = 0; i < 1000 && pair.b.messages < 1; i++)
        event_base_loop(pair.base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
    pair.b.keep = false;
    assert_int_equal(pair.b.kept.length, COUNT * 8);
    assert_int_equal((uintptr_t)pair.b.kept.data % 64, 0);
    assert_memory_equal(pair.b.kept.data, copy, COUNT * 8);
    turn(&pair);
    assert_int_equal(pair.b.last, MESSAGE_BYE);
    free(data);
    free(copy);
    pair_release(&pair);
}

static void bulk_in_a_segment_is_handed_over_in_place(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    struct segment *segment = segment_new(1 << 20);
    double *data = segment->start;
    data[8] = 1.5;
    pair.b.keep = true;
    struct message message = slice(data + 8, 100, segment);
    peer_send(pair.a.peer, &message);
    turn(&pair);
    pair.b.keep = false;
    assert_int_equal(pair.b.messages, 1);
    assert_true(pair.b.first_element == 1.5);
    assert_non_null(pair.b.kept.mapping);
    const void *place = pair.b.bulk_data;
    data[8] = 2.5; /* seen there, as it is the same memory */
    assert_true(*(const double *)pair.b.kept.data == 2.5);
    peer_send(pair.a.peer, &message);
    turn(&pair);
    assert_int_equal(pair.b.messages, 2);
    assert_ptr_equal(pair.b.bulk_data, place);
    segment_free(segment); /* what is kept stays, also without peers */
    peer_free(pair.b.peer);
    pair.b.peer = NULL;
    assert_true(*(const double *)pair.b.kept.data == 2.5);
    pair_release(&pair);
}

static void queued_segments_arrive_in_order_behind_a_full_socket(void **state) {
    (void)state;
    enum { SEGMENTS = 40 };
    struct pair pair;
    pair_init(&pair, false);
    double *filler = memory_new(1 << 17, sizeof *filler);
    struct message message = slice(filler, 1 << 17, NULL);
    peer_send(pair.a.peer, &message);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        struct segment *segment = segment_new(4096);
        *(double *)segment->start = i;
        message = slice(segment->start, 512, segment);
        peer_send(pair.a.peer, &message);
        segment_free(segment); /* the queue has the descriptor */
    }
    turn(&pair);
    assert_string_equal(pair.b.reason, "");
    assert_int_equal(pair.b.messages, SEGMENTS + 1);
    assert_true(pair.b.first_element == SEGMENTS - 1);
    free(filler);
    pair_release(&pair);
}

static void segments_beyond_the_places_of_a_connection_are_sent_again(void **state) {
    (void)state;
    enum { SEGMENTS = 300 };
    struct pair pair;
    struct segment *segments[SEGMENTS];
    pair_init(&pair, false);
    for (unsigned i = 0; i < SEGMENTS; i++)
        segments[i] = segment_new(4096);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < SEGMENTS; i++) {
            *(double *)segments[i]->start = i + 1000 * round;
            struct message message = slice(segments[i]->start, 512, segments[i]);
            peer_send(pair.a.peer, &message);
            event_base_loop(pair.base, EVLOOP_NONBLOCK);
            assert_true(pair.b.first_element == i + 1000 * round);
        }
    for (unsigned i = 0; i < SEGMENTS; i++)
        segment_free(segments[i]);
    pair_release(&pair);
}

static void an_unaligned_place_in_a_segment_is_copied(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    struct segment *segment = segment_new(4096);
    ((double *)segment->start)[3] = 9;
    pair.b.keep = true;
    struct message message = slice((double *)segment->start + 3, 10, segment);
    peer_send(pair.a.peer, &message);
    turn(&pair);
    assert_true(pair.b.first_element == 9);
    assert_null(pair.b.kept.mapping);
    assert_int_equal((uintptr_t)pair.b.kept.data % 64, 0);
    segment_free(segment);
    pair_release(&pair);
}

static void over_tcp_bulk_in_a_segment_is_copied(void **state) {
    (void)state;
    struct pair pair = {.base = event_base_new(), .raw = -1};
    struct segment *segment = segment_new(1 << 20);
    int listener, one, other;
    char *bound;
    assert_int_equal(address_listen("127.0.0.1:0", false, &listener, &bound), 0);
    assert_int_equal(address_connect(bound, 1000, &one), 0);
    other = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    pair.a.peer = peer_new(pair.base, one, &callbacks, &pair.a);
    pair.b.peer = peer_new(pair.base, other, &callbacks, &pair.b);
    pair.b.keep = true;
    ((double *)segment->start)[0] = 4.5;
    struct message message = slice(segment->start, 1 << 17, segment);
    peer_send(pair.a.peer, &message);
    for (unsigned i = 0; i < 1000 && !pair.b.messages; i++)
        event_base_loop(pair.base, EVLOOP_ONCE);
    assert_true(pair.b.first_element == 4.5);
    assert_int_equal(pair.b.kept.length, 1 << 20);
    assert_null(pair.b.kept.mapping);
    assert_int_equal(peer_pid(pair.b.peer), 0);
    segment_free(segment);
    close(listener);
    free(bound);
    pair_release(&pair);
}

static int option_of(int descriptor, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    assert_int_equal(getsockopt(descriptor, level, name, &value, &length), 0);
    return value;
}

static void the_system_is_told_to_end_a_tcp_connection_that_is_silent_for_2_s(void **state) {
    (void)state;
    struct pair pair = {.base = event_base_new(), .raw = -1};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    pair.a.peer = peer_new(pair.base, descriptor, &callbacks, &pair.a);
    assert_int_equal(option_of(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT), 2000);
    assert_int_equal(option_of(descriptor, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option_of(descriptor, IPPROTO_TCP, TCP_KEEPIDLE), 1);
    assert_int_equal(option_of(descriptor, IPPROTO_TCP, TCP_KEEPINTVL), 1);
    pair_release(&pair);
}

static void a_peer_may_be_freed_and_may_answer_in_its_own_callback(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    pair.b.answer = pair.b.leave = true;
    peer_send(pair.a.peer, &(struct message){.type = MESSAGE_WANT});
    peer_send(pair.a.peer, &(struct message){.type = MESSAGE_WANT});
    turn(&pair);
    assert_int_equal(pair.b.messages, 1);
    assert_int_equal(pair.a.messages, 1);
    assert_string_not_equal(pair.a.reason, "");
    pair_release(&pair);
}

static void a_failure_to_send_is_told_by_the_loop_after_the_last_words(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    peer_send(pair.b.peer, &(struct message){.type = MESSAGE_REFUSED});
    peer_free(pair.b.peer);
    pair.b.peer = NULL;
    peer_send(pair.a.peer, &(struct message){.type = MESSAGE_WANT});
    assert_string_equal(pair.a.reason, "");
    turn(&pair);
    assert_int_equal(pair.a.last, MESSAGE_REFUSED);
    assert_string_not_equal(pair.a.reason, "");
    pair_release(&pair);
}

/* ---- bad frames ---- */

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
    const uint8_t four[4] = {0}, five[5] = {0};
    const struct frame_header good = {.type = MESSAGE_READY, .body_length = 4};
    struct frame_header bad = good;
    bad.type = 9;
    assert_refused(bad, four, 4, -1, FRAME_BAD_TYPE);
    bad = good;
    bad.flags = 64;
    assert_refused(bad, four, 4, -1, FRAME_BAD_FLAGS);
    bad = good;
    bad.flags = FRAME_SHARED;
    assert_refused(bad, four, 4, -1, FRAME_BAD_FLAGS);
    bad = good;
    bad.body_length = 65;
    assert_refused(bad, four, 4, -1, FRAME_BODY_TOO_LONG);
    bad = good;
    bad.bulk_length = 8;
    assert_refused(bad, four, 4, -1, FRAME_BULK_TOO_LONG);
    bad = good;
    bad.body_hash = 1;
    assert_refused(bad, four, 4, -1, FRAME_BAD_BODY);
    bad = good;
    bad.body_length = 5;
    assert_refused(bad, five, 5, -1, FRAME_MALFORMED);
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

static void damage_anywhere_in_a_header_is_noticed(void **state) {
    (void)state;
    const struct frame_header header = {.type = MESSAGE_READY, .body_length = 4};
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
        const uint8_t four[4] = {0};
        const struct frame_header header = {.type = MESSAGE_READY, .body_length = 4};
        send_raw(&pair, header, four, 4, -1);
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
    const uint8_t four[4] = {0};
    const struct frame_header header = {.type = MESSAGE_READY, .body_length = 4};
    send_raw(&pair, header, four, 4, -1);
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
    const uint8_t four[4] = {0};
    const struct frame_header header = {.type = MESSAGE_READY, .body_length = 4};
    uint8_t raw[FRAME_HEADER_BYTES];
    struct frame_header hashed = header;
    hashed.body_hash = hash64(four, 4);
    frame_header_encode(&hashed, raw);
    assert_int_equal(send(pair.raw, raw, 10, 0), 10); /* begins to wait, */
    event_base_loop(pair.base, EVLOOP_ONCE);
    assert_int_equal(send(pair.raw, raw + 10, sizeof raw - 10, 0), sizeof raw - 10);
    assert_int_equal(send(pair.raw, four, 4, 0), 4);
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
        pair.a.peer = peer_new(pair.base, ends[0], &callbacks, &pair.a);
        pair.b.peer = peer_new_stranger(pair.base, ends[1], &callbacks, &pair.b);
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_HELLO});
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_PING});
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_GREET});
        turn(&pair);
        assert_int_equal(pair.b.messages, 3);
        if (trusted)
            peer_trust(pair.b.peer);
        peer_send(pair.a.peer, &(struct message){.type = MESSAGE_READY});
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_small_messages_arrive_in_one_go),
        cmocka_unit_test(copied_bulk_larger_than_the_socket_arrives_whole_and_aligned),
        cmocka_unit_test(bulk_in_a_segment_is_handed_over_in_place),
        cmocka_unit_test(queued_segments_arrive_in_order_behind_a_full_socket),
        cmocka_unit_test(segments_beyond_the_places_of_a_connection_are_sent_again),
        cmocka_unit_test(an_unaligned_place_in_a_segment_is_copied),
        cmocka_unit_test(over_tcp_bulk_in_a_segment_is_copied),
        cmocka_unit_test(the_system_is_told_to_end_a_tcp_connection_that_is_silent_for_2_s),
        cmocka_unit_test(a_peer_may_be_freed_and_may_answer_in_its_own_callback),
        cmocka_unit_test(a_failure_to_send_is_told_by_the_loop_after_the_last_words),
        cmocka_unit_test(bad_headers_and_bodies_drop_the_peer_with_a_counted_reason),
        cmocka_unit_test(bulk_with_a_bad_checksum_drops_the_peer),
        cmocka_unit_test(damage_anywhere_in_a_header_is_noticed),
        cmocka_unit_test(an_end_within_a_frame_is_told_from_an_end_between_frames),
        cmocka_unit_test(a_frame_that_does_not_go_on_drops_the_peer),
        cmocka_unit_test(silence_between_frames_drops_nobody),
        cmocka_unit_test(a_stranger_may_say_hello_greet_and_ping_only),
        cmocka_unit_test(segments_that_can_shrink_or_are_too_short_drop_the_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Messages and their bulk over a connection. */
#define _GNU_SOURCE
#include "tests/unit/suites.h"
#include "tests/unit/connect_fixture.h"
#include "tests/unit/peer_fixture.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include "base/memory.h"

static struct message slice(const void *data, size_t count, struct segment *segment) {
    return (struct message){.type = MESSAGE_SLICE,
                            .term = 3,
                            .slice = {.first = 0, .count = count},
                            .bulk = {.data = data, .length = count * 8, .segment = segment}};
}

static void many_small_messages_arrive_in_one_go(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    for (uint32_t i = 0; i < 500; i++)
        peer_send(pair.a.peer, &(struct message){
                                   .type = MESSAGE_READY, .term = 42, .ready = {.attempt = i + 1}});
    turn(&pair);
    assert_int_equal(pair.b.messages, 500);
    assert_int_equal(pair.b.term, 42);
    assert_int_equal(peer_queued(pair.a.peer), 0);
    pair_release(&pair);
}

static void a_peer_that_is_held_again_sends_all_when_it_is_let_go(void **state) {
    (void)state;
    struct pair pair;
    pair_init(&pair, false);
    for (uint32_t i = 0; i < 40; i++) {
        peer_hold(pair.a.peer);
        peer_send(pair.a.peer, &(struct message){
                                   .type = MESSAGE_READY, .term = 42, .ready = {.attempt = i + 1}});
    }
    turn(&pair);
    assert_int_equal(pair.b.messages, 0);
    peer_let_go(pair.a.peer);
    peer_let_go(pair.a.peer);
    turn(&pair);
    assert_int_equal(pair.b.messages, 40);
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

static void over_tcp_bulk_in_a_segment_is_packed_into_fewer_bytes(void **state) {
    (void)state;
    struct pair pair = {.base = event_base_new(), .raw = -1};
    struct segment *segment = segment_new(1 << 20);
    int listener, other, one = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char *bound;
    assert_int_equal(address_listen("127.0.0.1:0", &listener, &bound), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(one, (struct sockaddr *)&address, length), 0);
    evutil_make_socket_nonblocking(one);
    other = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    pair.a.peer = peer_new(pair.base, channel_new(one), &callbacks, &pair.a);
    pair.b.peer = peer_new(pair.base, channel_new(other), &callbacks, &pair.b);
    pair.b.keep = true;
    ((double *)segment->start)[0] = 4.5;
    ((double *)segment->start)[(1 << 17) - 1] = -0.1;
    struct message message = slice(segment->start, 1 << 17, segment);
    peer_send(pair.a.peer, &message);
    int sent = 0;
    assert_int_equal(ioctl(other, FIONREAD, &sent), 0);
    assert_in_range(sent, 1, 1 << 18); /* nearly all are zeros */
    for (unsigned i = 0; i < 1000 && !pair.b.messages; i++)
        event_base_loop(pair.base, EVLOOP_ONCE);
    assert_true(pair.b.first_element == 4.5);
    assert_int_equal(pair.b.kept.length, 1 << 20);
    assert_memory_equal(pair.b.kept.data, segment->start, 1 << 20);
    assert_null(pair.b.kept.mapping);
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

static void the_system_is_told_to_end_a_tcp_connection_that_is_silent_for_5_s(void **state) {
    (void)state;
    struct pair pair = {.base = event_base_new(), .raw = -1};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    pair.a.peer = peer_new(pair.base, channel_new(descriptor), &callbacks, &pair.a);
    assert_int_equal(option_of(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT), 5000);
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
    peer_send(pair.a.peer, &(struct message){.type = MESSAGE_WANT, .want = {1, 1}});
    peer_send(pair.a.peer, &(struct message){.type = MESSAGE_WANT, .want = {1, 1}});
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
    peer_send(pair.a.peer, &(struct message){.type = MESSAGE_WANT, .want = {1, 1}});
    assert_string_equal(pair.a.reason, "");
    turn(&pair);
    assert_int_equal(pair.a.last, MESSAGE_REFUSED);
    assert_string_not_equal(pair.a.reason, "");
    pair_release(&pair);
}

SUITE(peer) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_small_messages_arrive_in_one_go),
        cmocka_unit_test(a_peer_that_is_held_again_sends_all_when_it_is_let_go),
        cmocka_unit_test(copied_bulk_larger_than_the_socket_arrives_whole_and_aligned),
        cmocka_unit_test(bulk_in_a_segment_is_handed_over_in_place),
        cmocka_unit_test(queued_segments_arrive_in_order_behind_a_full_socket),
        cmocka_unit_test(segments_beyond_the_places_of_a_connection_are_sent_again),
        cmocka_unit_test(an_unaligned_place_in_a_segment_is_copied),
        cmocka_unit_test(over_tcp_bulk_in_a_segment_is_packed_into_fewer_bytes),
        cmocka_unit_test(the_system_is_told_to_end_a_tcp_connection_that_is_silent_for_5_s),
        cmocka_unit_test(a_peer_may_be_freed_and_may_answer_in_its_own_callback),
        cmocka_unit_test(a_failure_to_send_is_told_by_the_loop_after_the_last_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

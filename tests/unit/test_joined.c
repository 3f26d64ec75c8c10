/* A vector of parts in shared memory, which are mapped one behind the other; others are copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "replica/joined.h"
#include "tests/unit/suites.h"

/* Doubles: the last part ends within a page. */
enum { PAGES = 3, REST = 10 };

/* Who received bulk in a segment, and gives the mapping away. */
struct receiver {
    struct bulk_holder holder;
    struct segment *segment;
    struct shared_mapping *mapping;
    size_t length;
};

static size_t page_doubles(void) {
    return (size_t)sysconf(_SC_PAGESIZE) / sizeof(double);
}

static void keep(struct bulk_holder *holder, struct kept_bulk *kept) {
    struct receiver *receiver = (struct receiver *)holder; /* its first member */
    *kept = (struct kept_bulk){.data = receiver->mapping->start,
                               .length = receiver->length,
                               .mapping = shared_mapping_keep(receiver->mapping)};
}

static void receive(struct receiver *receiver, size_t doubles, double value) {
    receiver->length = doubles * sizeof value;
    receiver->segment = segment_new(receiver->length);
    for (size_t i = 0; i < doubles; i++)
        ((double *)receiver->segment->start)[i] = value;
    receiver->mapping = shared_mapping_new(receiver->segment->descriptor, receiver->segment->id);
    receiver->holder.keep = keep;
    assert_non_null(receiver->mapping);
}

static void forget(struct receiver *receiver) {
    segment_free(receiver->segment);
    shared_mapping_release(receiver->mapping);
}

static void put(struct joined *joined, uint32_t number, size_t at, struct receiver *receiver) {
    joined_put(joined, number, at * sizeof(double),
               &(struct bulk){.data = receiver->mapping->start,
                              .length = receiver->length,
                              .from = &receiver->holder});
}

static void assert_all(const struct joined *joined, size_t first, size_t end, double value) {
    const double *number = (const double *)(const void *)joined->start;
    for (size_t i = first; i < end; i++)
        assert_true(number[i] == value);
}

static void parts_are_seen_where_they_are(void **state) {
    const size_t border = PAGES * page_doubles(), all = 2 * border + REST;
    struct receiver one, two;
    struct joined joined;
    (void)state;
    receive(&one, border, 1);
    receive(&two, all - border, 2);
    joined_init(&joined, all * sizeof(double), 2);
    for (int times = 0; times < 2; times++) {
        put(&joined, 0, 0, &one);
        put(&joined, 1, border, &two);
        assert_all(&joined, 0, border, 1);
        assert_all(&joined, border, all, 2);
    }
    ((double *)one.segment->start)[border - 1] = 3; /* as it is the same memory */
    ((double *)two.segment->start)[REST] = 4;
    assert_all(&joined, border - 1, border, 3);
    assert_all(&joined, border + REST, border + REST + 1, 4);
    forget(&one);
    forget(&two);
    assert_all(&joined, border - 1, border, 3); /* it stays there */
    joined_release(&joined);
}

static void other_memory_takes_the_place_of_a_part(void **state) {
    const size_t all = page_doubles();
    struct receiver one, two;
    struct joined joined;
    (void)state;
    receive(&one, all, 1);
    receive(&two, all, 2);
    joined_init(&joined, all * sizeof(double), 1);
    put(&joined, 0, 0, &one);
    put(&joined, 0, 0, &two);
    assert_all(&joined, 0, all, 2);
    double *sent = memory_new(all, sizeof *sent);
    joined_put(&joined, 0, 0, &(struct bulk){.data = sent, .length = all * sizeof *sent});
    memset(sent, 0xff, all * sizeof *sent);
    assert_all(&joined, 0, all, 0); /* a copy */
    assert_true(*(double *)two.segment->start == 2);
    put(&joined, 0, 0, &one);
    assert_all(&joined, 0, all, 1);
    free(sent);
    forget(&one);
    forget(&two);
    joined_release(&joined);
}

static void a_part_that_begins_or_ends_within_a_page_is_copied(void **state) {
    const size_t page = page_doubles(), border = page + REST, all = 2 * border;
    struct receiver one, two;
    struct joined joined;
    (void)state;
    receive(&one, border, 1);
    receive(&two, border, 2);
    joined_init(&joined, all * sizeof(double), 2);
    put(&joined, 1, border, &two);
    put(&joined, 0, 0, &one);
    *(double *)one.segment->start = *(double *)two.segment->start = 3;
    assert_all(&joined, 0, border, 1);
    assert_all(&joined, border, all, 2);
    forget(&one);
    forget(&two);
    joined_release(&joined);
}

SUITE(joined) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_seen_where_they_are),
        cmocka_unit_test(other_memory_takes_the_place_of_a_part),
        cmocka_unit_test(a_part_that_begins_or_ends_within_a_page_is_copied),
    };
    return cmocka_run_group_tests_name("joined parts", tests, NULL, NULL);
}

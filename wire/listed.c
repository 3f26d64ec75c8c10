#include "wire/listed.h"

#include <math.h>

#include "base/layout.h"

#define EXPONENT_MAX 4096 /* far beyond any */

struct listed listed_at(const void *list, size_t i) {
    struct cursor at = cursor_over((const uint8_t *)list + i * LISTED_BYTES, LISTED_BYTES);
    struct listed listed = {.number = cursor_u64(&at)};
    listed.regularized = cursor_u8(&at) == 1;
    listed.exponent = (int32_t)cursor_u32(&at);
    listed.x = cursor_f64(&at);
    listed.gradient = cursor_f64(&at);
    listed.mean = cursor_f64(&at);
    listed.scale = cursor_f64(&at);
    listed.penalty = cursor_f64(&at);
    listed.square = cursor_f64(&at);
    listed.lasso = cursor_f64(&at);
    listed.low = cursor_f64(&at);
    listed.high = cursor_f64(&at);
    listed.excess = cursor_f64(&at);
    return listed;
}

uint64_t value_number_at(const void *list, size_t i) {
    struct cursor at = cursor_over((const uint8_t *)list + i * VALUE_BYTES, VALUE_BYTES);
    return cursor_u64(&at);
}

double value_at_number(const void *list, size_t i) {
    struct cursor at = cursor_over((const uint8_t *)list + i * VALUE_BYTES + 8, VALUE_BYTES - 8);
    return cursor_f64(&at);
}

void listed_put(struct bytes *list, const struct listed *listed) {
    bytes_put_u64(list, listed->number);
    bytes_put_u8(list, listed->regularized);
    bytes_put_u32(list, (uint32_t)listed->exponent);
    bytes_put_f64(list, listed->x);
    bytes_put_f64(list, listed->gradient);
    bytes_put_f64(list, listed->mean);
    bytes_put_f64(list, listed->scale);
    bytes_put_f64(list, listed->penalty);
    bytes_put_f64(list, listed->square);
    bytes_put_f64(list, listed->lasso);
    bytes_put_f64(list, listed->low);
    bytes_put_f64(list, listed->high);
    bytes_put_f64(list, listed->excess);
}

void value_put(struct bytes *list, uint64_t number, double value) {
    bytes_put_u64(list, number);
    bytes_put_f64(list, value);
}

bool listed_is_valid(const struct listed *listed) {
    const struct column_limit limit = {listed->lasso, listed->low, listed->high};
    if (!column_limit_is_valid(&limit) || !(listed->low <= listed->x && listed->x <= listed->high))
        return false;
    return listed->excess > 0 && isfinite(listed->x) && isfinite(listed->gradient) &&
           isfinite(listed->mean) && listed->scale > 0 && isfinite(listed->scale) &&
           listed->penalty >= 0 && isfinite(listed->penalty) && listed->square >= 0 &&
           isfinite(listed->square) && listed->exponent > -EXPONENT_MAX &&
           listed->exponent < EXPONENT_MAX;
}

bool listed_rise(const void *list, size_t count) {
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        const struct listed listed = listed_at(list, i);
        if ((i && listed.number <= before) || !listed_is_valid(&listed))
            return false;
        before = listed.number;
    }
    return true;
}

bool values_rise(const void *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((i && value_number_at(list, i) <= value_number_at(list, i - 1)) ||
            !isfinite(value_at_number(list, i)))
            return false;
    return true;
}

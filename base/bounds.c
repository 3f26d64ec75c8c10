#include "base/bounds.h"

#include <assert.h>
#include <math.h>

void maxima_merge(struct maxima *into, const struct maxima *from) {
    for (uint32_t i = 0; i < from->count; i++)
        if (i >= into->count || from->value[i] > into->value[i])
            into->value[i] = from->value[i];
    if (from->count > into->count)
        into->count = from->count;
}

double maxima_largest(const struct maxima *maxima) {
    double largest = 0;
    for (uint32_t i = 0; i < maxima->count; i++)
        if (maxima->value[i] > largest)
            largest = maxima->value[i];
    return largest;
}

bool maxima_exceed(const struct maxima *maxima, const struct bounds *bounds) {
    for (uint32_t i = 0; i < maxima->count; i++)
        if (maxima->value[i] > ldexp(1, bounds_exponent(bounds, i)))
            return true;
    return false;
}

/* ---- in bytes ---- */

void bounds_encode(const struct bounds *bounds, struct bytes *out) {
    assert(bounds->count <= TENSORS_MAX);
    bytes_put_u32(out, bounds->count);
    for (uint32_t i = 0; i < bounds->count; i++)
        bytes_put_u32(out, (uint32_t)bounds->exponent[i]);
}

void maxima_encode(const struct maxima *maxima, struct bytes *out) {
    assert(maxima->count <= TENSORS_MAX);
    bytes_put_u32(out, maxima->count);
    bytes_append(out, maxima->value, maxima->count * sizeof *maxima->value);
}

static uint32_t decode_count(struct cursor *in) {
    uint32_t count = cursor_u32(in);
    in->failed |= count > TENSORS_MAX;
    return in->failed ? 0 : count;
}

struct bounds bounds_decode(struct cursor *in) {
    struct bounds bounds = {.count = decode_count(in)};
    for (uint32_t i = 0; i < bounds.count; i++)
        bounds.exponent[i] = (int)(int32_t)cursor_u32(in);
    return bounds;
}

struct maxima maxima_decode(struct cursor *in) {
    struct maxima maxima = {.count = decode_count(in)};
    for (uint32_t i = 0; i < maxima.count; i++)
        maxima.value[i] = cursor_f64(in);
    return maxima;
}

const char *bounds_fault(const struct bounds *bounds) {
    if (bounds->count == 0 || bounds->count > TENSORS_MAX)
        return "no bounds, or more than there may be tensors";
    for (uint32_t i = 0; i < bounds->count; i++)
        if (bounds->exponent[i] < BOUND_EXPONENT_MIN || bounds->exponent[i] > BOUND_EXPONENT_MAX)
            return "a bound with an exponent out of range";
    return NULL;
}

const char *maxima_fault(const struct maxima *maxima) {
    if (maxima->count > TENSORS_MAX)
        return "more maxima than there may be tensors";
    for (uint32_t i = 0; i < maxima->count; i++)
        if (!(maxima->value[i] >= 0))
            return "a maximum below 0, or none";
    return NULL;
}

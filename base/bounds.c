#include "base/bounds.h"

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

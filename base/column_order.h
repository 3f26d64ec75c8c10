/* Columns in some order, such as that of their ids: 32 bits a number where these tell all columns
 * apart, else 64. A view; nothing in it is owned. */
#ifndef DML_BASE_COLUMN_ORDER_H
#define DML_BASE_COLUMN_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* One of both; without either, columns stand in the order of their numbers. */
struct column_order {
    const uint32_t *narrow;
    const uint64_t *wide;
};

/* The column at a place. */
static inline uint64_t column_order_at(const struct column_order *order, uint64_t place) {
    if (order->narrow)
        return order->narrow[place];
    return order->wide ? order->wide[place] : place;
}

static inline bool column_order_given(const struct column_order *order) {
    return order->narrow || order->wide;
}

/* Bytes of a number, where there are so many columns. Files have them so, too. */
static inline size_t column_number_bytes(uint64_t columns) {
    return columns > FEATURES_MAX ? sizeof(uint64_t) : sizeof(uint32_t);
}

/* Such numbers at `data`, as a file has them. */
static inline struct column_order column_order_of(const void *data, uint64_t columns) {
    bool wide = column_number_bytes(columns) > sizeof(uint32_t);
    return (struct column_order){.narrow = wide ? NULL : data, .wide = wide ? data : NULL};
}

static inline const void *column_order_data(const struct column_order *order) {
    return order->narrow ? (const void *)order->narrow : order->wide;
}

#endif

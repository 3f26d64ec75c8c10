/* Layouts as they travel. */
#ifndef DML_TESTS_UNIT_LAYOUT_FIXTURE_H
#define DML_TESTS_UNIT_LAYOUT_FIXTURE_H

#include "base/layout.h"
#include "wire/message.h"

/* A blob that stays for the next few calls. */
static inline struct blob blob_of_layout(const struct layout *layout) {
    enum { KEPT = 8 };
    static struct bytes blobs[KEPT];
    static unsigned next;
    struct bytes *blob = &blobs[next++ % KEPT];
    bytes_clear(blob);
    layout_encode(layout, blob);
    return (struct blob){blob->data, (uint32_t)blob->length};
}

/* Of a loss without parameters. */
static inline struct blob loss_blob(void) {
    static const double values[LOSS_PARAMETERS_MAX];
    return (struct blob){values, sizeof values};
}

/* Elements of rows of `columns` each that are regularised, then one row that is not. */
static inline struct blob layout_blob(uint64_t regularized, uint64_t columns, uint64_t others) {
    struct layout layout = {0};
    layout_add(&layout, &(struct layout_tensor){.name = TENSOR_WEIGHT,
                                                .rows = regularized / columns,
                                                .columns = columns,
                                                .regularized = true});
    if (others)
        layout_add(&layout, &(struct layout_tensor){.name = TENSOR_BIAS,
                                                    .rows = 1,
                                                    .columns = others,
                                                    .exponents = LAYOUT_ONE_EXPONENT});
    return blob_of_layout(&layout);
}

#endif

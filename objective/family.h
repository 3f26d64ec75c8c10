/* Model families: how the parameters of a model and the values of a row become margins.
 *
 *   linear    a weight for each feature and output, and biases
 *   network   hidden layers between features and outputs
 *   plug-in   whatever a library of the user's own computes, its losses included
 *
 * All that differs between them is a member of struct family or of a table that goes with it. No
 * other code asks which family a model is of. To add one, write
 *
 *   objective/NAME.c          its struct family, and how a processor computes its chunks
 *
 *   objective/device_NAME.c   its struct device_family, if devices compute it, too
 *
 * model/families.c has its struct model_family: how models of it are stored and read, and when a
 * run starts from one. coordinator/job/family.c has its struct job_family: what its keys mean, and
 * what a job may say. family_of() tells the family by the shape.
 *
 * A family knows no data and no files, and what is here calls no kernel: objective_block() of
 * objective/objective.h computes. */
#ifndef DML_OBJECTIVE_FAMILY_H
#define DML_OBJECTIVE_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

#include "objective/shape.h"

struct family {
    const char *name;

    /* ---- facts ---- */

    bool convex;             /* F is convex wherever the loss is */
    bool second;             /* its second derivatives can be sampled, where the loss has any */
    bool rounds_chunks;      /* the gradient of a chunk is rounded as a whole, once an element, and
                                bounds are one a tensor; else each row's, and there is one */
    bool scales_columns;     /* `precondition = auto` may choose scales of its columns */
    bool unit_values;        /* it needs values of about 1: all columns get a scale */
    bool path_dependent;     /* where a training ends depends on where it starts */
    bool own_tensors;        /* only the process of a plug-in knows its tensors */
    unsigned thread_vectors; /* vectors of n doubles that a thread of a replica needs */

    /* ---- shapes ---- */

    /* The layout of its parameters; without tensors if there are more than the limits allow. */
    struct layout (*layout)(const struct objective_shape *shape);

    /* Reads the shape off a layout, as objective_read_layout() says; false if the layout is one of
     * another family. NULL: none can be read. */
    bool (*read_layout)(struct objective_shape *shape, const struct layout *layout);

    /* What is left to the data besides what the loss leaves to it; NULL: nothing. `labels` may be
     * NULL. With labels, the start of the intercept is known before. */
    void (*complete)(struct objective_shape *shape, const struct label_summary *labels);

    /* Base exponent `number` of the layout. `columns` has those of the data; `share` is the one of
     * elements that are rounded once a chunk. See objective_exponents(). */
    int (*exponent)(const struct objective_shape *shape, const int16_t *columns, int share,
                    uint64_t number);

    /* See objective_first_bounds(). `chunk` is what a chunk weighs, at least 1. */
    struct bounds (*first_bounds)(const struct objective_shape *shape, double label_max_abs,
                                  double chunk);

    /* The linear model, without biases, that is the first layer of a shape; NULL: its models have
     * no layers, and are computed in strips as they are, or not at all. */
    struct objective_shape (*first_layer)(const struct objective_shape *shape);

    /* How many products a value of a row has in a pass: one for each margin or unit. */
    uint64_t (*width)(const struct objective_shape *shape);

    /* Why no device computes it (a constant), or NULL. NULL: all do. */
    const char *(*device_cannot)(const struct objective_shape *shape);

    const struct family_compute *compute; /* inside objective/ */
};

extern const struct family family_linear, family_network, family_plugin;

/* The family of a shape. No other code may ask which it is. */
const struct family *family_of(const struct objective_shape *shape);

#endif

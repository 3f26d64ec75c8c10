/* The vectors of a shard: registers, history slots and the gradient sum, over one range; and the
 * table of functions of where they are, on the host or on a device. */
#ifndef DML_SHARD_REGISTERS_H
#define DML_SHARD_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/touched.h"
#include "numeric/exact.h"
#include "numeric/vector.h"
#include "shard/limits.h"
#include "shard/rows.h"
#include "shard/scaling.h"
#include "wire/evaluation.h"
#include "wire/message.h"
#include "wire/program.h"

struct covariance;    /* shard/covariance.h */
struct device;        /* device/device.h */
struct factor;        /* shard/factor.h */
struct pass_plan;     /* shard/pass_plan.h */
struct pass_yield;    /* shard/pass_kernel.h */
struct shard_backend; /* below */

/* A slice as it is added to sums. */
struct slice {
    uint64_t first;   /* of the sums that it is for; from there offsets count */
    uint64_t entries; /* values; may be 0 */
    const int64_t *values;
    const uint32_t *offsets; /* one a value; NULL: of sums that follow one another */
};

/* Offsets may lie in memory of the replica, which can change them after they were checked if it is
 * broken. So each is read once, and looked at as it is used. */
static inline uint32_t slice_offset(const struct slice *slice, uint64_t number) {
    return *(const volatile uint32_t *)&slice->offsets[number];
}

/* ERROR_DATA: one of them is outside of the sums now. */
int slice_has_changed(void);

/* A scalar of a program, while it is added up block by block. */
struct yield {
    struct exact sum;
    double max;
};

struct vector {
    double *elements;        /* in the host's memory; a copy if a device has them */
    struct segment *segment; /* the shared memory they lie in; NULL: a private mapping */
    double *resident;        /* where a device has them; else NULL */
};

/* What a device holds beside the registers (for those see struct vector). Pointers are to memory of
 * the device. */
struct resident {
    void *memory;     /* all but the program, in one piece */
    uint8_t *history; /* laid out as that of the registers, as is the window */
    uint8_t *window;
    int64_t *sum;
    int16_t *exponents;                    /* or NULL */
    double *mean, *scale, *penalty, *root; /* of the scaling: see shard/scaling.h, or NULL */
    double *square;                        /* of columns that are not scaled, or NULL */
    double *bias_gradient;
    struct pass_yield *yields; /* of a program: SCALARS_MAX */
    uint8_t *slice;            /* room for a part of a slice */
    void *program;             /* the steps of the last pass, or NULL */
    size_t program_bytes;
};

struct registers {
    uint64_t first;                              /* of the range, in the whole vector */
    size_t count;                                /* elements of the range */
    struct layout layout;                        /* of the whole vector */
    struct layout_span regularized[TENSORS_MAX]; /* of the range, counted from its first element */
    uint32_t regularized_count;
    struct layout_span
        biases[TENSORS_MAX]; /* the spans that are not regularised, counted as `regularized` */
    uint32_t biases_count;
    double weight_sum; /* of the examples that second derivatives are summed over */
    bool tiles;        /* a flush may have sums of a part of the columns */
    uint32_t slots;    /* of the history */
    enum history_type history_type;
    bool uniform;               /* one exponent for all columns of a gradient */
    int exponent;               /* if so, this */
    int16_t *exponents;         /* one an element; NULL if uniform and without a preconditioner */
    size_t exponents_set;       /* elements whose exponent came */
    uint8_t *extra_bits;        /* what sums for errors of estimates add to each exponent of the
                              layout (numeric/fixed.h); NULL: nothing; owned */
    struct scaling scaling;     /* while it is not used, vectors are weights and biases */
    struct limits limits;       /* of elements; then programs run on the host */
    bool starts;                /* x comes with START messages, else from the layout */
    size_t start_set;           /* elements of x that came */
    int64_t *sum;               /* of the evaluation, in fixed point: registers_sums() */
    size_t sum_length;          /* the most elements it can have */
    size_t sum_used;            /* of the host's: all behind the first so many are zero */
    struct touched sum_touched; /* which of the first `count` sums may be other than zero, */
    struct touched gradient_touched; /* and of register G, once it is settled; all, unless with
                                        Adagrad */
    bool trial_is_x;                 /* t was made of x, and both are as they were then */
    bool unsettled;                  /* x and G are not yet what they are: shard/sparse_step.h */
    struct vector vector[REGISTERS]; /* x, t and best in shared memory: replicas read t in place */
    bool keeps_best;                 /* else there is no REGISTER_BEST */
    enum precondition precondition;  /* NONE: no REGISTER_PG or REGISTER_PH, and no factor */
    uint32_t block_columns;          /* else: of the block */
    bool boxed;                      /* else there is no REGISTER_QG or REGISTER_QH */
    bool adagrad;                    /* else there is no REGISTER_A */
    struct factor *factor;           /* the preconditioner in force, or NULL; held */
    struct covariance *covariance;   /* of the last COVARIANCE of this attempt, or NULL; owned */
    uint8_t *history;                /* s and q of slot 0, of slot 1, … */
    size_t history_stride;           /* bytes from one history vector to the next */
    uint8_t *window;                 /* directions, laid out likewise: slot 0, slot 1, … */
    struct row_vectors rows;         /* and what goes with them; rows.slots is of the window */
    const struct shard_backend *backend; /* where they are and programs run */
    struct device *device;               /* NULL: the host; not owned */
    struct resident *resident;           /* what the device has, or NULL; owned */
};

/* ---- where registers are, and programs run ---- */

/* The host keeps the vectors of struct registers where they are, and runs programs there. A device
 * (device/device.h) has registers, history and sum in its own memory; the vectors of the host are
 * then copies: of the range that was pulled last, or that is to be pushed. Memory of the host that
 * was never touched takes no room.
 *
 * Functions answer 0, or, from a device alone, ERROR_UNAVAILABLE with a text. After such an error
 * what the registers hold is undefined. NULL: there is nothing to do. One thread. */
struct shard_backend {
    /* The registers were set up: takes what memory it needs itself. All vectors are zero, but x. */
    int (*open)(struct registers *registers);
    void (*close)(struct registers *registers); /* fine if it was not opened */

    /* All that was announced with the set-up has come (registers_complete()). */
    int (*load)(struct registers *registers);

    /* A program that yields `count` scalars: first begin(), then its passes, then end(), which adds
     * to the yields what the passes made, unless run_pass() has done so. */
    int (*begin)(struct registers *registers, size_t count);
    int (*run_pass)(struct registers *registers, struct pass_plan *pass, struct yield *yields);
    int (*end)(struct registers *registers, struct yield *yields, size_t count);

    /* sum = 0, of this layout. */
    int (*clear_sum)(struct registers *registers, enum sums_layout layout);

    /* The first `count` elements of the sum, to the host's. */
    int (*pull_sum)(struct registers *registers, size_t count);

    /* Adds a slice to the sum, which has `count` elements; the first one replaces what it held. The
     * sum is spoilt where this fails. */
    int (*fold)(struct registers *registers, size_t count, const struct slice *slice, bool first);

    /* Elements offset… of a register, to the host's vector and back. */
    int (*pull)(struct registers *registers, uint8_t number, size_t offset, size_t count);
    int (*push)(struct registers *registers, uint8_t number, size_t offset, size_t count);

    /* s and q of a slot. */
    int (*pull_pair)(struct registers *registers, uint32_t slot);
    int (*push_pair)(struct registers *registers, uint32_t slot);

    /* A direction of the window. */
    int (*pull_direction)(struct registers *registers, uint32_t slot);
    int (*push_direction)(struct registers *registers, uint32_t slot);
};

extern const struct shard_backend shard_on_host;
extern const struct shard_backend shard_on_device; /* registers.device must be there */

/* Where the next registers_set_up() puts them, until when nothing may be done with them; on the
 * host (&shard_on_host, NULL) if this was never called. Zeroed memory is that of no registers. */
void registers_use(struct registers *registers, const struct shard_backend *backend,
                   struct device *device);

/* Makes the vectors that `setup` describes: all zero, except x, which gets the layout's starting
 * values. There is no factor. If the shape is the same, the memory is used again: replicas may have
 * mapped it. ERROR_INTERNAL if this build does not know the type of history or the objective,
 * ERROR_UNAVAILABLE if the device has no memory for them, or failed. */
int registers_set_up(struct registers *registers, const struct message_shard_setup *setup);
void registers_release(struct registers *registers);

/* Takes exponents first…, as the layout numbers them. */
int registers_set_exponents(struct registers *registers, uint64_t first, const int16_t *exponents,
                            uint64_t count);

/* Takes elements first… of the whole starting point into x. ERROR_INTERNAL if elements before them
 * are missing, or one is not finite. */
int registers_set_start(struct registers *registers, uint64_t first, const double *elements,
                        uint64_t count);

/* Puts elements first… of a whole vector into a register, once the set-up is complete.
 * ERROR_INTERNAL unless it holds them. */
int registers_fill(struct registers *registers, uint8_t number, uint64_t first,
                   const double *elements, uint64_t count);

/* Whether all exponents, scales and starting values that were announced have come. */
bool registers_complete(const struct registers *registers);

/* Whether there may be a factor. Listed columns need none. */
static inline bool registers_precondition(const struct registers *registers) {
    return registers->precondition != PRECONDITION_NONE &&
           registers->precondition != PRECONDITION_LISTED;
}

/* Whether there is such a register here. */
static inline bool registers_have(const struct registers *registers, uint8_t number) {
    bool preconditioned = number == REGISTER_PG || number == REGISTER_PH;
    bool of_box = number == REGISTER_QG || number == REGISTER_QH;
    return number < REGISTERS && (number != REGISTER_BEST || registers->keeps_best) &&
           (!preconditioned || registers_precondition(registers)) &&
           (!of_box || registers->boxed) && (number != REGISTER_A || registers->adagrad);
}

/* Whether there is such a register here, and its range has elements first… of the whole vector. */
bool registers_hold(const struct registers *registers, uint8_t number, uint64_t first,
                    uint64_t count);

/* Rows of the preconditioner's matrix that are here: all of them, or none. */
size_t registers_factor_order(const struct registers *registers);

/* How many sums of a layout are here. */
size_t registers_sums(const struct registers *registers, enum sums_layout layout);

/* sum = 0, of this layout. */
int registers_clear_sum(struct registers *registers, enum sums_layout layout);

/* x and G become what they are by the sparse steps that were made. The functions below do so where
 * they have to. */
void registers_settle(struct registers *registers);

/* Brings elements offset… of a register to where the host reads them, or what the host wrote there
 * to where programs run. */
int registers_pull(struct registers *registers, uint8_t number, size_t offset, size_t count);
int registers_push(struct registers *registers, uint8_t number, size_t offset, size_t count);

/* Pulls or pushes s and q of a slot. */
int registers_pull_pair(struct registers *registers, uint32_t slot);
int registers_push_pair(struct registers *registers, uint32_t slot);

/* Pulls or pushes a direction of the window. */
int registers_pull_direction(struct registers *registers, uint32_t slot);
int registers_push_direction(struct registers *registers, uint32_t slot);

/* All that was announced has come: brings it to where programs run. */
int registers_load(struct registers *registers);

/* Takes over a factor, or NULL; the former one is dropped. */
void registers_set_factor(struct registers *registers, struct factor *factor);

/* Takes over what SANDWICH needs, or NULL; the former one is freed. */
void registers_set_covariance(struct registers *registers, struct covariance *covariance);

/* The serial number of the factor in force; 0 if there is none. */
uint64_t registers_factor_serial(const struct registers *registers);

/* Exchanges two registers without copying elements. */
void registers_swap(struct registers *registers, uint8_t a, uint8_t b);

/* The vectors of a pair in the host's memory: s, and q, which is P·y, or y if there is no
 * preconditioner. */
void *registers_s(const struct registers *registers, uint32_t slot);
void *registers_q(const struct registers *registers, uint32_t slot);

/* A stored vector where programs run: `part` 0 is s, 1 is q. */
void *registers_stored(const struct registers *registers, uint32_t slot, uint32_t part);

/* A direction of the window in the host's memory, and where programs run. */
void *registers_direction(const struct registers *registers, uint32_t slot);
void *registers_stored_direction(const struct registers *registers, uint32_t slot);

#endif

/* What an evaluation computes at one point.
 *
 * An evaluation is a short list of parts; a part is a kind and a range of chunks. Ranges rise and
 * do not overlap. The results of all parts travel together: in one flush, with one commit
 * decision and one fold.
 *
 *   totals   exact sums of doubles, a few a part, in the order of the parts
 *   sums     integer sums on the shards, of one layout for the whole evaluation */
#ifndef DML_WIRE_EVALUATION_H
#define DML_WIRE_EVALUATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/rows.h"
#include "wire/message.h"

/* Which numbers the shards add up. */
enum sums_layout {
    SUMS_NONE,       /* none: a flush has no elements */
    SUMS_PARAMETERS, /* one int64 a parameter; a shard has those of its range */
    SUMS_ROWS,       /* one int64 a row and output: the bits of a double, added to 0, or in tiles a
                        sum in fixed point; a shard has those of its rows */
    SUMS_TRIANGLE, /* one int64 for each pair r ≥ c of parameters of the block, at r(r + 1)/2 + c;
                    all of them on the shard whose range begins the vector */
    SUMS_LAYOUTS,
};

enum evaluation_kind {
#define KIND(NAME, name, number, totals, sums, point, strips, hessian, kernel, device, text)       \
    EVALUATION_##NAME = (number),
#include "wire/kinds.def"
};

/* Which exact sums of doubles a part yields. */
enum kind_totals {
    TOTALS_LOSS,             /* the loss */
    TOTALS_LOSS_AND_CORRECT, /* the loss; the weight of the rows that are predicted correctly */
    TOTALS_ROWS,             /* how many rows it has */
    TOTALS_HESSIAN, /* trace times leverage over all rows; rows sampled; the terms that they
                       added; the trace over all rows */
    KIND_TOTALS,
};

/* What a replica must have to compute a part. Where the first part needs POINT_UPPER, all do. */
enum kind_point {
    POINT_NONE,    /* nothing: it looks at rows alone */
    POINT_SCALED,  /* parameters, which may stay scaled where rows use few of them */
    POINT_WEIGHTS, /* parameters as weights and biases; in tiles, those of a strip */
    POINT_ROWS,    /* a vector of rows in the point's place: derivatives by margins */
    POINT_UPPER,   /* the parameters of a network's layers above the first, and a vector of rows:
                      the first layer's margins */
};

/* The strips of a set in tiles over whose tiles a part is. */
enum kind_strips {
    STRIPS_NONE,    /* there is no such part in tiles */
    STRIPS_FIRST,   /* the first strip: a part that looks at the columns of no tile */
    STRIPS_HOLDOUT, /* the held-out rows, after a part of upper layers and in its strip */
    STRIPS_ALL,     /* every strip, each with as many tiles */
    STRIPS_UPPER,   /* one more strip behind all others: the layers above a network's first */
};

/* Which second derivatives a part adds up. */
enum kind_hessian {
    HESSIAN_NONE,
#define HESSIAN(NAME, form, listed, extra_bits) HESSIAN_##NAME,
#include "wire/kinds.def"
};

/* A row of the table, without the columns that only replicas look at: kernel and device. */
struct kind_row {
    const char *name;
    enum kind_totals totals;
    enum sums_layout sums;
    enum kind_point point;
    enum kind_strips strips;
    enum kind_hessian hessian;
    bool listed, extra_bits; /* of the second derivatives */
};

/* NULL for a number that no kind has. */
const struct kind_row *kind_row(uint32_t number);

/* The kind that adds up these second derivatives, which are not HESSIAN_NONE. */
uint32_t kind_of_hessian(enum kind_hessian hessian);

/* Whether, and how, the optimizer's directions are preconditioned. */
enum precondition {
    PRECONDITION_NONE,
    PRECONDITION_FULL,    /* by the inverse of a dense matrix over all parameters */
    PRECONDITION_LEADING, /* by that of one over the weights of the first columns, and of a diagonal
                             over all others; where a column has several weights, by one matrix for
                             each of the outputs alike */
    PRECONDITION_LISTED,  /* not at all; but there is room for second derivatives by listed weights
                             and all biases, with which the shards make steps over a working set */
    PRECONDITIONS,
};

#define EVALUATION_PARTS_MAX 4
#define EVALUATION_TOTALS_MAX 8

/* The parts of an evaluation by value. */
struct evaluation_parts {
    struct evaluation_part items[EVALUATION_PARTS_MAX];
    uint32_t count;
};

/* "gradient"; "?" for a number that is none. */
const char *evaluation_kind_name(uint32_t kind);

/* Why the list is no evaluation, or NULL: it has no part or too many, an unknown kind, an empty
 * range, ranges that do not rise, sums of two layouts, too many totals. */
const char *evaluation_fault(const struct part_list *parts);

/* A copy of a list that evaluation_fault() accepts, and a list that points into such a copy. */
struct evaluation_parts evaluation_parts_of(const struct part_list *list);
struct part_list evaluation_list(const struct evaluation_parts *parts);

/* Whether the point of the evaluation is a vector of rows, the derivatives, in place of one of
 * parameters. Then it is so for all of its parts, or it is no evaluation: parts_mix_points(). But
 * the upper layers of a network, whose point is of both, may come beside them. */
bool parts_take_rows(const struct evaluation_parts *parts);
bool parts_mix_points(const struct evaluation_parts *parts);

/* Whether no part needs a point. */
bool parts_take_no_point(const struct evaluation_parts *parts);

/* Whether a part is of the layers above the first, and so needs their parameters and the first
 * layer's margins; and whether any part is. */
bool part_is_upper(const struct evaluation_parts *parts, uint32_t part);
bool parts_are_upper(const struct evaluation_parts *parts);

/* How many totals all parts yield, and which of them is the first of part `index` ≤ count. */
uint32_t evaluation_totals(const struct evaluation_parts *parts);
uint32_t evaluation_first_total(const struct evaluation_parts *parts, uint32_t index);

/* The layout that all parts with sums have; SUMS_NONE if no part has any. */
enum sums_layout evaluation_sums(const struct evaluation_parts *parts);

/* What the numbers of sums follow from. */
struct sums_sizes {
    uint64_t parameters;
    uint64_t order;   /* rows of the triangle: parameters of the block (base/layout.h); 0: none */
    uint64_t rows;    /* that vectors of rows have; 0: there are none */
    uint32_t outputs; /* numbers of each row in those; 0 without them */
    uint64_t strip;   /* of tiles: the most parameters of a strip, of which a replica has one at a
                         time; 0: it has all of them */
};

/* How many parameters the block has: of so many columns (base/layout.h), or, if it is LISTED, so
 * many weights, and the biases. 0 without a preconditioner. */
uint64_t evaluation_block(const struct layout *layout, enum precondition precondition,
                          uint32_t block_columns);

/* Without a preconditioner there is no triangle. Vectors of rows are for the caller to add. */
struct sums_sizes evaluation_sums_sizes(const struct layout *layout, enum precondition precondition,
                                        uint32_t block_columns);

/* How many sums there are over all shards. */
uint64_t evaluation_sums_total(enum sums_layout layout, const struct sums_sizes *sizes);

/* Those of a triangle that may be other than 0 where so many weights are listed, of at most
 * `block_columns`: they and all biases have its first rows. */
uint64_t evaluation_listed_sums(const struct sums_sizes *sizes, uint32_t block_columns,
                                uint32_t weights);

/* The most sums that a replica has at a time, of any evaluation of a run. */
uint64_t evaluation_sums_most(const struct sums_sizes *sizes);

/* Which of these are on the shard that has the parameters [first, first + count). */
struct sums_range {
    uint64_t first, count;
};
struct sums_range evaluation_sums_range(enum sums_layout layout, const struct sums_sizes *sizes,
                                        uint64_t first, uint64_t count);

/* The rows on the shard that has the parameters [first, first + count): whole blocks of ROW_BLOCK
 * rows, and the last rows, in proportion. Over all shards each row comes once. */
struct sums_range evaluation_rows(const struct sums_sizes *sizes, uint64_t first, uint64_t count);

/* The index of the part that the chunk belongs to, or `parts->count`. */
uint32_t evaluation_part_at(const struct evaluation_parts *parts, uint32_t chunk);

/* From the id of a flush to the number that the caller gave it: a hash table with open addresses.
 * With a thousand replicas an evaluation has thousands of flushes, and each is looked up a few
 * times. */

struct flush_slot {
    struct flush_id id;
    uint32_t number; /* + 1; 0: the slot is empty */
};

/* All 0 is an empty index. */
struct flush_index {
    struct flush_slot *slots;
    uint32_t capacity; /* a power of 2, or 0 */
    uint32_t count;
};

void flush_index_release(struct flush_index *index);
void flush_index_clear(struct flush_index *index);

/* Adds a flush that is not in it. */
void flush_index_add(struct flush_index *index, const struct flush_id *id, uint32_t number);

/* Takes out one that is. */
void flush_index_remove(struct flush_index *index, const struct flush_id *id);

/* False if it is not in it. *number may be NULL. */
bool flush_index_find(const struct flush_index *index, const struct flush_id *id, uint32_t *number);

#endif

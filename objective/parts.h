/* Inside objective/ only: the rows of the table of objectives, and the kernels over rows of data.
 *
 * A block is computed in batches of rows, small enough to stay in cache: first the margins of the
 * batch, then losses and derivatives of all its rows at once, then their gradient. */
#ifndef DML_OBJECTIVE_PARTS_H
#define DML_OBJECTIVE_PARTS_H

#include <stddef.h>
#include <string.h>

#include "numeric/clones.h"
#include "objective/block.h"
#include "objective/second.h"
#include "objective/family.h"
#include "objective/halves.h"

#define BATCH_ROWS_MAX 256
#define TRIANGLE_ROWS 64 /* that are added to a triangle in one go */

#define OBJECTIVE(NAME, name) extern const struct objective objective_##name;
#include "objective/objectives.def"
extern const struct objective objective_plugin_value, objective_plugin_score,
    objective_plugin_margin, objective_plugin_scores, objective_plugin_margins;

/* The arithmetic of losses; see objective/losses.def. */
#define OBJECTIVE(NAME, name)                                                                      \
    void name##_losses(LOSSES_ARGUMENTS);                                                          \
    void name##_second(SECOND_ARGUMENTS);                                                          \
    void name##_second_row(SECOND_ROW_ARGUMENTS);
#include "objective/objectives.def"

void proportional_odds_sums(SUMS_ARGUMENTS);

/* What losses share whose prediction is e^margin. The limit on labels keeps their sums and squares
 * finite. */
#define LOG_LINK_LABEL_MAX 1e150
#define LOG_LINK_POSITIVE "a number above 0, up to 1e150"
#define LOG_LINK_NOT_NEGATIVE "a number from 0 to 1e150"
bool log_link_positive(double label);
bool log_link_not_negative(double label);
#define LOG_LINK_BOUND_MAX 1e150
double log_link_exp(double x); /* e^x, at most that */
double log_link_start(const struct loss_parameters *parameters, const struct label_summary *labels);

void log_link_predict(size_t outputs, double *margins);

/* What losses share that are a logistic loss of each output. */
double logistic_loss(double margin, bool own);
double proportional_odds_loss(size_t outputs, const double *margins, double label);
double logistics_loss(enum logistics_side side, size_t outputs, const double *margins,
                      double label);                     /* not of LOGISTICS_LISTED */
void logistics_predict(size_t outputs, double *margins); /* the probability of each */

/* How wide the middle of the labels is, without the share 1/`tails` of them on either side, or,
 * where these are all one number, with shares that halve until it has a width. 0: all labels are
 * one number. */
double labels_width(const struct label_summary *labels, size_t tails);

/* What a unit or a width may be a share of where all labels are one number: its size, or 1 for 0.
 */
double labels_size(const struct label_summary *labels);

#define DATA_PARAMETER_LEAST 1e-100
#define DATA_PARAMETER_MOST 1e100

/* What is wanted of the layers above the first: the derivatives by their margins, or the gradient;
 * NULL: only maxima and the loss. */
struct upper_sums {
    int64_t *derivatives, *gradient;
    bool of_rows; /* the derivatives */
};

/* How a family computes chunks: the functions of objective/objective.h that have these names. */
struct family_compute {
    struct objective_scratch *(*scratch_new)(const struct objective_shape *shape);

    /* The only function that gives a scratch more memory than scratch_new() does: as
     * objective_prepare(). Costs little where there is nothing to do. */
    int (*prepare)(const struct objective_shape *shape, const struct objective_need *need,
                   struct objective_scratch *scratch);
    int (*block)(const struct objective_shape *shape, const struct objective_scale *scale,
                 const struct rows *rows, const double *parameters, int64_t *sum,
                 struct objective_scratch *scratch, struct objective_result *result);
    int (*margins)(const struct objective_shape *shape, const struct rows *rows,
                   const double *parameters, struct objective_scratch *scratch, double *margins);
    int (*losses)(const struct objective_shape *shape, const struct rows *rows,
                  const double *parameters, struct objective_scratch *scratch,
                  double *losses); /* NULL: they follow from the margins */

    /* As the functions of objective/products.c say; NULL: its gradient is not made of such. */
    void (*product)(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct rows *rows, const double *parameters, int64_t *sum,
                    struct objective_scratch *scratch, struct objective_result *result);
    void (*transpose)(const struct objective_shape *shape, const struct objective_scale *scale,
                      const struct rows *rows, const double *derivatives, int64_t *sum,
                      struct objective_scratch *scratch, struct objective_result *result);

    /* Both halves of what is above a first layer, or, without a scale, its loss; NULL: its models
     * have no such layer. */
    void (*upper)(const struct objective_shape *shape, const struct objective_scale *scale,
                  const struct rows *rows, const struct upper_point *point,
                  const struct upper_sums *sums, struct objective_scratch *scratch,
                  struct objective_result *result);

    /* The rows of a batch, a function of the shape alone: the order of additions of losses that
     * are weighed, of biases, and of dense gradients depends on them. NULL: there are none. */
    uint32_t (*batch_rows)(const struct objective_shape *shape, bool dense);
};

/* How much larger the first bounds of families that round chunks are than those of units of size 1.
 * Larger bounds round more coarsely; a bound that is exceeded costs a pass. */
#define FIRST_ROOM 16

/* Rows `first` to `first + count` of a block. */
struct row_batch {
    const struct rows *rows;
    uint32_t first;
    uint32_t count;
};

struct objective_scratch {
    /* The shape, but with as many outputs as a feature has weights. */
    struct objective_shape weights;

    uint64_t point;             /* as of objective_scratch_at() */
    struct scaled_point scaled; /* as of objective_scratch_scaled() */
    struct layout_tensor bias;  /* has no columns if there is no intercept */
    uint64_t looked_at;         /* number of the point of a linear model that was looked at last: */
    bool weightless;            /* whether its weights are all 0 */
    double *margins;            /* rows of a batch × K; later their derivatives */
    double *work;               /* rows of a batch × K */
    double *loss;               /* one per row of a batch */
    double *listed; /* of LABEL_LISTS, rows of a batch × K: 1 for the classes of a row */
    double *common; /* one per row: the margin before the biases, later the sum of the
                       derivatives; NULL unless the outputs share their weights */

    /* For dense rows; each array is NULL until dense_prepare() makes it. */
    double *tile;          /* the rows of a batch as doubles */
    size_t tile_values;    /* how many values the tile has room for */
    double *packed;        /* the parameters, packed for products, if K > 1; mapped */
    uint64_t packed_point; /* number of the point that is packed */
    size_t packed_bytes;
    double *gradient; /* of a batch (K = 1), else of all batches so far: K×F */

    struct network_scratch *network; /* of a network, which uses nothing above but margins, work,
                                        loss and listed */
    struct hessian_workspace *workspace; /* NULL until curvature_prepare() */

    struct plugin *plugin; /* of a plug-in, which uses nothing above but margins, those of a chunk;
                              NULL until it is prepared */
    size_t plugin_margins; /* that `margins` has room for */
};

/* The memory of computations that a call of objective/block.h, halves.h or second.h begins. */
static inline int prepare_for(const struct objective_shape *shape, const struct rows *rows,
                              const struct objective_change *change, bool gradient,
                              struct objective_scratch *scratch) {
    const struct objective_need need = {
        .rows = rows_most_of(rows), .change = change, .gradient = gradient};
    return objective_prepare(shape, &need, scratch);
}

/* The weight of row `i` of a block. */
static inline double weight_at(const struct rows *rows, size_t i) {
    return rows->weight ? rows->weight[i] : 1;
}

/* What is added to each margin of row `i`. */
static inline double offset_at(const struct rows *rows, size_t i) {
    return rows->offset ? rows->offset[i] : 0;
}

/* Goes over a block batch by batch: each call of batches_next() leaves the derivatives of the next
 * batch in the scratch's margins, and its losses in `loss`. False after the last. */
struct batches {
    const struct objective_shape *shape;
    const struct rows *rows;
    const double *parameters;
    struct objective_scratch *scratch;
    uint32_t most, next; /* rows */
    bool checks;         /* whether `correct` is wanted */
    double correct;      /* weight of the rows so far that are predicted correctly */
};
struct batches batches_over(const struct objective_shape *shape, const struct rows *rows,
                            const double *parameters, struct objective_scratch *scratch);
bool batches_next(struct batches *batches, struct row_batch *batch);

/* What the passes over linear models and networks share. */
struct objective_scratch *batch_scratch_new(const struct objective_shape *shape, uint32_t rows);
struct row_batch batch_at(const struct rows *rows, uint32_t first, uint32_t most);

/* Replaces the scratch's margins by the derivatives of a batch, and writes its losses. Adds the
 * weight of the rows that the margins predict correctly to `correct`, unless that is NULL. */
void batch_losses(const struct objective_shape *shape, const struct row_batch *batch,
                  struct objective_scratch *scratch, double *correct);
double batch_correct(const struct objective_shape *shape, const struct row_batch *batch,
                     const double *margins, const double *label); /* as losses take them */

/* Multiply by the weights of a block that has some: first the losses, which also zeroes derivatives
 * of rows of weight 0, as batch_clear_derivatives() does; and, after these were compared with the
 * bound, the derivatives. */
void batch_weigh_losses(const struct row_batch *batch, size_t outputs,
                        struct objective_scratch *scratch);
void batch_clear_derivatives(const struct row_batch *batch, size_t outputs, double *derivatives);
void batch_weigh_derivatives(const struct row_batch *batch, size_t outputs, double *derivatives);

/* The memory for blocks of dense rows, in batches of at most `batch_rows`. */
void dense_prepare(const struct objective_shape *shape, const struct rows_most *rows,
                   uint32_t batch_rows, struct objective_scratch *scratch);

/* Write count×K margins, row-major, without the bias, which the caller adds. `columns`: as of
 * struct scaled_point. dense_begin() comes before the batches of a block; its parameters are NULL
 * if no margins will be asked for. */
void sparse_margins(const struct objective_shape *shape, const struct row_batch *batch,
                    const double *parameters, const struct column_scaling *columns,
                    double *margins);
void dense_begin(const struct objective_shape *shape, const double *parameters,
                 struct objective_scratch *scratch);
void dense_margins(const struct objective_shape *shape, const struct row_batch *batch,
                   const double *parameters, struct objective_scratch *scratch, double *margins);

/* Add the gradient of a batch to `sum`, without that of the bias. The derivatives are scaled by
 * 2^−b; sparse_gradient() changes them. dense_gradient() is for the batch whose margins were
 * computed last, or which dense_take() was given last; dense_finish(), after the last batch, adds
 * what it has kept. */
void dense_take(const struct objective_shape *shape, const struct row_batch *batch,
                struct objective_scratch *scratch);
void sparse_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                     const struct row_batch *batch, double *derivatives, int64_t *sum);
void dense_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct row_batch *batch, const double *derivatives, int64_t *sum,
                    struct objective_scratch *scratch);
void dense_finish(const struct objective_shape *shape, const struct objective_scale *scale,
                  int64_t *sum, struct objective_scratch *scratch);

/* Adds the gradient by the biases, from the derivatives by the margins. */
void batch_bias_gradient(const struct layout_tensor *bias, const struct objective_scale *scale,
                         const struct row_batch *batch, const double *derivatives, int64_t *sum);

/* Adds elements of a chunk's gradient to `sum`, each rounded once: times `power`, which is 2^(base
 * exponent), and `inverse`, 2^−bound. Two products, because the power of both may not be a number.
 */
void gradient_add(size_t n, const double *gradient, double power, double inverse, int64_t *sum);

/* The largest |element|: +infinity if one is not finite. */
double gradient_max_abs(size_t n, const double *gradient);

/* 2^e for the exponent e of that number in the layout. */
double scale_of(const struct objective_scale *scale, size_t number);

/* Adds the bits of a number to an element: see objective_product(). */
static inline void add_bits(int64_t *element, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    *element = (int64_t)((uint64_t)*element + bits);
}

/* ---- curvature ---- */

/* A sampled row. Only columns with a value that is not 0 are listed; the intercept, if there is
 * one, is the last column, of value 1. Where weights are listed (struct weight_list), each of them
 * that has a value, and each bias, counts as a column. */
struct sampled_row {
    size_t count;
    const uint32_t *column; /* rising */
    const double *value;    /* times 2^(e − 31): below 2³¹/√w */
    double factor;          /* w·weight·2^−b */
    double label;
    const double *derivatives, *second; /* K; the diagonal of the second derivatives */
};

/* Columns of a row that follow each other: their elements are side by side in the triangle. */
struct column_run {
    size_t first;     /* in the row's list */
    size_t at, count; /* elements: from which on, and how many */
};

/* Values of the rows of a batch that are in listed columns. */
struct listed_values {
    uint8_t *counts; /* a feature each: 1 if it is listed, or its weight is not 0 */
    uint64_t point;  /* that these are of, as objective_scratch_at() numbers them; 0: not known */
    size_t begin[BATCH_ROWS_MAX + 1]; /* those of row i are begin[i] to begin[i + 1] of: */
    uint32_t *column;                 /* as in struct sampled_row, */
    double *value;                    /* as in struct sampled_row */
    uint32_t *at;                     /* of a row: where values are that count */
    size_t capacity;
};

/* Scratch memory for curvature. */
struct hessian_workspace {
    /* If outputs share their weights, or weights are listed: a column for each weight and each
     * bias, of one output. One output, too, if they share the matrix. */
    size_t columns, outputs;
    size_t order;         /* of the second derivatives by the margins: K, or 1 if they share */
    double second_shared; /* if they share the matrix: that of each row; else 0 */
    const struct second_form *form; /* which second derivatives */
    uint32_t block_columns;  /* features of the block: the others count for the leverage alone */
    struct weight_list list; /* that are the block, where weights are listed; */
    uint32_t *place;         /* and of each feature 1 + where its weights begin there; 0: it has
                                none. NULL if none are listed */
    uint32_t *output;        /* of each listed weight and each bias; NULL if order is 1, or none are
                                listed */

    bool by_batch; /* values are found batch by batch: */
    struct listed_values listed;

    double *power;     /* 2^(e − 31), of all features and the intercept; where weights of
                          one output are listed, 0 of features that are not */
    int16_t *exponent; /* the e that these were made of */
    double *diagonal;  /* of second derivatives, rows of a batch × K */
    double *leverage;  /* a row of a batch each */
    uint32_t *column;  /* of the row being sampled */
    double *value;
    struct column_run *runs;
    double *second; /* `order`; a row of the second derivatives */

    /* Rows that wait to be added together; the last index counts them, up to TRIANGLE_ROWS. */
    size_t waiting;
    double *left;        /* a column each */
    double *seconds;     /* `order` each */
    double *right;       /* a parameter each; or of one row */
    double *derivatives; /* TRIANGLE_ROWS × order */
    double label[TRIANGLE_ROWS], factor[TRIANGLE_ROWS], waiting_second[TRIANGLE_ROWS];
};
void hessian_workspace_free(struct hessian_workspace *workspace);

/* The memory for second derivatives. */
void curvature_prepare(const struct objective_shape *shape, const struct objective_need *need,
                       struct objective_scratch *scratch);

/* Whether one pass over the values of such rows finds margins, leverage and what is sampled. Then
 * it is begun with a point of this number (objective_scratch_at()), once the workspace has its
 * list, and listed_values_take() leaves margins, Σ|value| in `leverage`, and values of a batch. */
bool listed_values_fit(const struct objective_shape *shape, const struct objective_sample *sample,
                       bool dense, const struct objective_scratch *scratch);
void listed_values_prepare(const struct rows_most *rows, uint32_t features,
                           struct listed_values *found);
void listed_values_begin(struct hessian_workspace *workspace, uint32_t features,
                         const double *parameters, uint64_t point);
void listed_values_take(const struct objective_shape *shape, const struct row_batch *batch,
                        const double *parameters, struct objective_scratch *scratch);
void listed_values_free(struct listed_values *found);

/* Adds a sampled row to the triangle: at once, or with rows that come later. triangle_finish() adds
 * what waits. */
void triangle_add(const struct objective *objective, struct hessian_workspace *workspace,
                  const struct sampled_row *row, int64_t *triangle);
void triangle_finish(const struct objective *objective, struct hessian_workspace *workspace,
                     int64_t *triangle);

/* HALF bytes as doubles. Each becomes the last bits of a double from 2^52 on, whose unit is 1: so
 * all steps work on whole vectors, where gcc 12 would convert values one by one. */
LANES_INLINE void load_bytes(half_lanes *out, const uint8_t *byte) {
    const half_words shift = {0, 8, 16, 24};
    const double base = 0x1p52;
    half_words bits, base_bits;
    half_lanes all_base = (half_lanes){0} + base;
    uint32_t word;
    memcpy(&word, byte, sizeof word);
    memcpy(&base_bits, &all_base, sizeof base_bits);
    bits = (half_words){0} + word;
    bits = (bits >> shift & 0xff) | base_bits;
    memcpy(out, &bits, sizeof *out);
    *out -= all_base;
}

/* Values i to i + HALF of a chunk. Of floats named one by one gcc 12 makes one instruction. */
LANES_INLINE void load_values(enum value_type type, half_lanes *out, const void *value, size_t i) {
    const float *narrow = (const float *)value + i;
    if (type == VALUE_DOUBLE)
        memcpy(out, (const double *)value + i, sizeof *out);
    else if (type == VALUE_FLOAT)
        *out = (half_lanes){narrow[0], narrow[1], narrow[2], narrow[3]};
    else if (type == VALUE_BYTE)
        load_bytes(out, (const uint8_t *)value + i);
    else
        *out = (half_lanes){1, 1, 1, 1};
}

#endif

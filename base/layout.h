/* The layout of the parameters: what each element of the one long vector is.
 *
 * The vector is a short list of tensors, one after the other, each row-major. Its elements are
 * numbered from 0 over all tensors, and so are its exponents: how the gradient's elements are put
 * into fixed point (numeric/fixed.h). A linear model of F features and K outputs has
 *
 *   weight   F × K   regularised, an exponent a row (a feature); F × 1 if outputs share weights
 *   bias     1 × K   not regularised, one exponent; only with an intercept
 *
 * objective/objective.h has the tensors of a network.
 *
 * It travels as one blob: version u32, seed u64, tensors u32, and for each its name (u8 length and
 * text), rows u64, columns u64, regularised u8, exponents u8, start u8, bound f64. */
#ifndef DML_BASE_LAYOUT_H
#define DML_BASE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"

/* Raised whenever a blob of the old version would be read wrongly; both ends must have the same. */
#define LAYOUT_VERSION 1

#define TENSOR_WEIGHT "weight"
#define TENSOR_BIAS "bias"
#define TENSOR_FIRST_BIAS "b1" /* of a network */

enum layout_exponents { LAYOUT_EXPONENT_A_ROW, LAYOUT_ONE_EXPONENT };
enum layout_start {
    LAYOUT_START_ZERO,
    LAYOUT_START_UNIFORM,
    LAYOUT_START_CONSTANT,
    LAYOUT_START_FALLING
};

struct layout_tensor {
    char name[TENSOR_NAME_BYTES]; /* letters, digits and _; with its 0 */
    uint64_t rows, columns;       /* a tensor may have no rows */
    bool regularized;
    enum layout_exponents exponents;
    enum layout_start start;
    double bound; /* UNIFORM: evenly in [−bound, bound); CONSTANT: there; FALLING: from bound to
                     −bound in even steps */
    uint64_t first, first_exponent; /* where it begins in the vector: layout_add() finds them */
};

struct layout {
    uint64_t seed; /* of the start */
    uint32_t count;
    struct layout_tensor tensor[TENSORS_MAX];
};

/* Appends a tensor. False, and nothing is added, if the list is full, the name is taken or is not a
 * name, or a size is beyond the limits. Zeroed memory is a layout without tensors. */
bool layout_add(struct layout *layout, const struct layout_tensor *tensor);

/* The layout of a linear model; without tensors if the model is beyond the limits. */
struct layout layout_linear(uint64_t features, uint64_t outputs, bool intercept);

/* The layout of a linear model with so many weights a feature, and so many biases; 0: no
 * intercept. */
struct layout layout_linear_of(uint64_t features, uint64_t weights, uint64_t biases);

struct layout_span {
    uint64_t first, count;
};

uint64_t layout_parameters(const struct layout *layout);
uint64_t layout_exponents(const struct layout *layout);
const struct layout_tensor *layout_find(const struct layout *layout,
                                        const char *name); /* or NULL */

/* The biases that are added to what the first tensor, whose rows are the columns of the data, makes
 * of a row: "bias", or "b1" of a network. NULL if there are none. */
const struct layout_tensor *layout_input_bias(const struct layout *layout);

/* The block of the first `columns` columns: their weights, which begin the vector, and then the
 * biases that are added to them, wherever these are. How many parameters it has, and how many of
 * them are weights. All columns of a linear model: the vector. */
uint64_t layout_block(const struct layout *layout, uint32_t columns);
uint64_t layout_block_weights(const struct layout *layout, uint32_t columns);

/* Rows of the matrix of a leading block (wire/evaluation.h) of the first columns: one for each of
 * them, and one for each bias, or for all biases if each is of weights of its own. */
uint64_t layout_leading_block(const struct layout *layout, uint32_t columns);

/* What lies above the first tensor of a network: all other layers, and the biases of all. Empty for
 * a linear model, whose biases belong to its weights. */
struct layout_span layout_upper(const struct layout *layout);

/* Strips of a model: each has the weights of `columns` columns of the data, the last those of the
 * rest and, of a linear model, the biases. How many there are, the elements of one of them, and the
 * most that one has. 0 columns: one strip, which is the vector. After the strips of a network
 * comes one more, layout_upper(), which is not counted. */
uint32_t layout_strips(const struct layout *layout, uint32_t columns);
struct layout_span layout_strip(const struct layout *layout, uint32_t columns, uint32_t number);
uint64_t layout_strip_most(const struct layout *layout, uint32_t columns);

/* How many bounds an evaluation of the gradient has (base/bounds.h): one that all tensors of a
 * linear model share, else one a tensor. */
uint32_t layout_bounds(const struct layout *layout);
bool layout_equal(const struct layout *a, const struct layout *b);

/* Where an element is. */
struct layout_place {
    const struct layout_tensor *tensor;
    uint64_t row, column;
};

/* Where an element lies, and its exponent; `element` is below layout_parameters(). */
struct layout_place layout_locate(const struct layout *layout, uint64_t element);
uint64_t layout_exponent_of(const struct layout *layout, uint64_t element);

/* Goes to the next element. After the last one `tensor` is NULL. */
void layout_advance(const struct layout *layout, struct layout_place *place);

/* The elements of a tensor among [first, first + count), counted from `first`. */
struct layout_span layout_part(const struct layout_tensor *tensor, uint64_t first, uint64_t count);

/* The elements among [first, first + count) that are regularised, or those that are not, as spans
 * counted from `first`. Spans rise and do not touch each other. Returns how many spans there are.
 */
uint32_t layout_spans(const struct layout *layout, bool regularized, uint64_t first, uint64_t count,
                      struct layout_span spans[TENSORS_MAX]);

/* The starting values of elements [first, first + count). Each depends only on the seed, on its
 * tensor's place in the list and on its own place in the tensor, by integer arithmetic and one
 * product. So every process that owns a part of the vector computes the same bits. */
void layout_start(const struct layout *layout, uint64_t first, uint64_t count, double *elements);

/* Whether all of these are 0. */
bool layout_starts_at_zero(const struct layout *layout);

void layout_encode(const struct layout *layout, struct bytes *blob);

/* Decodes a blob from the wire, checking it. NULL, or what is wrong with it (a constant text). */
const char *layout_decode(const void *blob, size_t length, struct layout *layout);

/* The scaling of a run: a change of variables in which it is trained, if it has one.
 *
 * Each column j has a mean m_j and a scale s_j. The shards' vectors hold the scaled parameters z
 * and c, of which weights and biases are
 *
 *     w_jk = s_j·z_jk        b_k = c_k − Σ_j m_j·w_jk
 *
 * where w_jk is w_j if all outputs share it; then ∂/∂b_k below is the sum of these over k.
 *
 * So the margin of a row is c_k + Σ_j s_j·(x_j − m_j)·z_jk: as if each column had been shifted and
 * scaled, while the data stays as it is, with its zeros. The gradient follows it:
 *
 *     ∂/∂z_jk = s_j·(∂/∂w_jk − m_j·∂/∂b_k)        ∂/∂c_k = ∂/∂b_k
 *
 * l2 regularises Σ penalty_j·z_jk², and l1 Σ √penalty_j·|z_jk| unless columns have limits. A model
 * file has weights and biases: they are scaled when a run starts from it, and scaled back when it
 * is written. Elements are those of the layout; a row of its first tensor is a column of the data.
 * In a network w and b are the first layer, and no other element is scaled. */

/* The scaling of one column, as it travels: 40 bytes. */
struct column_scaling {
    double mean;    /* finite; 0 if the model has no bias */
    double scale;   /* finite, above 0 */
    double penalty; /* finite, not below 0; 0: no l2 acts on it */
    double square;  /* Σ w·(s_j·(x_j − m_j))²/Σ w over the rows; finite, not below 0. Only to
                       estimate how far the optimum is */
    double centre;  /* finite; what the values of the data are above x_j (data/set/set.h), so that
                       the  model's biases are b_k − Σ_j centre_j·w_jk: for their errors alone */
};
_Static_assert(sizeof(struct column_scaling) == 40, "no padding");

bool column_scaling_is_valid(const struct column_scaling *column);

/* Limits of the weights of a column, in scaled parameters: F has l1·Σ lasso_j·|z_jk| in it, and is
 * minimised over low_j ≤ z_jk ≤ high_j. It travels as it lies here, in 24 bytes. */
struct column_limit {
    double lasso;     /* finite, not below 0; 0 where F has no l1 */
    double low, high; /* low ≤ high; infinite: no bound */
};
_Static_assert(sizeof(struct column_limit) == 24, "no padding");

bool column_limit_is_valid(const struct column_limit *limit);

/* Whether a model of this layout can be scaled. A linear one: "weight" is its first tensor,
 * and there is no other but "bias", with as many columns, or weights that its columns share. Any
 * other: there is layout_input_bias(), with as many columns as the first tensor. */
bool layout_can_scale(const struct layout *layout);

/* A walk over a whole vector: its elements in order, in pieces of any size. The same bits come out
 * however it is cut. Start it zeroed; `columns` has one for each row of the first tensor and
 * outlives it.
 */
struct scaling_walk {
    const struct layout *layout;
    const struct column_scaling *columns;
    double *shift; /* Σ m_j·w_jk so far, in several lanes; owned */
};
void scaling_walk_begin(struct scaling_walk *walk, const struct layout *layout,
                        const struct column_scaling *columns);
void scaling_walk_end(struct scaling_walk *walk); /* harmless on a zeroed walk */

/* Elements first… from weights and biases to scaled parameters, or back; `out` may be `in`. Columns
 * whose mean is 0 may be left out where weights are finite: biases have nothing of them. */
void scaling_walk_to_scaled(struct scaling_walk *walk, uint64_t first, uint64_t count,
                            const double *in, double *out);
void scaling_walk_from_scaled(struct scaling_walk *walk, uint64_t first, uint64_t count,
                              const double *in, double *out);

#endif

#include "objective/kronecker.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/dense.h"
#include "objective/parts.h"

/* Eigenvalues that are kept of a side of n elements. */
static inline uint64_t kronecker_rank(uint64_t n) {
    return n < KRONECKER_RANK ? n : KRONECKER_RANK;
}

bool kronecker_suits(const struct objective_shape *shape) {
    const struct network *network = &shape->network;
    const struct objective *objective = objective_of(shape->kind);
    bool fits = network->layers && shape->features <= KRONECKER_WIDTH_MAX &&
                shape->outputs <= KRONECKER_WIDTH_MAX && !objective->shares_weights &&
                objective->labels != LABEL_LISTS;
    for (uint32_t i = 0; fits && i < network->layers; i++)
        fits = network->units[i] <= KRONECKER_WIDTH_MAX;
    return fits;
}

/* ---- factors as a vector ---- */

/* Doubles that a side of n elements takes: base, roots, and a row of n for each root. */
static uint64_t kronecker_side_size(uint64_t n) {
    return 1 + kronecker_rank(n) * (1 + n);
}

/* The two sides of layer `l`, from 0: [W; b] has a row more than W. */
static void widths_of(const struct layout *layout, uint32_t l, uint64_t width[2]) {
    width[0] = layout->tensor[l].rows + 1;
    width[1] = layout->tensor[l].columns;
}

uint64_t kronecker_size(const struct layout *layout) {
    uint64_t size = 0, width[2];
    for (uint32_t l = 0; l < layout->count / 2; l++) {
        widths_of(layout, l, width);
        size += kronecker_side_size(width[0]) + kronecker_side_size(width[1]);
    }
    return size;
}

/* One of P and Q: (M + ρ)^−½ = base·(1 + Σ (1/root_i − 1)·u_i·u_iᵀ). */
struct kronecker_side {
    uint64_t n;
    uint64_t rank;
    double base;
    const double *root; /* [rank], above 0 */
    const double *u;    /* rank × n */
};

static const double *read_side(struct kronecker_side *side, uint64_t n, const double *at) {
    *side =
        (struct kronecker_side){.n = n, .rank = kronecker_rank(n), .base = at[0], .root = at + 1};
    side->u = side->root + side->rank;
    return side->u + side->rank * n;
}

static bool is_sound(const struct kronecker_side *side) {
    bool sound = isfinite(side->base) && side->base > 0;
    for (uint64_t i = 0; i < side->rank; i++)
        sound &= isfinite(side->root[i]) && side->root[i] > 0;
    for (uint64_t i = 0; i < side->rank * side->n; i++)
        sound &= fabs(side->u[i]) <= 2;
    return sound;
}

struct kronecker {
    struct layout layout;
    uint32_t layers;
    struct kronecker_side side[NETWORK_LAYERS_MAX + 1][2];
    double *factors; /* that the sides point into; owned */
};

struct kronecker *kronecker_new(const struct layout *layout, const double *factors) {
    uint64_t size = kronecker_size(layout), width[2];
    struct kronecker *kronecker = memory_new(1, sizeof *kronecker);
    bool sound = layout->count / 2 <= NETWORK_LAYERS_MAX + 1;
    kronecker->layout = *layout;
    kronecker->layers = sound ? layout->count / 2 : 0;
    kronecker->factors = memory_new(size, sizeof *factors);
    if (size)
        memcpy(kronecker->factors, factors, size * sizeof *factors);
    const double *at = kronecker->factors;
    for (uint32_t l = 0; l < kronecker->layers; l++) {
        widths_of(layout, l, width);
        for (unsigned i = 0; i < 2; i++) {
            at = read_side(&kronecker->side[l][i], width[i], at);
            sound &= is_sound(&kronecker->side[l][i]);
        }
    }
    assert(!kronecker->layers || at == kronecker->factors + size);
    if (sound)
        return kronecker;
    kronecker_free(kronecker);
    return NULL;
}

bool kronecker_is_of(const struct kronecker *kronecker, const double *factors) {
    return !memcmp(kronecker->factors, factors,
                   kronecker_size(&kronecker->layout) * sizeof *factors);
}

void kronecker_free(struct kronecker *kronecker) {
    if (!kronecker)
        return;
    free(kronecker->factors);
    free(kronecker);
}

/* ---- applying them ---- */

struct kronecker_work {
    struct matrix_scratch *matrix;
    double *layer;  /* [W; b] */
    double *shares; /* rank × the wider side */
};

struct kronecker_work *kronecker_work_new(const struct kronecker *kronecker) {
    uint64_t elements = 0, widest = 0, width[2];
    for (uint32_t l = 0; l < kronecker->layers; l++) {
        widths_of(&kronecker->layout, l, width);
        elements = width[0] * width[1] > elements ? width[0] * width[1] : elements;
        widest = width[0] > widest ? width[0] : widest;
        widest = width[1] > widest ? width[1] : widest;
    }
    struct kronecker_work *work = memory_new(1, sizeof *work);
    work->matrix = matrix_scratch_new();
    work->layer = memory_new(elements, sizeof *work->layer);
    work->shares = memory_new(KRONECKER_RANK * widest, sizeof *work->shares);
    return work;
}

void kronecker_work_free(struct kronecker_work *work) {
    if (!work)
        return;
    matrix_scratch_free(work->matrix);
    free(work->layer);
    free(work->shares);
    free(work);
}

static void scale_shares(const struct kronecker_side *side, bool inverse, uint64_t columns,
                         double *shares) {
    for (uint64_t i = 0; i < side->rank; i++) {
        double factor = (inverse ? side->root[i] : 1 / side->root[i]) - 1;
        for (uint64_t j = 0; j < columns; j++)
            shares[i * columns + j] *= factor;
    }
}

static void apply_layer(const struct kronecker *kronecker, uint32_t l, bool inverse,
                        struct kronecker_work *work, double *vector) {
    const struct kronecker_side *in = &kronecker->side[l][0], *out = &kronecker->side[l][1];
    double *weight = vector + kronecker->layout.tensor[l].first;
    double *bias = vector + kronecker->layout.tensor[kronecker->layers + l].first;
    uint64_t weights = (in->n - 1) * out->n;
    assert(in->n == kronecker->layout.tensor[l].rows + 1);
    double base = in->base * out->base;
    base = inverse ? 1 / base : base;
    memcpy(work->layer, weight, weights * sizeof *weight);
    memcpy(work->layer + weights, bias, out->n * sizeof *bias);
    /* X ← P·X and X ← X·Q, without their bases; X is rows × columns. */
    matrix_product(work->matrix, in->rank, out->n, in->n, in->u, in->n, work->layer, out->n,
                   work->shares, out->n);
    scale_shares(in, inverse, out->n, work->shares);
    matrix_add_transposed(work->matrix, in->n, out->n, in->rank, in->u, in->n, work->shares, out->n,
                          work->layer, out->n);
    matrix_by_transposed(work->matrix, out->rank, in->n, out->n, out->u, out->n, work->layer,
                         out->n, work->shares, in->n);
    scale_shares(out, inverse, in->n, work->shares);
    matrix_add_transposed(work->matrix, in->n, out->n, out->rank, work->shares, in->n, out->u,
                          out->n, work->layer, out->n);
    for (uint64_t i = 0; i < weights; i++)
        weight[i] = base * work->layer[i];
    for (uint64_t i = 0; i < out->n; i++)
        bias[i] = base * work->layer[weights + i];
}

void kronecker_apply(const struct kronecker *kronecker, struct kronecker_work *work,
                     double *vector) {
    for (uint32_t l = 0; l < kronecker->layers; l++)
        apply_layer(kronecker, l, false, work, vector);
}

void kronecker_apply_inverse(const struct kronecker *kronecker, struct kronecker_work *work,
                             double *vector) {
    for (uint32_t l = 0; l < kronecker->layers; l++)
        apply_layer(kronecker, l, true, work, vector);
}

/* The factors of a network, from a sample of rows. */

_Static_assert(KRONECKER_RANK <= EIGEN_MAX, "all of them are found at once");

struct kronecker_sample {
    struct objective_shape shape;
    struct layout layout;
    const struct column_scaling *columns;
    struct matrix_scratch *matrix;
    uint32_t layers, rows;
    double *label, *weight;               /* of each row */
    double *in[NETWORK_LAYERS_MAX + 1];   /* what goes into layer l, and a 1: rows × (in + 1) */
    double *sums[NETWORK_LAYERS_MAX + 1]; /* of layer l before its activation: rows × out */
    double *derivative[NETWORK_LAYERS_MAX + 1]; /* of the loss by these */
};

struct kronecker_sample *kronecker_sample_new(const struct objective_shape *shape,
                                              const struct column_scaling *columns) {
    struct kronecker_sample *sample = memory_new(1, sizeof *sample);
    sample->shape = *shape;
    sample->layout = objective_layout(shape);
    sample->columns = columns;
    sample->matrix = matrix_scratch_new();
    sample->layers = shape->network.layers + 1;
    sample->label = memory_new(KRONECKER_ROWS, sizeof(double));
    sample->weight = memory_new(KRONECKER_ROWS, sizeof(double));
    for (uint32_t l = 0; l < sample->layers; l++) {
        const struct layout_tensor *tensor = &sample->layout.tensor[l];
        sample->in[l] = memory_new(KRONECKER_ROWS * (tensor->rows + 1), sizeof(double));
        sample->sums[l] = memory_new(KRONECKER_ROWS * tensor->columns, sizeof(double));
        sample->derivative[l] = memory_new(KRONECKER_ROWS * tensor->columns, sizeof(double));
    }
    return sample;
}

void kronecker_sample_free(struct kronecker_sample *sample) {
    if (!sample)
        return;
    for (uint32_t l = 0; l < sample->layers; l++) {
        free(sample->in[l]);
        free(sample->sums[l]);
        free(sample->derivative[l]);
    }
    matrix_scratch_free(sample->matrix);
    free(sample->label);
    free(sample->weight);
    free(sample);
}

/* ---- rows ---- */

void kronecker_sample_add(struct kronecker_sample *sample, const struct rows *rows,
                          uint32_t count) {
    size_t width = (size_t)sample->shape.features + 1;
    for (uint32_t i = 0; count && i < rows->count && sample->rows < KRONECKER_ROWS; i++) {
        if (weight_at(rows, i) == 0)
            continue;
        count--;
        /* A row of scaled columns: what is not stored is 0 before it is centred. */
        double *into = sample->in[0] + sample->rows * width;
        size_t n = sample->shape.features;
        uint64_t begin = rows->dense ? (uint64_t)i * n : rows->start[i];
        uint64_t end = rows->dense ? begin + n : rows->start[i + 1];
        for (size_t j = 0; j < n; j++)
            into[j] = 0;
        for (uint64_t v = begin; v < end; v++)
            into[rows->dense ? v - begin : rows->feature[v]] = value_at(rows->type, rows->value, v);
        for (size_t j = 0; j < n; j++)
            into[j] = (into[j] - sample->columns[j].mean) * sample->columns[j].scale;
        into[n] = 1;
        sample->label[sample->rows] = rows->label[i];
        sample->weight[sample->rows] = weight_at(rows, i);
        sample->rows++;
    }
}

/* ---- forward and backward ---- */

static void forward(struct kronecker_sample *sample, const double *point) {
    for (uint32_t l = 0; l < sample->layers; l++) {
        size_t in = sample->layout.tensor[l].rows + 1, out = sample->layout.tensor[l].columns;
        /* [W; b] of layer l, one below the other. */
        const struct layout_tensor *weight = &sample->layout.tensor[l];
        const struct layout_tensor *bias = &sample->layout.tensor[sample->layers + l];
        size_t weights = weight->rows * weight->columns;
        double *layer = memory_new(weights + bias->columns, sizeof *layer);
        memcpy(layer, point + weight->first, weights * sizeof *layer);
        memcpy(layer + weights, point + bias->first, bias->columns * sizeof *layer);
        matrix_product(sample->matrix, sample->rows, out, in, sample->in[l], in, layer, out,
                       sample->sums[l], out);
        free(layer);
        for (uint32_t i = 0; l + 1 < sample->layers && i < sample->rows; i++) {
            double *next = sample->in[l + 1] + i * (out + 1);
            const double *x = sample->sums[l] + i * out;
            activation_rows[sample->shape.network.activation].forward(out, next, x);
            next[out] = 1;
        }
    }
}

static void find_derivatives(struct kronecker_sample *sample) {
    size_t outputs = sample->shape.outputs, margins = sample->rows * outputs;
    double *last = sample->derivative[sample->layers - 1];
    double *loss = memory_new(sample->rows, sizeof *loss),
           *work = memory_new(margins, sizeof *work);
    const struct objective *objective = objective_of(sample->shape.kind);
    double unit = network_unit(&sample->shape.network);
    double scale = unit / objective_loss_unit(&sample->shape); /* as if labels were of size 1 */
    for (size_t i = 0; i < margins; i++)
        last[i] = unit * sample->sums[sample->layers - 1][i];
    objective->losses(&sample->shape.loss, sample->rows, outputs, sample->label, last, loss, work);
    for (size_t i = 0; i < sample->rows; i++)
        for (size_t k = 0; k < outputs; k++)
            last[i * outputs + k] = scale * last[i * outputs + k];
    free(loss);
    free(work);
}

static void backward(struct kronecker_sample *sample, const double *point) {
    const struct activation_row *activation = &activation_rows[sample->shape.network.activation];
    find_derivatives(sample);
    for (uint32_t l = sample->layers - 1; l > 0; l--) {
        const struct layout_tensor *tensor = &sample->layout.tensor[l];
        matrix_by_transposed(sample->matrix, sample->rows, tensor->rows, tensor->columns,
                             sample->derivative[l], tensor->columns, point + tensor->first,
                             tensor->columns, sample->derivative[l - 1], tensor->rows);
        /* `x` is what goes into the activation. */
        size_t n = sample->rows * tensor->rows;
        double *gradient = sample->derivative[l - 1];
        double *x = sample->sums[l - 1];
        if (!activation->back_takes_sums)
            activation->forward(n, x, x);
        activation->back(n, gradient, gradient, x);
    }
}

/* ---- factors ---- */

/* Rows times the root of their weight, in units of the mean weight: sums of squares are then those
 * of weighted rows. */
static void weigh(const struct kronecker_sample *sample, size_t n, double *a) {
    double sum = 0;
    for (size_t i = 0; i < sample->rows; i++)
        sum += sample->weight[i];
    for (size_t i = 0; i < sample->rows; i++) {
        double root = sqrt(sample->weight[i] * ((double)sample->rows / sum));
        for (size_t j = 0; j < n; j++)
            a[i * n + j] *= root;
    }
}

/* The mean of the squares of all elements: tr M/dim M. */
static double mean_square(const struct kronecker_sample *sample, size_t n, const double *a) {
    double sum = 0;
    for (size_t i = 0; i < sample->rows * n; i++)
        sum += a[i] * a[i];
    return sample->rows && n ? sum / (double)(sample->rows * n) : 0;
}

static bool is_scale(double mean) {
    return mean >= 1e-200 && mean <= 1e200;
}

/* Writes the identity, in place of a side that cannot be found. */
static double *write_identity(size_t n, double *out) {
    uint64_t size = kronecker_side_size(n), rank = kronecker_rank(n);
    memset(out, 0, size * sizeof *out);
    for (uint64_t i = 0; i <= rank; i++)
        out[i] = 1;
    return out + size;
}

/* Writes the side of aᵀa/rows, whose mean eigenvalue is `mean`, damped. */
static double *write_side(struct kronecker_sample *sample, size_t n, const double *a, double mean,
                          double damping, double *out) {
    double values[EIGEN_MAX], rest = mean * (double)n;
    size_t rank = kronecker_rank(n);
    double *vectors = memory_new(n * rank, sizeof *vectors);
    eigen_largest(sample->matrix, sample->rows, n, a, rank, values, vectors);
    for (size_t i = 0; i < rank; i++)
        rest -= values[i];
    rest = n > rank && rest > 0 ? rest / (double)(n - rank) : 0;
    out[0] = 1 / sqrt(rest + damping);
    for (size_t i = 0; i < rank; i++) {
        out[1 + i] = sqrt((values[i] + damping) / (rest + damping));
        for (size_t j = 0; j < n; j++)
            out[1 + rank + i * n + j] = vectors[j * rank + i];
    }
    free(vectors);
    return out + kronecker_side_size(n);
}

static bool all_finite(const double *from, const double *end) {
    while (from < end && isfinite(*from))
        from++;
    return from == end;
}

/* Both sides of a layer, or two identities: the sides share the damping. */
static double *write_layer(struct kronecker_sample *sample, uint32_t l, double *at) {
    size_t in = sample->layout.tensor[l].rows + 1, out = sample->layout.tensor[l].columns;
    weigh(sample, in, sample->in[l]);
    weigh(sample, out, sample->derivative[l]);
    double a = mean_square(sample, in, sample->in[l]);
    double b = mean_square(sample, out, sample->derivative[l]);
    double *end = at;
    if (is_scale(a) && is_scale(b)) {
        double balance = sqrt(a / b), root = sqrt(KRONECKER_DAMPING);
        end = write_side(sample, in, sample->in[l], a, root * balance, at);
        end = write_side(sample, out, sample->derivative[l], b, root / balance, end);
    }
    if (end > at && all_finite(at, end))
        return end;
    return write_identity(out, write_identity(in, at));
}

double *kronecker_find(struct kronecker_sample *sample, const double *point) {
    double *factors = memory_new(kronecker_size(&sample->layout), sizeof *factors), *at = factors;
    assert(sample->rows <= KRONECKER_ROWS);
    forward(sample, point);
    backward(sample, point);
    for (uint32_t l = 0; l < sample->layers; l++)
        at = write_layer(sample, l, at);
    assert(at == factors + kronecker_size(&sample->layout));
    return factors;
}

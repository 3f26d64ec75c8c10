/* A plug-in for dml: a factorisation machine of second order, for two classes.
 *
 * The margin of a row x is a linear model and, for each pair of columns, a product of their values
 * whose weight is the scalar product of two short vectors (S. Rendle, "Factorization Machines",
 * ICDM 2010, equations 1 and 5):
 *
 *     m(x) = b + sum_j w_j x_j + sum_{j < l} <v_j, v_l> x_j x_l
 *          = b + sum_j w_j x_j + 1/2 sum_f ((sum_j v_jf x_j)^2 - sum_j v_jf^2 x_j^2)
 *
 * So it learns which columns matter together, where a linear model only adds them up. The loss is
 * log(1 + e^-m) for rows of class 1, else log(1 + e^m).
 *
 * Build it with the Makefile beside it, and use it in a job with
 *
 *     objective = plugin
 *     plugin { library = "./fm.so", options = "rank = 8" }
 *
 * dml-objective(3) says what each function must do. */
#include <dml/objective.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct fm {
    uint32_t rank; /* numbers in the vector of a column */
    double *sum;   /* of one row: sum_j v_jf x_j, `rank` numbers */
};

/* ---- options ---- */

static int fm_open(const char *options, struct dml_form *form, void **state,
                   char error[DML_ERROR_BYTES]) {
    unsigned rank = 8;
    int end = 0;
    if (*options && (sscanf(options, " rank = %u %n", &rank, &end) != 1 || options[end])) {
        snprintf(error, DML_ERROR_BYTES, "allowed: \"rank = NUMBER\"");
        return 1;
    }
    if (rank < 1 || rank > 1024) {
        snprintf(error, DML_ERROR_BYTES, "the rank is %u; allowed: 1 to 1024", rank);
        return 1;
    }
    struct fm *fm = malloc(sizeof *fm);
    double *sum = malloc(rank * sizeof *sum);
    if (!fm || !sum) {
        snprintf(error, DML_ERROR_BYTES, "out of memory");
        return 1;
    }
    *fm = (struct fm){rank, sum};
    *state = fm;
    form->labels = DML_LABELS_BINARY;
    form->prediction = DML_PREDICTS_MARGIN;
    return 0;
}

/* ---- parameters: w, then v, then b ---- */

static int fm_tensors(void *state, const struct dml_data *data,
                      struct dml_tensor tensors[DML_TENSORS_MAX], uint32_t *count,
                      char error[DML_ERROR_BYTES]) {
    const struct fm *fm = state;
    (void)error;
    tensors[0] = (struct dml_tensor){
        .name = "w", .rows = data->features, .columns = 1, .by_feature = 1, .regularised = 1};
    /* At 0 the gradient by all of v would be 0, and nothing would ever move it. */
    tensors[1] = (struct dml_tensor){.name = "v",
                                     .rows = data->features,
                                     .columns = fm->rank,
                                     .by_feature = 1,
                                     .regularised = 1,
                                     .start = DML_START_UNIFORM,
                                     .bound = 0.05};
    tensors[2] = (struct dml_tensor){.name = "b", .rows = 1, .columns = 1};
    *count = 3;
    return 0;
}

/* ---- one row ---- */

struct row {
    uint64_t values;
    const uint32_t *column; /* NULL: value i is of column i */
    const double *value;
};

static struct row row_at(const struct dml_rows *rows, uint32_t i) {
    if (!rows->start)
        return (struct row){rows->features, NULL, rows->value + (uint64_t)i * rows->features};
    uint64_t from = rows->start[i];
    return (struct row){rows->start[i + 1] - from, rows->column + from, rows->value + from};
}

static uint64_t column_of(const struct row *row, uint64_t i) {
    return row->column ? row->column[i] : i;
}

/* The margin. Leaves sum_j v_jf x_j in fm->sum. */
static double margin_of(const struct fm *fm, const struct dml_data *data, const struct row *row,
                        const double *parameters) {
    const double *w = parameters, *v = w + data->features;
    double margin = v[(uint64_t)data->features * fm->rank], squares = 0;
    for (uint32_t f = 0; f < fm->rank; f++)
        fm->sum[f] = 0;
    for (uint64_t i = 0; i < row->values; i++) {
        uint64_t j = column_of(row, i);
        double x = row->value[i];
        margin += w[j] * x;
        for (uint32_t f = 0; f < fm->rank; f++) {
            double product = v[j * fm->rank + f] * x;
            fm->sum[f] += product;
            squares += product * product;
        }
    }
    double pairs = 0;
    for (uint32_t f = 0; f < fm->rank; f++)
        pairs += fm->sum[f] * fm->sum[f];
    return margin + (pairs - squares) / 2;
}

/* Adds `derivative`, that of the loss by the margin, times those of the margin by the parameters.
 */
static void add_gradient(const struct fm *fm, const struct dml_data *data, const struct row *row,
                         const double *parameters, double derivative, double *gradient) {
    const double *v = parameters + data->features;
    double *w_gradient = gradient, *v_gradient = gradient + data->features;
    v_gradient[(uint64_t)data->features * fm->rank] += derivative;
    for (uint64_t i = 0; i < row->values; i++) {
        uint64_t j = column_of(row, i);
        double x = row->value[i];
        w_gradient[j] += derivative * x;
        for (uint32_t f = 0; f < fm->rank; f++)
            v_gradient[j * fm->rank + f] += derivative * x * (fm->sum[f] - v[j * fm->rank + f] * x);
    }
}

/* ---- rows ---- */

static int fm_chunk(void *state, const struct dml_data *data, const struct dml_rows *rows,
                    const double *parameters, double *loss, double *gradient,
                    char error[DML_ERROR_BYTES]) {
    (void)error;
    for (uint32_t i = 0; i < rows->count; i++) {
        struct row row = row_at(rows, i);
        double sign = rows->label[i] > 0 ? 1 : -1;
        double m = sign * margin_of(state, data, &row, parameters);
        double small = exp(-fabs(m)); /* does not overflow */
        loss[i] = (m > 0 ? 0 : -m) + log1p(small);
        if (gradient)
            add_gradient(state, data, &row, parameters,
                         -sign * rows->weight[i] * (m > 0 ? small : 1) / (1 + small), gradient);
    }
    return 0;
}

static int fm_predict(void *state, const struct dml_data *data, const struct dml_rows *rows,
                      const double *parameters, double *prediction, char error[DML_ERROR_BYTES]) {
    (void)error;
    for (uint32_t i = 0; i < rows->count; i++) {
        struct row row = row_at(rows, i);
        prediction[i] = margin_of(state, data, &row, parameters);
    }
    return 0;
}

const struct dml_objective dml_objective = {
    DML_OBJECTIVE_HEAD, "factorisation machine", fm_open, fm_tensors, fm_chunk, fm_predict};

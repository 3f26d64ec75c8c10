#include "model/clusters.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/cluster_table.h"
#include "numeric/dense.h"
#include "numeric/inverse.h"
#include "objective/objective.h"

struct cluster_pass {
    const struct model_layout *layout;
    const struct objective *objective;
    const struct label_lists *lists; /* NULL: rows have a label each */
    const double *parameters;
    size_t count;     /* of parameters */
    double *triangle; /* H + Λ */
    size_t *first; /* of the values of a row: the parameter of output 0; owned, as are the next */
    double *value; /* where outputs share their weights without those of the biases */
    uint32_t values;
    double *has;          /* of a row with a list of classes: 1 for each of these, else 0 */
    double *derivative;   /* by each output; margins before */
    double *work;         /* as losses want it */
    double *second;       /* outputs × outputs */
    double *row_sums;     /* of these, where outputs share their weights */
    const double *centre; /* of columns, or NULL */
    int exponent;         /* of weights */
    struct cluster_table table;
};

/* ---- whether it can be done ---- */

static int count_clusters(struct set *set, uint64_t most, struct cluster_table *table) {
    uint32_t chunks = set_training_chunks(set_info(set));
    int code = 0;
    for (uint32_t chunk = 0; chunk < chunks && !code; chunk++) {
        struct rows rows = {0};
        code = set_chunk(set, chunk, &rows);
        for (uint32_t row = 0; row < rows.count && table->count <= most; row++)
            cluster_table_find(table, rows.cluster[row], 0);
    }
    return code;
}

int clusters_check(struct set *set, const char *file, uint64_t parameters) {
    assert(parameters > 0);
    struct cluster_table table = {0};
    uint64_t most = CLUSTER_SUMS_MAX / parameters;
    int code = count_clusters(set, most, &table);
    if (!code && table.count < 2)
        code = error_set(ERROR_CONFIG,
                         "%s: key `summary_cluster`: all rows are of one cluster, and errors need "
                         "two or more; name another column",
                         file);
    else if (!code && table.count > most)
        code = error_set(ERROR_CONFIG,
                         "%s: key `summary_cluster`: there are more than %llu clusters, which is "
                         "too many with %llu parameters; name another column, or take columns away",
                         file, (unsigned long long)most, (unsigned long long)parameters);
    cluster_table_release(&table);
    return code;
}

/* ---- sums ---- */

static void add_value(struct cluster_pass *pass, size_t first, double value) {
    pass->first[pass->values] = first;
    pass->value[pass->values++] = value;
    for (uint32_t k = 0; k < pass->layout->outputs; k++)
        pass->derivative[k] += pass->parameters[first + (pass->layout->shared ? 0 : k)] * value;
}

static void add_biases(struct cluster_pass *pass) {
    size_t first = pass->layout->features * model_rows(pass->layout);
    if (!pass->layout->intercept)
        return;
    if (!pass->layout->shared)
        add_value(pass, first, 1);
    for (uint32_t k = 0; pass->layout->shared && k < pass->layout->outputs; k++)
        pass->derivative[k] += pass->parameters[first + k];
}

/* The values of a row and its margins. */
static void read_row(struct cluster_pass *pass, const struct rows *rows, uint32_t row) {
    size_t begin = rows->dense ? (size_t)row * rows->features : rows->start[row];
    size_t end = rows->dense ? begin + rows->features : rows->start[row + 1];
    size_t outputs = pass->layout->outputs, weights = model_rows(pass->layout);
    pass->values = 0;
    for (size_t k = 0; k < outputs; k++)
        pass->derivative[k] = rows->offset ? rows->offset[row] : 0;
    for (size_t at = begin; at < end; at++) {
        double value = value_at(rows->type, rows->value, at);
        size_t column = rows->dense ? at - begin : rows->feature[at];
        if (value != 0)
            add_value(pass, column * weights, value);
    }
    add_biases(pass);
}

/* The label of a row as losses take it. */
static const double *label_of(struct cluster_pass *pass, const double *label) {
    const struct label_lists *lists = pass->lists;
    if (!lists)
        return label;
    uint32_t list = (uint32_t)*label;
    for (uint32_t k = 0; k < pass->layout->outputs; k++)
        pass->has[k] = 0;
    for (uint32_t i = lists->start[list]; i < lists->start[list + 1]; i++)
        pass->has[lists->class[i]] = 1;
    return pass->has;
}

/* From margins to derivatives, and the second ones. */
static void differentiate(struct cluster_pass *pass, const double *label) {
    const struct objective *objective = pass->objective;
    const struct loss_parameters *parameters = &pass->layout->loss;
    size_t outputs = pass->layout->outputs;
    double loss;
    objective->losses(parameters, 1, outputs, label, pass->derivative, &loss, pass->work);
    objective->second(parameters, 1, outputs, label, pass->derivative, pass->work, pass->second);
    if (objective->expected)
        objective->expected(parameters, 1, pass->derivative, pass->second);
    for (size_t k = 0; k < outputs && outputs > 1; k++)
        objective->second_row(outputs, *label, pass->derivative, k, pass->second + k * outputs);
    if (pass->layout->shared)
        objective->second_sums(1, outputs, label, pass->derivative, pass->row_sums);
}

/* Adds to the row of H that value `i` has by output `k`. */
static void add_second(struct cluster_pass *pass, uint32_t i, size_t k, double weight) {
    size_t outputs = pass->layout->outputs;
    double *to = pass->triangle + triangle_row(pass->first[i] + k);
    for (size_t other = 0; other < outputs; other++) {
        double by = weight * pass->second[k * outputs + other] * pass->value[i];
        for (uint32_t j = 0; j < i + (other <= k); j++)
            to[pass->first[j] + other] += by * pass->value[j];
    }
}

static void add_of_outputs(struct cluster_pass *pass, double weight, double *sums) {
    for (uint32_t i = 0; i < pass->values; i++)
        for (size_t k = 0; k < pass->layout->outputs; k++) {
            sums[pass->first[i] + k] += weight * pass->derivative[k] * pass->value[i];
            add_second(pass, i, k, weight);
        }
}

/* Adds, for a row of H or of the scores, what belongs to each value. */
static void add_values(const struct cluster_pass *pass, uint32_t values, double by, double *to) {
    for (uint32_t j = 0; j < values; j++)
        to[pass->first[j]] += by * pass->value[j];
}

/* The weights see the sums over all outputs, and each bias its own. */
static void add_shared(struct cluster_pass *pass, double weight, double *sums) {
    size_t outputs = pass->layout->outputs, features = pass->layout->features;
    double score = 0, second = 0;
    for (size_t k = 0; k < outputs; k++) {
        double *to = pass->triangle + triangle_row(features + k);
        score += pass->derivative[k];
        second += pass->row_sums[k];
        sums[features + k] += weight * pass->derivative[k];
        add_values(pass, pass->values, weight * pass->row_sums[k], to);
        for (size_t other = 0; other <= k; other++)
            to[features + other] += weight * pass->second[k * outputs + other];
    }
    add_values(pass, pass->values, weight * score, sums);
    for (uint32_t i = 0; i < pass->values; i++)
        add_values(pass, i + 1, weight * second * pass->value[i],
                   pass->triangle + triangle_row(pass->first[i]));
}

static void add_row(struct cluster_pass *pass, const struct rows *rows, uint32_t row) {
    double weight = rows->weight ? ldexp(rows->weight[row], -pass->exponent) : 1;
    struct cluster_table *table = &pass->table;
    read_row(pass, rows, row);
    differentiate(pass, label_of(pass, rows->label + row));
    uint64_t cluster = cluster_table_find(table, rows->cluster[row], pass->count);
    assert(cluster < table->count);
    double *sums = table->sums + cluster * pass->count;
    table->rows[cluster]++;
    if (pass->layout->shared)
        add_shared(pass, weight, sums);
    else
        add_of_outputs(pass, weight, sums);
}

static int read_rows(struct cluster_pass *pass, struct set *set) {
    uint32_t chunks = set_training_chunks(set_info(set));
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        struct rows rows;
        int code = set_chunk(set, chunk, &rows);
        if (code)
            return code;
        for (uint32_t row = 0; row < rows.count; row++)
            add_row(pass, &rows, row);
    }
    return 0;
}

/* M by the roots of H's diagonal. */
static void multiply_sums(const struct cluster_pass *pass, const double *root, double *m) {
    size_t n = pass->count;
    for (uint64_t c = 0; c < pass->table.count; c++) {
        double *s = pass->table.sums + c * n;
        for (size_t r = 0; r < n; r++)
            s[r] /= root[r];
        for (size_t r = 0; r < n; r++)
            for (size_t k = 0; k <= r; k++)
                m[triangle_row(r) + k] += s[r] * s[k];
    }
}

/* H to a diagonal of 1, then its factor; rows of aliased parameters stay out. */
static bool factor(const struct cluster_pass *pass, const double *variance, double *root) {
    size_t n = pass->count;
    double *least = memory_new(n, sizeof *least), *h = pass->triangle;
    for (size_t r = 0; r < n; r++) {
        double square = h[triangle_row(r) + r];
        root[r] = square > 0 ? sqrt(square) : 1;
        least[r] = isnan(variance[r]) ? 2 : 0;
    }
    for (size_t r = 0; r < n; r++)
        for (size_t k = 0; k <= r; k++)
            h[triangle_row(r) + k] = r == k ? 1 : h[triangle_row(r) + k] / root[r] / root[k];
    bool found = cholesky_ranked(n, h, least);
    free(least);
    return found;
}

/* A bias of the data is b_k − Σ_j centre_j·w_jk of the set. In units of the root of the bias. */
static void restate_biases(const struct cluster_pass *pass, const double *variance,
                           const double *root, const double *m, double *made) {
    size_t n = pass->count, weights = model_rows(pass->layout);
    size_t biases = pass->layout->features * weights;
    double *u = memory_new(n, sizeof *u);
    for (size_t r = biases; r < n && pass->centre; r++) {
        size_t k = pass->layout->shared ? 0 : r - biases;
        for (size_t i = 0; i < n; i++) {
            bool of_bias = i < biases && i % weights == k && !isnan(variance[i]);
            u[i] = of_bias ? -pass->centre[i / weights] * root[r] / root[i] : i == r;
        }
        made[r] = inverse_form(n, pass->triangle, m, u);
    }
    free(u);
}

static void make_variance(struct cluster_pass *pass, const double *variance, double *made) {
    size_t n = pass->count;
    double *root = memory_new(n, sizeof *root), *m = memory_new(triangle_row(n), sizeof *m);
    bool found = factor(pass, variance, root);
    multiply_sums(pass, root, m);
    if (found)
        inverse_sandwich(n, pass->triangle, m, made);
    if (found)
        restate_biases(pass, variance, root, m, made);
    for (size_t r = 0; r < n; r++)
        made[r] = found && !isnan(variance[r]) ? made[r] / root[r] / root[r] : NAN;
    free(root);
    free(m);
}

static void begin(struct cluster_pass *pass) {
    size_t outputs = pass->layout->outputs;
    pass->triangle = memory_new(triangle_row(pass->count), sizeof *pass->triangle);
    pass->first = memory_new(pass->count, sizeof *pass->first);
    pass->value = memory_new(pass->count, sizeof *pass->value);
    pass->has = memory_new(outputs, sizeof *pass->has);
    pass->derivative = memory_new(outputs, sizeof *pass->derivative);
    pass->work = memory_new(outputs, sizeof *pass->work);
    pass->second = memory_new(outputs * outputs, sizeof *pass->second);
    pass->row_sums = memory_new(outputs, sizeof *pass->row_sums);
}

static void end(struct cluster_pass *pass) {
    free(pass->triangle);
    free(pass->first);
    free(pass->value);
    free(pass->has);
    free(pass->derivative);
    free(pass->work);
    free(pass->second);
    free(pass->row_sums);
    cluster_table_release(&pass->table);
}

int clusters_find(struct set *set, const struct model_layout *layout,
                  const struct cluster_point *point, struct cluster_errors *errors) {
    size_t count = (size_t)model_parameters(layout);
    struct cluster_pass pass = {.layout = layout,
                                .objective = objective_find(layout->objective),
                                .lists = set_info(set)->lists,
                                .parameters = point->parameters,
                                .count = count,
                                .centre = set_info(set)->centre,
                                .exponent = set_info(set)->weight_exponent};
    assert(!layout->shared || (layout->intercept && pass.objective->second_sums));
    begin(&pass);
    int code = read_rows(&pass, set);
    if (!code) {
        *errors = (struct cluster_errors){.clusters = pass.table.count};
        errors->variance = memory_new(count, sizeof *errors->variance);
        for (size_t i = 0; i < count && point->ridge; i++)
            pass.triangle[triangle_row(i) + i] += point->ridge[i];
        make_variance(&pass, point->variance, errors->variance);
        for (uint64_t i = 0; i < pass.table.count; i++)
            errors->single_rows += pass.table.rows[i] == 1;
    }
    end(&pass);
    return code;
}

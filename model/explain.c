#include "model/explain.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/family.h"
#include "objective/shape.h"

/* The features of a table that no column's name fits, as those of texts that are kept in no name.
 */
#define OTHERS "(other)"

/* A unit that moves less in a step has its slope in the middle of it: a secant would have lost too
 * many digits. The error of that is the third derivative times the cube of this. */
#define SECANT_LEAST 1e-6

struct explainer {
    const struct model *model;
    uint32_t outputs;
    uint32_t columns;
    char **name;
    uint32_t *column; /* of each feature; NULL: each is a column */

    /* What a feature's value is multiplied by: `width` numbers, weight[j·feature_step + u·step] for
     * feature j. Of a network these are the units of the first layer. */
    uint32_t width;
    const double *weight;
    uint64_t feature_step, step;

    /* columns × width, of numbers and of all else: what means come to, and what a row has beyond
     * that. A column has one number, whose distance from its mean is taken first: where numbers are
     * far from 0 the difference of two products would be rounding alone. */
    double *centre[2], *sum[2];
    double *base; /* outputs */

    /* The members below are used for networks alone. */
    uint32_t layers;                        /* L, with that of the outputs */
    uint32_t units[NETWORK_LAYERS_MAX + 2]; /* of layer l at [l], 1 to L; the outputs that share a
                                               column of WL count once */
    const double *layer[NETWORK_LAYERS_MAX + 2], *bias[NETWORK_LAYERS_MAX + 2]; /* Wl, bl */
    double *means;                           /* the sums of the first layer at the means */
    double *first;                           /* and what the row adds to them */
    double *sums[2][NETWORK_LAYERS_MAX + 1]; /* of layer l before and after a step, and */
    double *activated[2][NETWORK_LAYERS_MAX + 1];
    double *slope[NETWORK_LAYERS_MAX + 1];
    double *back[2];    /* derivatives by the units of a layer, and of the one below */
    double *multiplier; /* units[L] × width: by the sums of the first layer, over all steps */
};

/* ---- columns ---- */

/* Columns of a table have their numbers, its crosses those behind them, and what is of neither
 * comes last. Columns without features are left out. */
static void find_columns_of_table(struct explainer *explainer) {
    const struct model_layout *layout = &explainer->model->layout;
    const struct table *table = layout->table;
    const uint32_t most = table->columns + table->crosses + 1;
    uint32_t *number = memory_new(most, sizeof *number); /* among those with features, from 1 */
    explainer->column = memory_new(layout->features, sizeof *explainer->column);
    for (uint64_t j = 0; j < layout->features; j++) {
        const char *name = layout->feature_names ? layout->feature_names[j] : "";
        uint32_t c = table_column_of(table, layout->feature_id[j], name);
        if (c == COLUMN_NOWHERE)
            c = table->columns + table_cross_of(table, name);
        assert(c < most);
        explainer->column[j] = c;
        number[c] = 1;
    }
    explainer->name = memory_new(most, sizeof *explainer->name);
    for (uint32_t c = 0; c < most; c++) {
        char label[COLUMN_LABEL_TEXT];
        if (!number[c])
            continue;
        explainer->name[explainer->columns] =
            c + 1 == most         ? memory_copy_string(OTHERS)
            : c >= table->columns ? table_cross_name(table, &table->cross[c - table->columns])
                                  : memory_copy_string(table_label(table, c, label));
        number[c] = explainer->columns++;
    }
    for (uint64_t j = 0; j < layout->features; j++)
        explainer->column[j] = number[explainer->column[j]];
    free(number);
}

static void find_columns(struct explainer *explainer) {
    const struct model_layout *layout = &explainer->model->layout;
    if (layout->table) {
        find_columns_of_table(explainer);
        return;
    }
    assert(layout->features <= FEATURES_MAX); /* sets in tiles have no means */
    explainer->columns = (uint32_t)layout->features;
    explainer->name = memory_new(explainer->columns, sizeof *explainer->name);
    for (uint32_t c = 0; c < explainer->columns; c++) {
        const char *name = layout->feature_names ? layout->feature_names[c] : "";
        explainer->name[c] = *name
                                 ? memory_copy_string(name)
                                 : memory_format("%llu", (unsigned long long)layout->feature_id[c]);
    }
}

enum part { OF_NUMBERS, OF_OTHERS };

/* Features of data that is no table have a column each, as if they were numbers. */
static enum part part_of(const struct explainer *explainer, uint64_t feature) {
    const uint64_t id = explainer->model->layout.feature_id[feature];
    return explainer->column && (id & FEATURE_HASHED) ? OF_OTHERS : OF_NUMBERS;
}

/* Adds the value of a feature to the sums of its column, or puts it there. */
static void add_feature(const struct explainer *explainer, uint64_t feature, double value,
                        bool adds, double *sums) {
    uint32_t c = explainer->column ? explainer->column[feature] : (uint32_t)feature;
    const double *weight = explainer->weight + feature * explainer->feature_step;
    double *sum = sums + (size_t)c * explainer->width;
    for (uint32_t u = 0; u < explainer->width; u++)
        sum[u] = (adds ? sum[u] : 0) + value * weight[u * explainer->step];
}

/* ---- networks ---- */

static void begin_network(struct explainer *explainer) {
    const struct layout vector = model_tensors(&explainer->model->layout);
    const uint32_t layers = explainer->layers = vector.count / 2;
    uint32_t widest = 0;
    for (uint32_t l = 1; l <= layers; l++) {
        const struct layout_tensor *weight = &vector.tensor[l - 1];
        const struct layout_tensor *bias = &vector.tensor[layers + l - 1];
        explainer->layer[l] = explainer->model->vector + weight->first;
        explainer->bias[l] = explainer->model->vector + bias->first;
        explainer->units[l] = (uint32_t)weight->columns;
        widest = explainer->units[l] > widest ? explainer->units[l] : widest;
    }
    explainer->weight = explainer->layer[1];
    explainer->width = explainer->units[1];
    explainer->feature_step = explainer->width;
    explainer->step = 1;
    for (uint32_t l = 1; l < layers; l++) {
        for (int end = 0; end < 2; end++) {
            explainer->sums[end][l] = memory_new(explainer->units[l], sizeof(double));
            explainer->activated[end][l] = memory_new(explainer->units[l], sizeof(double));
        }
        explainer->slope[l] = memory_new(explainer->units[l], sizeof(double));
    }
    for (int i = 0; i < 2; i++)
        explainer->back[i] = memory_new(widest, sizeof(double));
    explainer->means = memory_new(explainer->width, sizeof *explainer->means);
    explainer->first = memory_new(explainer->width, sizeof *explainer->first);
    explainer->multiplier = memory_new((size_t)explainer->units[layers] * explainer->width,
                                       sizeof *explainer->multiplier);
}

/* The network's. */
static const struct activation_row *activation_of(const struct explainer *explainer) {
    return &activation_rows[explainer->model->layout.network.activation];
}

static double slope_at(const struct activation_row *activation, double x) {
    const double one = 1;
    double y, slope;
    activation->forward(1, &y, &x);
    activation->back(1, &slope, &one, activation->back_takes_sums ? &x : &y);
    return slope;
}

/* The sums and units of the hidden layers where the first layer's sums are `share` of the way from
 * the means to the row. */
static void forward(const struct explainer *explainer, double share, int end) {
    double *sums = explainer->sums[end][1];
    for (uint32_t u = 0; u < explainer->width; u++)
        sums[u] = explainer->means[u] + share * explainer->first[u];
    const struct activation_row *activation = activation_of(explainer);
    activation->forward(explainer->width, explainer->activated[end][1], sums);
    for (uint32_t l = 2; l < explainer->layers; l++) {
        const uint32_t units = explainer->units[l];
        sums = explainer->sums[end][l];
        memcpy(sums, explainer->bias[l], units * sizeof *sums);
        for (uint32_t i = 0; i < explainer->units[l - 1]; i++)
            for (uint32_t u = 0; u < units; u++)
                sums[u] += explainer->activated[end][l - 1][i] * explainer->layer[l][i * units + u];
        activation->forward(units, explainer->activated[end][l], sums);
    }
}

/* The outputs at one end of a step, without their biases, which differ where they share weights. */
static double output_of(const struct explainer *explainer, uint32_t output, int end) {
    const uint32_t last = explainer->layers, units = explainer->units[last];
    const double *activated = explainer->activated[end][last - 1];
    double sum = 0;
    for (uint32_t i = 0; i < explainer->units[last - 1]; i++)
        sum += activated[i] * explainer->layer[last][i * units + output];
    return sum;
}

/* The slopes of all units over a step, whose ends are known. */
static void find_slopes(const struct explainer *explainer) {
    const struct activation_row *activation = activation_of(explainer);
    /* What relu gains between two sums has no rounding of its own. */
    const bool is_relu = activation == &activation_rows[ACTIVATION_RELU];
    const double least = is_relu ? 0 : SECANT_LEAST;
    for (uint32_t l = 1; l < explainer->layers; l++)
        for (uint32_t u = 0; u < explainer->units[l]; u++) {
            const double from = explainer->sums[0][l][u], way = explainer->sums[1][l][u] - from;
            const double gain = explainer->activated[1][l][u] - explainer->activated[0][l][u];
            explainer->slope[l][u] =
                fabs(way) > least ? gain / way : slope_at(activation, from + way / 2);
        }
}

/* Adds a step's share of the derivatives of an output by the sums of the first layer. */
static void add_multiplier(const struct explainer *explainer, uint32_t output, double share) {
    double *upper = explainer->back[0], *lower = explainer->back[1];
    for (uint32_t l = explainer->layers; l > 1; l--) {
        const uint32_t units = explainer->units[l];
        for (uint32_t i = 0; i < explainer->units[l - 1]; i++) {
            const double *weight = explainer->layer[l] + (size_t)i * units;
            double sum = 0;
            for (uint32_t u = 0; u < units && l < explainer->layers; u++)
                sum += weight[u] * upper[u];
            lower[i] = (l == explainer->layers ? weight[output] : sum) * explainer->slope[l - 1][i];
        }
        double *swapped = upper;
        upper = lower;
        lower = swapped;
    }
    double *multiplier = explainer->multiplier + (size_t)output * explainer->width;
    for (uint32_t u = 0; u < explainer->width; u++)
        multiplier[u] += share * upper[u];
}

/* Adds up the columns. */
static void total_of(const struct explainer *explainer, const double *sums, double *total) {
    const uint32_t width = explainer->width;
    memset(total, 0, width * sizeof *total);
    for (uint32_t c = 0; c < explainer->columns; c++)
        for (uint32_t u = 0; u < width; u++)
            total[u] += sums[(size_t)c * width + u];
}

/* Finds the multipliers of the row whose sums there are, by so many steps. */
static void integrate(struct explainer *explainer, int steps) {
    const uint32_t outputs = explainer->units[explainer->layers], width = explainer->width;
    memset(explainer->multiplier, 0, (size_t)outputs * width * sizeof *explainer->multiplier);
    forward(explainer, 0, 0);
    for (int step = 1; step <= steps; step++) {
        forward(explainer, (double)step / steps, 1);
        find_slopes(explainer);
        for (uint32_t k = 0; k < outputs; k++)
            add_multiplier(explainer, k, 1.0 / steps);
        for (uint32_t l = 1; l < explainer->layers; l++) {
            double *sums = explainer->sums[0][l], *activated = explainer->activated[0][l];
            explainer->sums[0][l] = explainer->sums[1][l];
            explainer->activated[0][l] = explainer->activated[1][l];
            explainer->sums[1][l] = sums;
            explainer->activated[1][l] = activated;
        }
    }
}

/* Takes the columns by the multipliers. Answers whether that moves no contribution to an output
 * from what it was by more than EXPLAIN_CHANGE of the largest. */
static bool multiply_columns(const struct explainer *explainer, double *contributions) {
    const uint32_t width = explainer->width, columns = explainer->columns;
    bool settled = true;
    for (uint32_t k = 0; k < explainer->outputs; k++) {
        const bool shares = explainer->units[explainer->layers] == 1;
        const double *multiplier = explainer->multiplier + (size_t)(shares ? 0 : k) * width;
        double change = 0, largest = 0;
        for (uint32_t c = 0; c < columns; c++) {
            const double *sum = explainer->sum[OF_NUMBERS] + (size_t)c * width;
            double contribution = 0;
            for (uint32_t u = 0; u < width; u++)
                contribution += multiplier[u] * sum[u];
            double *found = &contributions[(size_t)k * columns + c];
            change = fmax(change, fabs(contribution - *found));
            largest = fmax(largest, fabs(contribution));
            *found = contribution;
        }
        settled = settled && change <= EXPLAIN_CHANGE * largest;
    }
    return settled;
}

static void explain_by_network(struct explainer *explainer, double *contributions) {
    const bool is_exact = explainer->layers == 2; /* one hidden layer */
    int steps = is_exact ? 1 : EXPLAIN_STEPS_LEAST;
    total_of(explainer, explainer->sum[OF_NUMBERS], explainer->first);
    memset(contributions, 0, (size_t)explainer->outputs * explainer->columns * sizeof(double));
    integrate(explainer, steps);
    while (!multiply_columns(explainer, contributions) && !is_exact && steps < EXPLAIN_STEPS_MOST) {
        steps *= 2;
        integrate(explainer, steps);
    }
}

/* ---- the base ---- */

static void find_base(struct explainer *explainer) {
    const struct model *model = explainer->model;
    const uint32_t width = explainer->width;
    explainer->base = memory_new(explainer->outputs, sizeof *explainer->base);
    double *total = memory_new(width, sizeof *total), *rest = memory_new(width, sizeof *rest);
    total_of(explainer, explainer->centre[OF_NUMBERS], total);
    if (explainer->column)
        total_of(explainer, explainer->centre[OF_OTHERS], rest);
    for (uint32_t u = 0; u < width; u++)
        total[u] += rest[u];
    free(rest);
    for (uint32_t k = 0; k < explainer->outputs && model->weight; k++)
        explainer->base[k] = total[width > 1 ? k : 0] + (model->bias ? model->bias[k] : 0);
    for (uint32_t u = 0; u < width && model->vector; u++)
        explainer->means[u] = explainer->bias[1][u] + total[u];
    if (model->vector)
        forward(explainer, 0, 0);
    for (uint32_t k = 0; k < explainer->outputs && model->vector; k++) {
        const bool shares = explainer->units[explainer->layers] == 1;
        explainer->base[k] =
            output_of(explainer, shares ? 0 : k, 0) + explainer->bias[explainer->layers][k];
    }
    free(total);
}

/* ---- all ---- */

static int check_model(const struct model *model) {
    const struct model_layout *layout = &model->layout;
    if (model_family(layout)->family->own_tensors)
        return error_set(ERROR_USAGE,
                         "%s is a model of a plug-in, whose library alone knows what a column "
                         "contributes: it cannot be explained",
                         model->folder);
    if (!layout->mean)
        return error_set(ERROR_USAGE,
                         "%s does not have the means of its features, against which contributions "
                         "are measured: models of data in tiles and of development versions cannot "
                         "be explained; train the model again, without tiles",
                         model->folder);
    for (uint64_t j = 0; j < layout->features; j++)
        if (!isfinite(layout->mean[j]))
            return error_set(ERROR_DATA,
                             "%s: the mean of feature %llu is not finite: the model cannot be "
                             "explained",
                             model->folder, (unsigned long long)layout->feature_id[j]);
    return 0;
}

int explainer_new(const struct model *model, struct explainer **result) {
    const struct model_layout *layout = &model->layout;
    int code = check_model(model);
    if (code)
        return code;
    struct explainer *explainer = memory_new(1, sizeof *explainer);
    explainer->model = model;
    explainer->outputs = layout->outputs;
    find_columns(explainer);
    if (model->weight) {
        explainer->weight = model->weight;
        explainer->width = model_rows(layout);
        explainer->feature_step = 1;
        explainer->step = layout->features;
    } else {
        begin_network(explainer);
    }
    const size_t count = (size_t)explainer->columns * explainer->width;
    for (enum part part = OF_NUMBERS; part <= (explainer->column ? OF_OTHERS : OF_NUMBERS);
         part++) {
        explainer->centre[part] = memory_new(count, sizeof(double));
        explainer->sum[part] = memory_new(count, sizeof(double));
    }
    for (uint64_t j = 0; j < layout->features; j++)
        if (layout->mean[j] != 0)
            add_feature(explainer, j, layout->mean[j], true,
                        explainer->centre[part_of(explainer, j)]);
    find_base(explainer);
    *result = explainer;
    return 0;
}

void explainer_free(struct explainer *explainer) {
    if (!explainer)
        return;
    for (uint32_t c = 0; c < explainer->columns; c++)
        free(explainer->name[c]);
    for (uint32_t l = 1; l < explainer->layers; l++) {
        for (int end = 0; end < 2; end++) {
            free(explainer->sums[end][l]);
            free(explainer->activated[end][l]);
        }
        free(explainer->slope[l]);
    }
    free(explainer->name);
    free(explainer->column);
    for (enum part part = OF_NUMBERS; part <= OF_OTHERS; part++) {
        free(explainer->centre[part]);
        free(explainer->sum[part]);
    }
    free(explainer->base);
    free(explainer->means);
    free(explainer->first);
    free(explainer->back[0]);
    free(explainer->back[1]);
    free(explainer->multiplier);
    free(explainer);
}

uint32_t explainer_columns(const struct explainer *explainer) {
    return explainer->columns;
}

const char *const *explainer_names(const struct explainer *explainer) {
    return (const char *const *)explainer->name;
}

const double *explainer_base(const struct explainer *explainer) {
    return explainer->base;
}

void explainer_row(struct explainer *explainer, const uint64_t *feature, const double *value,
                   size_t count, double *contributions) {
    const uint32_t width = explainer->width, columns = explainer->columns;
    const double *mean = explainer->model->layout.mean;
    double *sum = explainer->sum[OF_NUMBERS], *others = explainer->sum[OF_OTHERS];
    for (size_t i = 0; i < (size_t)columns * width; i++)
        sum[i] = -explainer->centre[OF_NUMBERS][i];
    for (size_t i = 0; others && i < (size_t)columns * width; i++)
        others[i] = -explainer->centre[OF_OTHERS][i];
    for (size_t i = 0; i < count; i++)
        if (part_of(explainer, feature[i]) == OF_NUMBERS)
            add_feature(explainer, feature[i], value[i] - mean[feature[i]], false, sum);
        else
            add_feature(explainer, feature[i], value[i], true, others);
    for (size_t i = 0; others && i < (size_t)columns * width; i++)
        sum[i] += others[i];
    if (!explainer->layers) {
        for (uint32_t k = 0; k < explainer->outputs; k++)
            for (uint32_t c = 0; c < columns; c++)
                contributions[(size_t)k * columns + c] =
                    sum[(size_t)c * width + (width > 1 ? k : 0)];
        return;
    }
    explain_by_network(explainer, contributions);
}

void explainer_largest(const struct explainer *explainer, const double *contribution, uint32_t most,
                       uint32_t *column) {
    uint32_t count = 0;
    assert(most <= explainer->columns);
    /* Each goes to its place among the largest so far. */
    for (uint32_t c = 0; c < explainer->columns && most; c++) {
        const double size = fabs(contribution[c]);
        if (count == most && !(size > fabs(contribution[column[most - 1]])))
            continue;
        uint32_t at = count < most ? count++ : most - 1;
        for (; at > 0 && size > fabs(contribution[column[at - 1]]); at--)
            column[at] = column[at - 1];
        column[at] = c;
    }
}

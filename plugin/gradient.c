/* Whether the gradient that a library gives is that of its loss. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "plugin/ask.h"

/* Elements of a tensor that are looked at: half of them among those that are not 0. A question
 * about a large model costs a copy of it. */
#define ELEMENTS_MOST 64
#define ELEMENTS_OF_LARGE 8
#define LARGE_MODEL 1000000

/* A difference agrees if it is so near, or as near as rounding of the losses allows. */
#define NEAR 1e-4
#define ROUNDING (64 * DBL_EPSILON)

/* Columns may have any scale, and so the right step: the best of these decides, of those that are
 * not so short that rounding is most of the difference; the first one is always asked. */
#define NOISE 0.01
static const double steps[] = {1e-3, 1e-5, 1e-7, 1e-9};
#define STEPS (sizeof steps / sizeof *steps)

/* A first one that is good enough needs no other. */
#define GOOD 0.01

struct gradient_trial {
    struct plugin *plugin;
    const struct plugin_data *data;
    const struct layout *layout;
    struct rows rows;
    struct random random;
    uint64_t count;
    double *point, *gradient, *weight;
    double loss;
    uint64_t wrong;
};

static int loss_at(struct gradient_trial *trial, bool gradient, struct plugin_result *result) {
    return plugin_chunk(trial->plugin, trial->data, &trial->rows, trial->point, trial->count,
                        gradient, result);
}

/* A point around the start, as near as it takes for a loss that is finite. */
static int find_point(struct gradient_trial *trial) {
    struct plugin_result result = {0};
    int code = 0;
    for (double reach = 0.1;; reach = reach > 1e-9 ? reach / 16 : 0) {
        layout_start(trial->layout, 0, trial->count, trial->point);
        for (uint64_t i = 0; i < trial->count; i++)
            trial->point[i] += reach * (2 * random_unit(&trial->random) - 1);
        code = loss_at(trial, true, &result);
        if (code || result.gradient || reach == 0)
            break;
    }
    if (!code && !result.gradient)
        code = plugin_refuse(trial->plugin, "the loss is not finite where a training starts");
    if (code)
        return code;
    trial->loss = result.loss;
    memcpy(trial->gradient, result.gradient, trial->count * sizeof *trial->gradient);
    return 0;
}

/* A function of its arguments alone gives the same again, with the gradient and without it. */
static int check_repeated(struct gradient_trial *trial) {
    struct plugin_result again, without;
    int code = loss_at(trial, true, &again);
    if (!code && (memcmp(&again.loss, &trial->loss, sizeof again.loss) != 0 ||
                  memcmp(again.gradient, trial->gradient, trial->count * sizeof(double)) != 0))
        code = plugin_refuse(trial->plugin,
                             "chunk() gives other bits for the same rows at the same parameters");
    if (!code)
        code = loss_at(trial, false, &without);
    if (!code && memcmp(&without.loss, &trial->loss, sizeof without.loss) != 0)
        code = plugin_refuse(trial->plugin,
                             "chunk() gives a loss of %.17g with the gradient and of %.17g without",
                             trial->loss, without.loss);
    return code;
}

struct comparison {
    double difference;
    double error; /* how far the element is from it, as a share of what is allowed */
    bool noisy;   /* it may be rounding alone */
};

static int compare_step(struct gradient_trial *trial, uint64_t element, double step,
                        struct comparison *found) {
    double at = trial->point[element], given = trial->gradient[element];
    double where[2] = {at + step, at - step}, width = where[0] - where[1];
    struct plugin_result sides[2] = {0};
    int code = 0;
    for (int side = 0; side < 2 && !code; side++) {
        trial->point[element] = where[side];
        code = loss_at(trial, false, &sides[side]);
    }
    trial->point[element] = at;
    found->difference = (sides[0].loss - sides[1].loss) / width;
    double size = fmax(fabs(given), fabs(found->difference));
    double rounding = ROUNDING * fabs(trial->loss) / width;
    found->noisy = rounding > NOISE * size;
    found->error = isfinite(found->difference)
                       ? fabs(given - found->difference) / (NEAR * size + rounding + DBL_MIN)
                       : INFINITY;
    return code;
}

static int compare_element(struct gradient_trial *trial, uint64_t element,
                           struct plugin_gradient *found) {
    struct comparison best = {.error = INFINITY}, next;
    int code = 0;
    for (size_t i = 0; i < STEPS && best.error > GOOD && !code; i++) {
        code = compare_step(trial, element, steps[i] * fmax(1, fabs(trial->point[element])), &next);
        if (i == 0 || (!next.noisy && next.error < best.error))
            best = next;
    }
    trial->wrong += best.error > 1;
    if (!found->checked++ || best.error > found->error) {
        found->error = best.error;
        found->element = element;
        found->given = trial->gradient[element];
        found->difference = best.difference;
    }
    return code;
}

/* Some elements of a tensor, drawn evenly, that are 0 or are not. Returns how many. */
static uint32_t draw(struct gradient_trial *trial, const struct layout_tensor *tensor, bool zero,
                     uint32_t most, uint64_t *drawn) {
    uint64_t seen = 0;
    for (uint64_t i = 0; i < tensor->rows * tensor->columns; i++) {
        uint64_t element = tensor->first + i;
        if ((trial->gradient[element] == 0) != zero)
            continue;
        uint64_t place = seen < most ? seen : random_below(&trial->random, seen + 1);
        if (place < most)
            drawn[place] = element;
        seen++;
    }
    return seen < most ? (uint32_t)seen : most;
}

static int report_wrong(const struct gradient_trial *trial, const struct plugin_gradient *found) {
    if (!trial->wrong)
        return 0;
    struct layout_place place = layout_locate(trial->layout, found->element);
    return plugin_refuse(trial->plugin,
                         "the gradient is not that of the loss: element %llu, which is %s[%llu, "
                         "%llu], is %.10g, and differences of the loss give %.10g; of %llu "
                         "elements %llu are wrong (%u rows, whose weights are from 0.5 to 2)",
                         (unsigned long long)found->element, place.tensor->name,
                         (unsigned long long)place.row, (unsigned long long)place.column,
                         found->given, found->difference, (unsigned long long)found->checked,
                         (unsigned long long)trial->wrong, trial->rows.count);
}

int plugin_check_gradient(struct plugin *plugin, const struct plugin_data *data,
                          const struct rows *rows, const struct layout *layout,
                          struct plugin_gradient *found) {
    struct gradient_trial trial = {.plugin = plugin,
                                   .data = data,
                                   .layout = layout,
                                   .rows = *rows,
                                   .count = layout_parameters(layout)};
    *found = (struct plugin_gradient){0};
    random_init(&trial.random, layout->seed);
    trial.point = memory_new(trial.count, sizeof *trial.point);
    trial.gradient = memory_new(trial.count, sizeof *trial.gradient);
    /* A gradient that is right for equal weights alone would be a surprise later. */
    trial.weight = memory_new(trial.rows.count, sizeof *trial.weight);
    for (uint32_t i = 0; i < trial.rows.count; i++)
        trial.weight[i] = 0.5 + 1.5 * random_unit(&trial.random);
    trial.rows.weight = trial.weight;
    int code = find_point(&trial);
    if (!code)
        code = check_repeated(&trial);
    for (uint32_t t = 0; t < layout->count && !code; t++) {
        uint64_t drawn[ELEMENTS_MOST];
        uint32_t most = trial.count < LARGE_MODEL ? ELEMENTS_MOST / 2u : ELEMENTS_OF_LARGE / 2u;
        uint32_t count = draw(&trial, &layout->tensor[t], false, most, drawn);
        count += draw(&trial, &layout->tensor[t], true, most, drawn + count);
        for (uint32_t j = 0; j < count && !code; j++)
            code = compare_element(&trial, drawn[j], found);
    }
    if (!code)
        code = report_wrong(&trial, found);
    free(trial.point);
    free(trial.gradient);
    free(trial.weight);
    return code;
}

#include "model/hessian.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "model/cluster_table.h"
#include "objective/objective.h"

/* Elements of all groups together, of one vector; and the most groups. */
#define GROUP_ELEMENTS (UINT64_C(1) << 24)
#define GROUPS_MAX 16

struct hessian {
    struct set *set;
    const struct model_layout *layout;
    const struct objective *objective;
    const double *parameters;
    uint32_t outputs, weights, chunks, groups;
    uint64_t count, biases; /* elements, and the first bias */
    unsigned threads;
    uint64_t *first_row; /* of each chunk; owned */
    double *derivative;  /* rows × outputs, not weighted; owned */
    double *second;      /* of one output: rows; else NULL; owned */
    double *score;       /* rows: of hessian_scores(); owned */
};

/* What a thread needs for a row. */
struct row_room {
    double *margin, *work, *has, *by;
    double *square; /* S: outputs × outputs */
};

struct pass;
typedef void row_function(struct pass *pass, struct row_room *room, const struct rows *rows,
                          uint32_t i, uint64_t number, double *const *sums);

#define PASS_VECTORS 3

struct pass {
    struct hessian *hessian;
    row_function *add;
    const double *v;
    uint32_t vectors;                        /* that are summed up */
    double *group[GROUPS_MAX][PASS_VECTORS]; /* owned */
    atomic_uint next;
    int code[GROUPS_MAX];
    char *text[GROUPS_MAX]; /* of errors; owned */
};

/* ---- a row ---- */

struct span {
    size_t begin, end;
};

static struct span span_of(const struct rows *rows, uint32_t i) {
    size_t begin = rows->dense ? (size_t)i * rows->features : rows->start[i];
    return (struct span){begin, rows->dense ? begin + rows->features : rows->start[i + 1]};
}

static size_t column_at(const struct rows *rows, const struct span *span, size_t at) {
    return rows->dense ? at - span->begin : rows->feature[at];
}

static double weight_of(const struct hessian *hessian, const struct rows *rows, uint32_t i) {
    return rows->weight ? ldexp(rows->weight[i], -set_info(hessian->set)->weight_exponent) : 1;
}

/* Margins of v, without offsets. */
static void find_margins(const struct hessian *hessian, const struct rows *rows, uint32_t i,
                         const double *v, double *margin) {
    const uint32_t weights = hessian->weights, outputs = hessian->outputs;
    const struct span span = span_of(rows, i);
    for (uint32_t k = 0; k < outputs; k++)
        margin[k] = 0;
    for (size_t at = span.begin; at < span.end; at++) {
        const double value = value_at(rows->type, rows->value, at);
        const double *own = v + column_at(rows, &span, at) * weights;
        for (uint32_t k = 0; k < weights; k++)
            margin[k] += own[k] * value;
    }
    for (uint32_t k = outputs; k-- > 0;)
        margin[k] = margin[weights == 1 ? 0 : k] +
                    (hessian->layout->intercept ? v[hessian->biases + k] : 0);
}

/* sum += value^power·by, for the weights the sum of `by` where all outputs share them. */
static void add_row(const struct hessian *hessian, const struct rows *rows, uint32_t i, bool square,
                    const double *by, const double *of_biases, double *sum) {
    const uint32_t weights = hessian->weights;
    const struct span span = span_of(rows, i);
    for (size_t at = span.begin; at < span.end; at++) {
        const double value = value_at(rows->type, rows->value, at);
        double *own = sum + column_at(rows, &span, at) * weights;
        for (uint32_t k = 0; k < weights; k++)
            own[k] += by[k] * (square ? value * value : value);
    }
    for (uint32_t k = 0; of_biases && hessian->layout->intercept && k < hessian->outputs; k++)
        sum[hessian->biases + k] += of_biases[k];
}

static double sum_of(uint32_t count, const double *numbers) {
    double sum = 0;
    for (uint32_t k = 0; k < count; k++)
        sum += numbers[k];
    return sum;
}

/* What weights have in place of outputs. */
static const double *of_weights(const struct hessian *hessian, const double *by, double *room) {
    if (hessian->weights == hessian->outputs)
        return by;
    *room = sum_of(hessian->outputs, by);
    return room;
}

/* S of row `number`, from what was kept. */
static void find_square(const struct hessian *hessian, double label, uint64_t number,
                        double *square) {
    assert(number < hessian->first_row[hessian->chunks]);
    const uint32_t outputs = hessian->outputs;
    const double *derivative = hessian->derivative + number * outputs;
    if (outputs == 1)
        square[0] = hessian->second[number];
    for (uint32_t k = 0; k < outputs && outputs > 1; k++)
        hessian->objective->second_row(outputs, label, derivative, k, square + k * outputs);
}

/* ---- what the passes add ---- */

static const double *label_of(const struct hessian *hessian, const double *label,
                              struct row_room *room) {
    const struct label_lists *lists = set_info(hessian->set)->lists;
    if (!lists)
        return label;
    memset(room->has, 0, hessian->outputs * sizeof *room->has);
    for (uint32_t at = lists->start[(size_t)*label]; at < lists->start[(size_t)*label + 1]; at++)
        room->has[lists->class[at]] = 1;
    return room->has;
}

static void differentiate(struct hessian *hessian, const struct rows *rows, uint32_t i,
                          uint64_t number, struct row_room *room) {
    const struct objective *objective = hessian->objective;
    const struct loss_parameters *loss = &hessian->layout->loss;
    const uint32_t outputs = hessian->outputs;
    const double *label = label_of(hessian, rows->label + i, room);
    double *derivative = hessian->derivative + number * outputs, value;
    find_margins(hessian, rows, i, hessian->parameters, derivative);
    for (uint32_t k = 0; k < outputs && rows->offset; k++)
        derivative[k] += rows->offset[i];
    objective->losses(loss, 1, outputs, label, derivative, &value, room->work);
    if (outputs == 1)
        objective->second(loss, 1, 1, label, derivative, room->work, &hessian->second[number]);
    if (outputs == 1 && objective->expected)
        objective->expected(loss, 1, derivative, &hessian->second[number]);
}

enum { SUM_GRADIENT, SUM_DIAGONAL, SUM_BESIDE };

static void add_first(struct pass *pass, struct row_room *room, const struct rows *rows, uint32_t i,
                      uint64_t number, double *const *sums) {
    struct hessian *hessian = pass->hessian;
    const uint32_t outputs = hessian->outputs;
    const double weight = weight_of(hessian, rows, i);
    double all;
    differentiate(hessian, rows, i, number, room);
    find_square(hessian, rows->label[i], number, room->square);
    for (uint32_t k = 0; k < outputs; k++)
        room->by[k] = weight * hessian->derivative[number * outputs + k];
    add_row(hessian, rows, i, false, of_weights(hessian, room->by, &all), room->by,
            sums[SUM_GRADIENT]);
    for (uint32_t k = 0; k < outputs; k++)
        room->by[k] = weight * room->square[k * outputs + k];
    if (hessian->weights == outputs) {
        add_row(hessian, rows, i, true, room->by, room->by, sums[SUM_DIAGONAL]);
        add_row(hessian, rows, i, false, room->by, NULL, sums[SUM_BESIDE]);
        return;
    }
    all = weight * sum_of(outputs * outputs, room->square);
    add_row(hessian, rows, i, true, &all, room->by, sums[SUM_DIAGONAL]);
}

static void add_product(struct pass *pass, struct row_room *room, const struct rows *rows,
                        uint32_t i, uint64_t number, double *const *sums) {
    const struct hessian *hessian = pass->hessian;
    const uint32_t outputs = hessian->outputs;
    const double weight = weight_of(hessian, rows, i);
    double all;
    find_margins(hessian, rows, i, pass->v, room->margin);
    find_square(hessian, rows->label[i], number, room->square);
    for (uint32_t k = 0; k < outputs; k++) {
        double sum = 0;
        for (uint32_t other = 0; other < outputs; other++)
            sum += room->square[k * outputs + other] * room->margin[other];
        room->by[k] = weight * sum;
    }
    add_row(hessian, rows, i, false, of_weights(hessian, room->by, &all), room->by, sums[0]);
}

static void add_score(struct pass *pass, struct row_room *room, const struct rows *rows, uint32_t i,
                      uint64_t number, double *const *sums) {
    struct hessian *hessian = pass->hessian;
    const uint32_t outputs = hessian->outputs;
    double sum = 0;
    (void)sums;
    find_margins(hessian, rows, i, pass->v, room->margin);
    for (uint32_t k = 0; k < outputs; k++)
        sum += hessian->derivative[number * outputs + k] * room->margin[k];
    hessian->score[number] = weight_of(hessian, rows, i) * sum;
}

/* After the elements of the vector that a pass sums up. */
enum { MOVED_CHANGE, MOVED_SQUARE, MOVED_SECOND, MOVED_TRACE, MOVED_WEIGHT, MOVED_SCALARS };

static void add_move(struct pass *pass, struct row_room *room, const struct rows *rows, uint32_t i,
                     uint64_t number, double *const *sums) {
    const struct hessian *hessian = pass->hessian;
    const uint32_t outputs = hessian->outputs;
    const double weight = weight_of(hessian, rows, i);
    double *scalar = sums[0] + hessian->count, all, most = 0;
    find_margins(hessian, rows, i, pass->v, room->margin);
    find_square(hessian, rows->label[i], number, room->square);
    for (uint32_t k = 0; k < outputs; k++) {
        double margin = room->margin[k], change = fabs(margin);
        most = fmax(most, weight > 0 ? change : 0);
        scalar[MOVED_TRACE] += weight * room->square[k * outputs + k];
        room->by[k] = change >= MOVED_LEAST ? copysign(weight, margin) : 0;
    }
    scalar[MOVED_WEIGHT] += weight * outputs;
    if (most < MOVED_LEAST)
        return;
    for (uint32_t k = 0; k < outputs; k++) {
        double margin = room->margin[k], product = 0;
        for (uint32_t other = 0; other < outputs; other++)
            product += room->square[k * outputs + other] * room->margin[other];
        scalar[MOVED_CHANGE] += room->by[k] * margin;
        scalar[MOVED_SQUARE] += weight * margin * margin;
        scalar[MOVED_SECOND] += weight * margin * product;
    }
    add_row(hessian, rows, i, false, of_weights(hessian, room->by, &all), room->by, sums[0]);
}

/* ---- passes ---- */

static int read_group(struct pass *pass, uint32_t group, struct row_room *room) {
    assert(group < pass->hessian->groups);
    struct hessian *hessian = pass->hessian;
    uint32_t begin = (uint32_t)((uint64_t)hessian->chunks * group / hessian->groups);
    uint32_t end = (uint32_t)((uint64_t)hessian->chunks * (group + 1) / hessian->groups);
    for (uint32_t chunk = begin; chunk < end; chunk++) {
        struct rows rows;
        int code = set_chunk(hessian->set, chunk, &rows);
        if (code)
            return code;
        for (uint32_t i = 0; i < rows.count; i++)
            pass->add(pass, room, &rows, i, hessian->first_row[chunk] + i, pass->group[group]);
    }
    return 0;
}

static void *read_groups(void *context) {
    struct pass *pass = context;
    struct row_room room = {
        .margin = memory_new(pass->hessian->outputs, sizeof(double)),
        .work = memory_new(pass->hessian->outputs, sizeof(double)),
        .has = memory_new(pass->hessian->outputs, sizeof(double)),
        .by = memory_new(pass->hessian->outputs, sizeof(double)),
        .square =
            memory_new((size_t)pass->hessian->outputs * pass->hessian->outputs, sizeof(double))};
    uint32_t group;
    while ((group = atomic_fetch_add(&pass->next, 1)) < pass->hessian->groups) {
        pass->code[group] = read_group(pass, group, &room);
        if (pass->code[group])
            pass->text[group] = memory_copy_string(error_text());
        error_clear();
    }
    free(room.margin);
    free(room.work);
    free(room.has);
    free(room.by);
    free(room.square);
    return NULL;
}

/* The sums of all groups are in those of the first. */
static int run_pass(struct hessian *hessian, row_function *add, const double *v, uint32_t vectors,
                    struct pass *pass) {
    assert(hessian->groups > 0 && hessian->groups <= GROUPS_MAX);
    int code = 0;
    *pass = (struct pass){.hessian = hessian, .add = add, .v = v, .vectors = vectors};
    for (uint32_t g = 0; g < hessian->groups; g++)
        for (uint32_t i = 0; i < vectors; i++)
            pass->group[g][i] = memory_new(hessian->count + MOVED_SCALARS, sizeof(double));
    threads_run(hessian->threads < hessian->groups ? hessian->threads : hessian->groups,
                read_groups, pass);
    for (uint32_t g = 0; g < hessian->groups && !code; g++)
        if (pass->code[g])
            code = error_set(pass->code[g], "%s", pass->text[g]);
    for (uint32_t g = 1; g < hessian->groups; g++)
        for (uint32_t i = 0; i < vectors; i++)
            for (uint64_t j = 0; j < hessian->count + MOVED_SCALARS; j++)
                pass->group[0][i][j] += pass->group[g][i][j];
    return code;
}

static void release_pass(struct pass *pass) {
    for (uint32_t g = 0; g < pass->hessian->groups; g++) {
        for (uint32_t i = 0; i < pass->vectors; i++)
            free(pass->group[g][i]);
        free(pass->text[g]);
    }
}

/* ---- from outside ---- */

static int count_rows(struct hessian *hessian) {
    uint64_t rows = 0;
    for (uint32_t chunk = 0; chunk < hessian->chunks; chunk++) {
        struct rows of_chunk;
        int code = set_chunk(hessian->set, chunk, &of_chunk);
        if (code)
            return code;
        hessian->first_row[chunk] = rows;
        rows += of_chunk.count;
    }
    hessian->first_row[hessian->chunks] = rows;
    hessian->derivative = memory_new(rows * hessian->outputs, sizeof *hessian->derivative);
    hessian->second = hessian->outputs == 1 ? memory_new(rows, sizeof *hessian->second) : NULL;
    hessian->score = memory_new(rows, sizeof *hessian->score);
    return 0;
}

int hessian_new(struct set *set, const struct model_layout *layout, const double *parameters,
                unsigned threads, struct hessian **made, struct hessian_sums *sums) {
    struct hessian *hessian = memory_new(1, sizeof *hessian);
    uint32_t chunks = set_training_chunks(set_info(set));
    uint64_t count = model_parameters(layout);
    uint64_t groups = count ? GROUP_ELEMENTS / count : GROUPS_MAX;
    groups = groups > GROUPS_MAX ? GROUPS_MAX : groups;
    groups = groups > chunks ? chunks : groups;
    *hessian = (struct hessian){.set = set,
                                .layout = layout,
                                .objective = objective_find(layout->objective),
                                .parameters = parameters,
                                .outputs = layout->outputs,
                                .weights = model_rows(layout),
                                .chunks = chunks,
                                .groups = groups ? (uint32_t)groups : 1,
                                .count = count,
                                .biases = layout->features * model_rows(layout),
                                .threads = threads,
                                .first_row = memory_new(chunks + 1, sizeof(uint64_t))};
    *sums = (struct hessian_sums){0};
    *made = hessian;
    struct pass pass;
    int code = count_rows(hessian);
    if (!code) {
        code = run_pass(hessian, add_first, NULL, PASS_VECTORS, &pass);
        *sums = (struct hessian_sums){pass.group[0][SUM_GRADIENT], pass.group[0][SUM_DIAGONAL],
                                      pass.group[0][SUM_BESIDE]};
        for (uint32_t i = 0; i < PASS_VECTORS; i++)
            pass.group[0][i] = NULL;
        release_pass(&pass);
    }
    if (code) {
        hessian_free(hessian);
        *made = NULL;
    }
    return code;
}

void hessian_sums_release(struct hessian_sums *sums) {
    free(sums->gradient);
    free(sums->diagonal);
    free(sums->beside);
}

void hessian_free(struct hessian *hessian) {
    if (!hessian)
        return;
    free(hessian->first_row);
    free(hessian->derivative);
    free(hessian->second);
    free(hessian->score);
    free(hessian);
}

int hessian_multiply(struct hessian *hessian, const double *v, double *out) {
    assert(v && out && v != out);
    struct pass pass;
    int code = run_pass(hessian, add_product, v, 1, &pass);
    memcpy(out, pass.group[0][0], hessian->count * sizeof *out);
    release_pass(&pass);
    return code;
}

int hessian_moves(struct hessian *hessian, const double *v, struct moved_sums *sums) {
    assert(v);
    struct pass pass;
    int code = run_pass(hessian, add_move, v, 1, &pass);
    const double *scalar = pass.group[0][0] + hessian->count;
    *sums = (struct moved_sums){.toward = pass.group[0][0],
                                .change = scalar[MOVED_CHANGE],
                                .square = scalar[MOVED_SQUARE],
                                .second = scalar[MOVED_SECOND],
                                .typical = scalar[MOVED_TRACE] / scalar[MOVED_WEIGHT]};
    pass.group[0][0] = NULL;
    release_pass(&pass);
    return code;
}

void moved_sums_release(struct moved_sums *sums) {
    free(sums->toward);
}

/* Σ (Σ of the rows of a cluster)². */
static int add_clusters(struct hessian *hessian, struct score_sums *sums) {
    struct cluster_table table = {0};
    int code = 0;
    for (uint32_t chunk = 0; chunk < hessian->chunks && !code; chunk++) {
        struct rows rows = {0};
        code = set_chunk(hessian->set, chunk, &rows);
        for (uint32_t i = 0; i < rows.count && rows.cluster && !code; i++) {
            uint64_t cluster = cluster_table_find(&table, rows.cluster[i], 1);
            table.rows[cluster]++;
            table.sums[cluster] += hessian->score[hessian->first_row[chunk] + i];
        }
    }
    for (uint64_t c = 0; c < table.count; c++) {
        sums->clustered += table.sums[c] * table.sums[c];
        sums->single_rows += table.rows[c] == 1;
    }
    sums->clusters = table.count;
    cluster_table_release(&table);
    return code;
}

int hessian_scores(struct hessian *hessian, const double *v, struct score_sums *sums) {
    assert(v);
    struct pass pass;
    int code = run_pass(hessian, add_score, v, 0, &pass);
    *sums = (struct score_sums){0};
    for (uint64_t i = 0; i < hessian->first_row[hessian->chunks] && !code; i++)
        sums->independent += hessian->score[i] * hessian->score[i];
    return code ? code : add_clusters(hessian, sums);
}

/* Indicator columns for every level are collinear with the intercept, those of a cross also with
 * the levels of its columns, and those of towns with those of the counties that the towns are in.
 * Without a penalty the loss does not tell how an effect is split between them. It would follow
 * from the preconditioner, and with it the prediction for a level that training never saw.
 *
 * So of all models with the same margins on the training rows that one is taken whose effects are
 * least: Σ n·e², with n the weight of the rows that have a level and e what it adds to their
 * margins. The intercept counts for nothing there. One column alone has the mean 0 over the rows
 * then. */
#include "coordinator/run/level_split.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "numeric/exact.h"
#include "base/memory.h"
#include "coordinator/job/family.h"
#include "model/summary.h"

/* Sweeps over all splits, each of which makes the sum of squares less: as many as there is room for
 * in this many steps by a level, and no more than the most. */
#define SPLIT_STEPS 1e9
#define SPLIT_SWEEPS_MAX 10000
/* Moves that are less than this share of the largest effect are but rounding, and are not made:
 * effects that were split stay as they are where a run starts from their model. */
#define SPLIT_SETTLED 1e-15

#define NO_LEVEL UINT32_MAX

/* A column of levels, or a cross: its features. */
struct group {
    uint32_t count;
    uint64_t *feature; /* owned */
    uint64_t rows;     /* that have one */
};

/* Levels of one group each of which has one and the same level of another in all rows. */
struct split {
    uint32_t of, within;
    uint32_t *level; /* by levels of `of`: the one of `within`; owned; NULL: this is not so */
};

struct splitting {
    struct training *run;
    const struct model_layout *layout;
    uint32_t groups;
    struct group *group;
    uint32_t *group_of; /* by features; COLUMN_NOWHERE: of none */
    uint32_t *level_of; /* by features: its place in the group */
    struct split *split;
    size_t splits, capacity;
    uint32_t *row;        /* by groups: the level of the row that is read */
    double *share;        /* by features: of the rows' weight */
    double *effect;       /* by features */
    double *move;         /* by levels of a group */
    uint64_t *rows_below; /* by levels of a group */
};

/* ---- groups ---- */

/* What a feature has as its value. */
static double level_value(const struct splitting *s, uint64_t feature) {
    const struct table *table = s->layout->table;
    return s->group_of[feature] < table->columns ? 1 : table->cross_value;
}

static bool find_groups(struct splitting *s) {
    const struct model_layout *layout = s->layout;
    const struct table *table = layout->table;
    const uint64_t features = layout->features;
    bool any = false;
    for (uint64_t j = 0; j < features; j++) {
        const uint32_t cross = table->crosses && layout->feature_names
                                   ? table_cross_of(table, layout->feature_names[j])
                                   : table->crosses;
        const uint32_t g =
            cross < table->crosses ? table->columns + cross : summary_column_of(layout, j);
        s->group_of[j] = g;
        if (g == COLUMN_NOWHERE)
            continue;
        assert(g < s->groups);
        s->level_of[j] = s->group[g].count++;
        any = true;
    }
    for (uint32_t g = 0; g < s->groups; g++)
        s->group[g].feature = memory_new(s->group[g].count, sizeof(uint64_t));
    for (uint64_t j = 0; j < features; j++)
        if (s->group_of[j] != COLUMN_NOWHERE)
            s->group[s->group_of[j]].feature[s->level_of[j]] = j;
    return any;
}

/* ---- which levels are within others ---- */

/* Whether all columns of a cross, or the column itself, are among those of another. */
static bool is_part(const struct table *table, uint32_t within, uint32_t of) {
    const struct table_cross own = {.columns = 1, .column = {within}};
    const struct table_cross *part =
        within < table->columns ? &own : &table->cross[within - table->columns];
    const struct table_cross *whole = &table->cross[of - table->columns];
    uint32_t found = 0;
    for (uint32_t i = 0; i < part->columns; i++)
        for (uint32_t k = 0; k < whole->columns; k++)
            found += part->column[i] == whole->column[k];
    return found == part->columns && part->columns < whole->columns;
}

/* A finer group may be within a coarser one, and of two with as many levels the later one. */
static bool may_have_extra_bits(const struct splitting *s, uint32_t of, uint32_t within) {
    uint32_t fine = s->group[of].count, coarse = s->group[within].count;
    return of != within && fine && coarse && (fine > coarse || (fine == coarse && of > within));
}

static bool may_be_within(const struct splitting *s, uint32_t of, uint32_t within) {
    const struct table *table = s->layout->table;
    if (of >= table->columns)
        return s->group[of].count && s->group[within].count && is_part(table, within, of);
    return within < table->columns && may_have_extra_bits(s, of, within);
}

/* Whether a level of the one column says which level of the other a row has. Splits of columns
 * stand before those of crosses. */
static bool tells(const struct splitting *s, uint32_t column, uint32_t other) {
    bool alike = s->group[column].count == s->group[other].count, found = column == other;
    for (size_t k = 0; k < s->splits && !found && s->split[k].of < s->layout->table->columns; k++) {
        const struct split *split = &s->split[k];
        found = (split->of == column && split->within == other) ||
                (alike && split->of == other && split->within == column);
    }
    return found;
}

/* Whether a cross is within another whose columns are not all its own: where towns are within
 * counties, town * colour is within county * colour. By the splits that were found of columns. */
static bool follows(const struct splitting *s, uint32_t of, uint32_t within) {
    const struct table *table = s->layout->table;
    if (of < table->columns || within < table->columns || !may_have_extra_bits(s, of, within) ||
        is_part(table, within, of))
        return false;
    const struct table_cross *fine = &table->cross[of - table->columns],
                             *coarse = &table->cross[within - table->columns];
    uint32_t told = 0;
    for (uint32_t k = 0; k < coarse->columns; k++) {
        bool known = false;
        for (uint32_t i = 0; i < fine->columns && !known; i++)
            known = tells(s, fine->column[i], coarse->column[k]);
        told += known;
    }
    return told == coarse->columns;
}

/* Returns whether there are any. */
static bool find_candidates(struct splitting *s,
                            bool (*may_be)(const struct splitting *, uint32_t, uint32_t)) {
    const size_t known = s->splits;
    for (uint32_t of = 0; of < s->groups; of++)
        for (uint32_t within = 0; within < s->groups; within++) {
            if (!may_be(s, of, within))
                continue;
            MEMORY_ROOM(s->split, s->splits, s->capacity);
            uint32_t *level = memory_new(s->group[of].count, sizeof *level);
            for (uint32_t i = 0; i < s->group[of].count; i++)
                level[i] = NO_LEVEL;
            s->split[s->splits++] = (struct split){of, within, level};
        }
    return s->splits > known;
}

/* Keeps the candidates that the row agrees with. */
static void see_row(struct splitting *s, const struct rows *rows, uint32_t i) {
    size_t begin = rows->dense ? (size_t)i * rows->features : rows->start[i];
    size_t end = rows->dense ? begin + rows->features : rows->start[i + 1], kept = 0;
    for (uint32_t g = 0; g < s->groups; g++)
        s->row[g] = NO_LEVEL;
    for (size_t at = begin; at < end; at++) {
        size_t j = rows->dense ? at - begin : rows->feature[at];
        if (s->group_of[j] != COLUMN_NOWHERE && value_at(rows->type, rows->value, at) != 0)
            s->row[s->group_of[j]] = s->level_of[j];
    }
    for (size_t k = 0; k < s->splits; k++) {
        struct split split = s->split[k];
        uint32_t own = s->row[split.of], other = s->row[split.within];
        assert(own == NO_LEVEL || own < s->group[split.of].count);
        assert(other == NO_LEVEL || other < s->group[split.within].count);
        bool agrees =
            own == NO_LEVEL ||
            (other != NO_LEVEL && (split.level[own] == NO_LEVEL || split.level[own] == other));
        if (agrees && own != NO_LEVEL)
            split.level[own] = other;
        if (agrees)
            s->split[kept++] = split;
        else
            free(split.level);
    }
    assert(kept <= s->splits);
    s->splits = kept;
}

static int see_rows(struct splitting *s) {
    uint32_t chunks = set_training_chunks(set_info(s->run->set));
    int code = 0;
    for (uint32_t chunk = 0; chunk < chunks && s->splits && !code; chunk++) {
        struct rows rows = {0};
        code = set_chunk(s->run->set, chunk, &rows);
        for (uint32_t i = 0; i < rows.count && s->splits && !code; i++)
            if (!rows.weight || rows.weight[i] > 0)
                see_row(s, &rows, i);
    }
    return code;
}

/* ---- the least effects ---- */

/* From the mean of all levels of a group that each row has one of, to the intercept; answers the
 * largest move. */
static double centre(struct splitting *s, double settled, double *moved) {
    double largest = 0;
    for (uint32_t g = 0; g < s->groups; g++) {
        const struct group *group = &s->group[g];
        if (!group->count || group->rows != s->run->moments.rows)
            continue;
        struct exact sum;
        exact_init(&sum);
        for (uint32_t i = 0; i < group->count; i++)
            exact_add(&sum, s->share[group->feature[i]] * s->effect[group->feature[i]]);
        const double mean = exact_value(&sum);
        if (!(fabs(mean) > settled))
            continue;
        for (uint32_t i = 0; i < group->count; i++)
            s->effect[group->feature[i]] -= mean;
        *moved += mean;
        largest = fmax(largest, fabs(mean));
    }
    return largest;
}

/* From all levels that are within another one, if its rows are theirs, to that one; answers the
 * largest move. */
static double balance(struct splitting *s, const struct split *split, double settled) {
    const struct group *fine = &s->group[split->of], *coarse = &s->group[split->within];
    const uint64_t *nonzero = s->run->moments.nonzero;
    double largest = 0;
    assert(split->of != split->within && split->level);
    for (uint32_t q = 0; q < coarse->count; q++) {
        s->move[q] = 0;
        s->rows_below[q] = 0;
    }
    for (uint32_t i = 0; i < fine->count; i++) {
        uint64_t j = fine->feature[i];
        if (split->level[i] == NO_LEVEL)
            continue;
        s->move[split->level[i]] += s->share[j] * s->effect[j];
        s->rows_below[split->level[i]] += nonzero[j];
    }
    for (uint32_t q = 0; q < coarse->count; q++) {
        uint64_t j = coarse->feature[q];
        bool whole = s->rows_below[q] == nonzero[j] && s->share[j] > 0;
        double move = whole ? 0.5 * (s->move[q] / s->share[j] - s->effect[j]) : 0;
        s->move[q] = fabs(move) > settled ? move : 0;
        s->effect[j] += s->move[q];
        largest = fmax(largest, fabs(s->move[q]));
    }
    for (uint32_t i = 0; i < fine->count; i++)
        if (split->level[i] != NO_LEVEL)
            s->effect[fine->feature[i]] -= s->move[split->level[i]];
    return largest;
}

/* Weight `k` of each feature. */
static void minimise(struct splitting *s, uint32_t k, double *parameters) {
    const struct model_layout *layout = s->layout;
    uint32_t weights = model_rows(layout);
    double *bias = parameters + layout->features * weights, steps = 0, moved = 0, change = INFINITY;
    for (uint64_t j = 0; j < layout->features; j++)
        if (s->group_of[j] != COLUMN_NOWHERE)
            s->effect[j] = parameters[j * weights + k] * level_value(s, j);
    for (int sweep = 0; sweep < SPLIT_SWEEPS_MAX && steps < SPLIT_STEPS && change > 0; sweep++) {
        double largest = 0;
        for (uint64_t j = 0; j < layout->features; j++)
            if (s->group_of[j] != COLUMN_NOWHERE)
                largest = fmax(largest, fabs(s->effect[j]));
        const double settled = SPLIT_SETTLED * largest;
        change = centre(s, settled, &moved);
        for (size_t i = 0; i < s->splits; i++) {
            change = fmax(change, balance(s, &s->split[i], settled));
            steps += s->group[s->split[i].of].count;
        }
    }
    if (change > 0)
        centre(s, 0, &moved);
    for (uint64_t j = 0; j < layout->features; j++)
        if (s->group_of[j] != COLUMN_NOWHERE)
            parameters[j * weights + k] = s->effect[j] / level_value(s, j);
    for (uint32_t i = 0; i < layout->outputs; i++)
        if (layout->shared || i == k)
            bias[i] += moved;
}

/* ---- the model ---- */

static int restate_split(struct splitting *s) {
    struct recorder *recorder = &s->run->recorder;
    const struct moments *moments = &s->run->moments;
    uint64_t count = model_parameters(s->layout);
    struct model view;
    int code = model_writer_view(recorder->writer, &view);
    if (!code)
        code = training_find_moments(s->run);
    if (code)
        return code;
    assert(moments->kind == MOMENTS_EXACT);
    for (uint64_t j = 0; j < s->layout->features; j++) {
        if (s->group_of[j] == COLUMN_NOWHERE)
            continue;
        s->group[s->group_of[j]].rows += moments->nonzero[j];
        s->share[j] = moments->mean[j] / level_value(s, j);
    }
    if (find_candidates(s, may_be_within))
        code = see_rows(s);
    const bool nested = s->splits && s->split[0].of < s->layout->table->columns;
    if (!code && nested && find_candidates(s, follows))
        code = see_rows(s);
    if (code)
        return code;
    double *parameters = memory_new(count, sizeof *parameters);
    model_spread(&view, s->layout, parameters);
    for (uint32_t k = 0; k < model_rows(s->layout); k++)
        minimise(s, k, parameters);
    readback_slice(recorder->readback, 0, count, parameters);
    code = model_writer_replace(recorder->writer, parameters);
    free(parameters);
    return code;
}

static struct splitting splitting_of(struct training *run) {
    const struct model_layout *layout = &run->layout;
    uint64_t features = layout->features;
    uint32_t groups = layout->table->columns + layout->table->crosses;
    return (struct splitting){.run = run,
                              .layout = layout,
                              .groups = groups,
                              .group = memory_new(groups, sizeof(struct group)),
                              .group_of = memory_new(features, sizeof(uint32_t)),
                              .level_of = memory_new(features, sizeof(uint32_t)),
                              .row = memory_new(groups, sizeof(uint32_t)),
                              .share = memory_new(features, sizeof(double)),
                              .effect = memory_new(features, sizeof(double)),
                              .move = memory_new(features, sizeof(double)),
                              .rows_below = memory_new(features, sizeof(uint64_t))};
}

static void splitting_release(struct splitting *s) {
    for (uint32_t g = 0; g < s->groups; g++)
        free(s->group[g].feature);
    for (size_t i = 0; i < s->splits; i++)
        free(s->split[i].level);
    free(s->split);
    free(s->group);
    free(s->group_of);
    free(s->level_of);
    free(s->row);
    free(s->share);
    free(s->effect);
    free(s->move);
    free(s->rows_below);
}

int training_split_levels(struct training *run) {
    const struct job *job = run->session->job;
    const bool penalised = job->l1.value > 0 || job->l2.value > 0 || job_has_bounds(job);
    if (!run->layout.table || !run->layout.intercept || !job_family(job)->family->convex ||
        penalised || set_info(run->set)->strip_columns)
        return 0;
    struct splitting splitting = splitting_of(run);
    int code = find_groups(&splitting) ? restate_split(&splitting) : 0;
    splitting_release(&splitting);
    return code;
}

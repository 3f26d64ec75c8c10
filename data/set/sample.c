#include "data/set/statistics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/pack/pack_file.h"

#define SAMPLE_ROWS 32
#define SAMPLE_VALUES 65536 /* fewer rows have that many; one row may have more */

#define ENOUGH 1 /* as a result of sample_rows(): errors are negative */

struct sampler {
    struct set *set;
    const struct sample_options *options;
    struct sample *sample;
    uint32_t chunk; /* of a set that is not shuffled: where the last row was, */
    uint64_t first; /* and the number of the chunk's first row */
};

void sample_release(struct sample *sample) {
    free(sample->row);
    free(sample->file);
    table_free(sample->table);
    free(sample->start);
    free(sample->id);
    free(sample->source_column);
    free(sample->value);
    free(sample->stored_start);
    free(sample->column);
    free(sample->column_id);
    free(sample->stored);
    free(sample->centre);
    *sample = (struct sample){0};
}

/* ---- as the set has them ---- */

/* The rows of a chunk; of a set in tiles, what they have in its first strip. */
static int read_chunk(struct set *set, uint32_t chunk, struct rows *rows) {
    return set_info(set)->strip_columns ? set_tile(set, chunk, rows) : set_chunk(set, chunk, rows);
}

/* The chunk of training row `number`, in the order of files, and its place in there. */
static int find_stored(struct sampler *sampler, uint64_t number, struct rows *rows,
                       uint32_t *place) {
    const struct set_info *info = set_info(sampler->set);
    if (info->block_rows) {
        uint64_t key = permutation_key(sampler->options->shuffle_seed, 0);
        uint64_t at = permutation_inverse(number, info->rows, key);
        *place = (uint32_t)(at % info->block_rows);
        return set_chunk(sampler->set, (uint32_t)(at / info->block_rows), rows);
    }
    int code = read_chunk(sampler->set, sampler->chunk, rows);
    while (!code && number - sampler->first >= rows->count) {
        sampler->first += rows->count;
        code = read_chunk(sampler->set, ++sampler->chunk, rows);
    }
    assert(code || number - sampler->first < rows->count);
    *place = (uint32_t)(number - sampler->first);
    return code;
}

/* Adds what row `place` of `rows`, whose first column is column `base` of the set, has besides
 * zeros. */
static void add_values(struct sampler *sampler, const struct rows *rows, uint32_t place,
                       uint64_t base) {
    struct sample *sample = sampler->sample;
    const double *centre = set_info(sampler->set)->centre;
    uint64_t begin = rows->dense ? (uint64_t)place * rows->features : rows->start[place];
    uint64_t end = rows->dense ? begin + rows->features : rows->start[place + 1];
    uint64_t at = sample->stored_start[sample->count + 1], room = at + (end - begin);
    sample->column = memory_resize(sample->column, room, sizeof *sample->column);
    sample->column_id = memory_resize(sample->column_id, room, sizeof *sample->column_id);
    sample->stored = memory_resize(sample->stored, room, sizeof *sample->stored);
    if (centre)
        sample->centre = memory_resize(sample->centre, room, sizeof *sample->centre);
    for (uint64_t i = begin; i < end; i++) {
        uint64_t column = base + (rows->dense ? i - begin : rows->feature[i]);
        double value = value_at(rows->type, rows->value, i);
        sample->column[at] = column;
        sample->column_id[at] = set_info(sampler->set)->feature_id[column];
        sample->stored[at] = value;
        if (centre)
            sample->centre[at] = centre[column];
        at += value != 0 || (centre && centre[column] != 0);
    }
    sample->stored_start[sample->count + 1] = at;
}

static int add_stored(struct sampler *sampler) {
    struct sample *sample = sampler->sample;
    const struct set_info *info = set_info(sampler->set);
    struct rows rows;
    uint32_t place, strips = set_strips(info);
    int code = find_stored(sampler, sample->count, &rows, &place);
    if (code)
        return code;
    sample->stored_start[sample->count + 1] = sample->stored_start[sample->count];
    add_values(sampler, &rows, place, 0);
    for (uint32_t strip = 1; strip < strips && !code; strip++) {
        code = set_tile(sampler->set, strip * info->chunks + sampler->chunk, &rows);
        if (!code)
            add_values(sampler, &rows, place, (uint64_t)strip * info->strip_columns);
    }
    return code;
}

/* ---- as the file has them ---- */

static bool is_trained_on(const struct sampler *sampler, const struct source_rows *rows,
                          uint32_t row) {
    const struct set_info *info = set_info(sampler->set);
    const struct sample_options *options = sampler->options;
    uint64_t hash = holdout_hash(rows, row);
    bool weighs = !rows->weight || rows->weight[row] > 0;
    return weighs && !holdout_has(info->holdout, hash) &&
           !(info->fold && holdout_fold(hash, options->fold_seed, options->folds) == info->fold);
}

static void add_source_row(struct sample *sample, const struct source_rows *rows, uint32_t row) {
    uint64_t at = sample->start[sample->count], values = rows->start[row + 1] - rows->start[row];
    sample->id = memory_resize(sample->id, at + values, sizeof *sample->id);
    sample->value = memory_resize(sample->value, at + values, sizeof *sample->value);
    if (rows->column)
        sample->source_column = memory_resize(sample->source_column, at + values, sizeof(uint32_t));
    for (uint64_t i = 0; rows->column && i < values; i++)
        sample->source_column[at + i] = source_row_column(rows, row, i);
    if (values) {
        memcpy(sample->id + at, source_row_ids(rows, row), values * sizeof *sample->id);
        memcpy(sample->value + at, rows->value + rows->start[row], values * sizeof(double));
    }
    sample->row[sample->count] = rows->first_line + row;
    sample->start[sample->count + 1] = at + values;
}

static int sample_rows(void *context, const struct source_rows *rows) {
    struct sampler *sampler = context;
    struct sample *sample = sampler->sample;
    for (uint32_t row = 0; row < rows->count && sample->count < SAMPLE_ROWS; row++) {
        if (!is_trained_on(sampler, rows, row))
            continue;
        add_source_row(sample, rows, row);
        int code = add_stored(sampler);
        if (code)
            return code;
        sample->count++;
        if (sample->stored_start[sample->count] >= SAMPLE_VALUES)
            break;
    }
    return ENOUGH;
}

int sample_take(struct set *set, const char *packs, const struct sample_options *options,
                struct sample *sample) {
    struct sampler sampler = {.set = set, .options = options, .sample = sample};
    struct pack *pack = NULL;
    *sample = (struct sample){
        .row = memory_new(SAMPLE_ROWS, sizeof *sample->row),
        .start = memory_new(SAMPLE_ROWS + 1, sizeof *sample->start),
        .stored_start = memory_new(SAMPLE_ROWS + 1, sizeof *sample->stored_start),
    };
    char *path = pack_path_make(packs, set_first_pack(set));
    int code = pack_open_checked(path, 1, &pack);
    if (!code) {
        sample->file = memory_copy_string(pack_source(pack));
        sample->table = pack->table ? table_copy(pack->table) : NULL;
        code = pack_read(pack, sample_rows, &sampler);
    }
    pack_close(pack);
    free(path);
    return code == ENOUGH ? 0 : code;
}

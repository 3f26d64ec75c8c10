#include "tests/sim/tiles.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"

enum { STRIPS_MAX = 4, TILES_OF_JOB_MAX = 64 }; /* sets of tiles fit a word */

/* A third of those without minibatches that are small enough, and half of such networks, which have
 * the tiles of their upper layers beside. Drawn from a generator of its own. */
void tiles_choose(struct job *job) {
    struct random random;
    uint32_t most = TILES_OF_JOB_MAX / job->data.chunks, features = objective_columns(&job->shape);
    most -= job->shape.network.layers && most ? 1 : 0;
    random_init(&random, job->seed ^ UINT64_C(0x711e5));
    if (job->downpour.epochs || most < 2 ||
        random_below(&random, job->shape.network.layers ? 2 : 3))
        return;
    most = most < STRIPS_MAX ? most : STRIPS_MAX;
    uint32_t strips = 2 + (uint32_t)random_below(&random, most - 1);
    job->data.strip_columns = (features + strips - 1) / strips;
}

/* Of each row, with those that are held out. */
static void measure_rows(struct job *job) {
    job->size = memory_new(set_vector_rows(&job->data), sizeof *job->size);
    for (uint32_t c = 0; c < job->data.chunks; c++) {
        const struct rows *chunk = &job->chunks[c];
        for (uint32_t row = 0; row < chunk->count; row++) {
            uint32_t first = chunk->start[row], end = chunk->start[row + 1];
            double sum = 0;
            for (uint32_t i = first; i < end; i++)
                sum += fabs(job->value[i]);
            job->size[chunk->first + row] = (int16_t)fixed_size(sum, end - first);
        }
    }
}

/* Values of all chunks, of which some may come twice. */
static uint64_t values_of(const struct job *job) {
    uint64_t values = 0;
    for (uint32_t c = 0; c < job->data.chunks; c++)
        values += job->chunks[c].values;
    return values;
}

/* Copies what the rows of a chunk have in the columns [first, end). */
static void cut(struct job *job, const struct rows *chunk, uint32_t first, uint32_t end,
                uint32_t *starts, uint32_t *values, struct rows *tile) {
    *tile = *chunk;
    tile->features = end - first;
    tile->start = starts;
    tile->feature = job->tile_feature;
    tile->value = job->tile_value;
    tile->size = job->size + chunk->first;
    uint32_t before = *values;
    for (uint32_t row = 0; row < chunk->count; row++) {
        starts[row] = *values;
        for (uint32_t i = chunk->start[row]; i < chunk->start[row + 1]; i++) {
            if (job->feature[i] < first || job->feature[i] >= end)
                continue;
            job->tile_feature[*values] = job->feature[i] - first;
            job->tile_value[(*values)++] = job->value[i];
        }
    }
    starts[chunk->count] = *values;
    tile->values = *values - before;
}

void tiles_make(struct job *job) {
    const struct set_info *data = &job->data;
    uint32_t wide = data->strip_columns, tiles = set_tiles(data), values = 0;
    if (!wide)
        return;
    job->to_count = tiles + (job->shape.network.layers ? data->chunks : 0);
    measure_rows(job);
    job->tiles = memory_new(tiles, sizeof *job->tiles);
    job->tile_start = memory_new(set_strips(data) * (set_vector_rows(data) + data->chunks),
                                 sizeof *job->tile_start);
    job->tile_feature = memory_new(values_of(job) + 1, sizeof *job->tile_feature);
    job->tile_value = memory_new(values_of(job) + 1, sizeof *job->tile_value);
    uint32_t *starts = job->tile_start;
    for (uint32_t i = 0; i < tiles; i++) {
        const struct rows *chunk = &job->chunks[i % data->chunks];
        uint32_t first = i / data->chunks * wide, end = first + wide;
        cut(job, chunk, first, end < data->features ? end : (uint32_t)data->features, starts,
            &values, &job->tiles[i]);
        starts += chunk->count + 1;
    }
}

void tiles_release(struct job *job) {
    free(job->tiles);
    free(job->size);
    free(job->tile_start);
    free(job->tile_feature);
    free(job->tile_value);
}

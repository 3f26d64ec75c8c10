#include <stdlib.h>

#include "base/memory.h"
#include "base/process.h"
#include "data/set/statistics.h"

/* Threads take a chunk each; sums of chunks are added in their order. */
struct squares_pass {
    struct set *set;
    double *sum; /* of each chunk */
};

static double squares_of(const struct rows *rows, uint64_t first, uint64_t end) {
    double sum = 0;
    for (uint64_t i = first; i < end; i++) {
        double value = value_at(rows->type, rows->value, i);
        sum += value * value;
    }
    return sum;
}

static int add_chunk(void *context, unsigned chunk) {
    struct squares_pass *pass = context;
    struct rows rows;
    int code = set_chunk(pass->set, chunk, &rows);
    if (!code) {
        double sum = 0;
        for (uint32_t row = 0; row < rows.count; row++) {
            double weight = rows.weight ? rows.weight[row] : 1;
            uint64_t first = rows.dense ? (uint64_t)row * rows.features : rows.start[row];
            uint64_t end = rows.dense ? first + rows.features : rows.start[row + 1];
            if (weight != 0) /* whatever it holds */
                sum += weight * squares_of(&rows, first, end);
        }
        pass->sum[chunk] = sum;
    }
    return code;
}

int set_mean_square(struct set *set, unsigned threads, double *mean) {
    const struct set_info *info = set_info(set);
    const uint32_t chunks = set_training_chunks(info);
    struct squares_pass pass = {.set = set, .sum = memory_new(chunks, sizeof *pass.sum)};
    int code = threads_try(threads, chunks, add_chunk, &pass);
    double total = 0;
    for (uint32_t i = 0; i < chunks; i++)
        total += pass.sum[i];
    *mean = total / info->weight_sum;
    free(pass.sum);
    return code;
}

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/set.h"

/* Threads take a chunk each; sums of chunks are added in their order. */
struct squares_pass {
    struct set *set;
    uint32_t chunks;
    double *sum; /* [chunks] */

    pthread_mutex_t mutex; /* guards what follows */
    uint32_t next;
    int code; /* of the first failure */
    char *text;
};

static double squares_of(const struct rows *rows, uint64_t first, uint64_t end) {
    double sum = 0;
    for (uint64_t i = first; i < end; i++) {
        double value = value_at(rows->type, rows->value, i);
        sum += value * value;
    }
    return sum;
}

static double squares_of_chunk(const struct rows *rows) {
    double sum = 0;
    for (uint32_t row = 0; row < rows->count; row++) {
        double weight = rows->weight ? rows->weight[row] : 1;
        uint64_t first = rows->dense ? (uint64_t)row * rows->features : rows->start[row];
        uint64_t end = rows->dense ? first + rows->features : rows->start[row + 1];
        if (weight != 0) /* whatever it holds */
            sum += weight * squares_of(rows, first, end);
    }
    return sum;
}

static bool take_chunk(struct squares_pass *pass, uint32_t *chunk) {
    pthread_mutex_lock(&pass->mutex);
    bool there = pass->next < pass->chunks && !pass->code;
    *chunk = there ? pass->next++ : 0;
    pthread_mutex_unlock(&pass->mutex);
    return there;
}

static void fail(struct squares_pass *pass, int code) {
    pthread_mutex_lock(&pass->mutex);
    if (!pass->code) {
        pass->code = code;
        pass->text = memory_copy_string(error_text());
    }
    pthread_mutex_unlock(&pass->mutex);
    error_clear();
}

static void *add_chunks(void *argument) {
    struct squares_pass *pass = argument;
    uint32_t chunk;
    while (take_chunk(pass, &chunk)) {
        struct rows rows;
        int code = set_chunk(pass->set, chunk, &rows);
        if (code)
            fail(pass, code);
        else
            pass->sum[chunk] = squares_of_chunk(&rows);
    }
    return NULL;
}

int set_mean_square(struct set *set, unsigned threads, double *mean) {
    const struct set_info *info = set_info(set);
    struct squares_pass pass = {
        .set = set, .chunks = set_training_chunks(info), .mutex = PTHREAD_MUTEX_INITIALIZER};
    double total = 0;
    pass.sum = memory_new(pass.chunks, sizeof *pass.sum);
    threads_run(threads < pass.chunks ? threads : pass.chunks, add_chunks, &pass);
    for (uint32_t i = 0; i < pass.chunks; i++)
        total += pass.sum[i];
    *mean = total / info->weight_sum;
    int code = pass.code ? error_set(pass.code, "%s", pass.text) : 0;
    free(pass.sum);
    free(pass.text);
    return code;
}

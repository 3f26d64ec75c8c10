#include "data/window.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/limits.h"

/* Less than the share of dirty pages (a tenth) from which on the system would write out pages that
 * are not complete, and write them again later. */
#define MEMORY_SHARE 12
#define WINDOW_BYTES_MIN (UINT64_C(256) << 20)

uint64_t window_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t share = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / MEMORY_SHARE : 0;
    return share < WINDOW_BYTES_MIN ? WINDOW_BYTES_MIN : share;
}

uint32_t window_end(const struct chunk_plan *plan, uint32_t first, uint64_t bytes) {
    uint32_t end = first + 1;
    uint64_t filled = plan->chunk[first].bytes;
    while (end < chunk_plan_trained(plan) && filled + plan->chunk[end].bytes <= bytes)
        filled += plan->chunk[end++].bytes;
    return end;
}

/* A stage of the work: all threads take items until there are no more. */
struct stage {
    const struct chunk_source *source;
    const struct chunk_window *window;
    void (*work)(struct stage *stage, struct chunk_buffer *buffer, uint32_t item);
    uint32_t end;
    _Atomic uint32_t next;
};

static void count_block(struct stage *stage, struct chunk_buffer *buffer, uint32_t block) {
    (void)buffer;
    chunk_window_count(stage->source, stage->window, block);
}

static void start_chunk(struct stage *stage, struct chunk_buffer *buffer, uint32_t chunk) {
    (void)buffer;
    chunk_window_start(stage->source, stage->window, chunk);
}

static void fill_block(struct stage *stage, struct chunk_buffer *buffer, uint32_t block) {
    chunk_window_fill(buffer, stage->source, stage->window, block);
}

static void *take_part(void *context) {
    struct stage *stage = context;
    struct chunk_buffer buffer;
    chunk_buffer_init(&buffer);
    uint32_t item;
    while ((item = atomic_fetch_add(&stage->next, 1)) < stage->end)
        stage->work(stage, &buffer, item);
    chunk_buffer_release(&buffer);
    return NULL;
}

static void do_stage(struct stage *stage, unsigned threads) {
    pthread_t others[THREADS_MAX];
    unsigned started = 0;
    for (unsigned i = 1; i < threads && i < THREADS_MAX; i++)
        if (!pthread_create(&others[started], NULL, take_part, stage))
            started++;
    take_part(stage);
    for (unsigned i = 0; i < started; i++)
        pthread_join(others[i], NULL);
}

void window_fill(const struct chunk_source *source, const struct chunk_window *window,
                 unsigned threads) {
    uint32_t blocks = source->plan->trained.blocks;
    struct stage count = {source, window, count_block, blocks, 0},
                 start = {source, window, start_chunk, window->end, window->first},
                 fill = {source, window, fill_block, blocks, 0};
    if (!source->plan->dense) {
        do_stage(&count, threads);
        do_stage(&start, threads);
    }
    do_stage(&fill, threads);
}

/* Runs kernels: blocks, their threads, and barriers. */
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "tests/ptx/machine.h"
#include "tests/ptx/marks.h"

_Thread_local const struct thread *ptx_thread;

void ptx_fail(const char *format, ...) {
    va_list values;
    const struct thread *thread = ptx_thread;
    if (thread)
        fprintf(stderr, "%s:%u: %s, thread %u of block %u: ", thread->block->program->file,
                thread->block->program->code[thread->at - 1].line, thread->block->program->name,
                thread->number, thread->block->number);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    abort();
}

static void *taken(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        ptx_fail("no memory of the host");
    return memory;
}

/* ---- a thread ---- */

static void run_thread(struct thread *thread) {
    struct instruction *code = thread->block->program->code;
    size_t length = thread->block->program->length;
    ptx_thread = thread;
    thread->pause = PAUSE_NONE;
    while (!thread->pause) {
        if (thread->at >= length)
            ptx_fail("it runs past its end");
        struct instruction *in = &code[thread->at++];
        if (thread->r[in->guard].u32 == in->unless)
            continue;
        in->times++;
        in->step(thread, in);
    }
    ptx_thread = NULL;
}

static void init_thread(struct thread *thread, struct block *block, uint32_t number,
                        uint32_t threads, uint32_t blocks) {
    const struct program *program = block->program;
    memcpy(thread->r, program->initial, program->registers * sizeof *thread->r);
    thread->r[SLOT_TID].u64 = number;
    thread->r[SLOT_NTID].u64 = threads;
    thread->r[SLOT_CTAID].u64 = block->number;
    thread->r[SLOT_NCTAID].u64 = blocks;
    thread->block = block;
    thread->number = number;
    thread->at = 0;
    memset(thread->local_written, 0, program->local_bytes);
}

/* ---- a block ---- */

/* All numbers below n in a random order. */
static void shuffle(struct random *random, uint32_t *order, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)random_below(random, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
}

/* Whether they are all at their ends. Else all have met at one barrier. */
static bool have_met(struct thread *threads, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (threads[i].pause != threads[0].pause || threads[i].at != threads[0].at) {
            if (threads[i].pause == PAUSE_END && threads[0].pause == PAUSE_END)
                continue;
            ptx_thread = &threads[i];
            ptx_fail("not all threads of the block meet at this barrier");
        }
    return threads[0].pause == PAUSE_END;
}

static void run_block(struct block *block, struct thread *threads, uint32_t count, uint32_t blocks,
                      struct random *random) {
    const struct program *program = block->program;
    uint32_t *order = taken(count, sizeof *order);
    memset(block->shared, 0xa5, program->shared_bytes);
    memset(block->shared + program->shared_bytes, 0, program->shared_bytes);
    memset(block->marks, 0, program->shared_bytes * sizeof *block->marks);
    for (uint32_t i = 0; i < count; i++)
        init_thread(&threads[i], block, i, count, blocks);
    block->phase = 0;
    do {
        shuffle(random, order, count);
        for (uint32_t i = 0; i < count; i++)
            run_thread(&threads[order[i]]);
        block->phase++;
    } while (!have_met(threads, count));
    free(order);
}

/* ---- a launch ---- */

static struct thread *threads_new(const struct program *program, uint32_t count) {
    struct thread *threads = taken(count, sizeof *threads);
    union word *registers = taken(count * program->registers, sizeof *registers);
    unsigned char *local = taken(count, 2 * program->local_bytes);
    for (size_t i = 0; i < count; i++) {
        threads[i].r = registers + i * program->registers;
        threads[i].local = local + i * 2 * program->local_bytes;
        threads[i].local_written = threads[i].local + program->local_bytes;
    }
    return threads;
}

static void threads_free(struct thread *threads) {
    free(threads[0].r);
    free(threads[0].local);
    free(threads);
}

void ptx_run(struct program *program, uint32_t blocks, uint32_t threads, const void *arguments,
             uint64_t seed) {
    struct random random;
    struct block block = {.program = program};
    uint32_t *order = taken(blocks, sizeof *order);
    struct thread *made = threads_new(program, threads);
    random_init(&random, seed);
    shuffle(&random, order, blocks);
    memory_begin();
    for (size_t i = 0; i < program->length; i++)
        program->code[i].near = NULL;
    block.arguments = taken(program->argument_bytes, 1);
    block.shared = taken(2, program->shared_bytes);
    block.marks = taken(program->shared_bytes, sizeof *block.marks);
    memcpy(block.arguments, arguments, program->argument_bytes);
    for (uint32_t i = 0; i < blocks; i++) {
        block.number = order[i];
        run_block(&block, made, threads, blocks, &random);
    }
    threads_free(made);
    free(block.arguments);
    free(block.shared);
    free(block.marks);
    free(order);
}

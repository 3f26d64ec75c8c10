/* The memory of the device, and the operations on memory. Of each byte it is known whether it was
 * written, and who touched it. */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/machine.h"
#include "tests/ptx/marks.h"

#define ALIGNMENT 256
#define FRESH 0xa5 /* memory at first: bytes that nobody takes for their own */

struct allocation {
    unsigned char *memory, *written;
    struct mark *marks;
    size_t bytes;
};

static struct {
    struct allocation **list; /* by address, rising */
    size_t count, capacity;
    uint64_t launch;
} memory;

void memory_begin(void) {
    memory.launch++;
}

/* ---- allocations ---- */

/* How many allocations begin at or below the address. */
static size_t place_of(uintptr_t address) {
    size_t low = 0, high = memory.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uintptr_t)memory.list[middle]->memory <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool holds(const struct allocation *allocation, uintptr_t address, size_t bytes) {
    uintptr_t first = (uintptr_t)allocation->memory;
    return address >= first && address - first <= allocation->bytes &&
           bytes <= allocation->bytes - (address - first);
}

static struct allocation *allocation_of(uintptr_t address, size_t bytes) {
    size_t place = place_of(address);
    if (place && holds(memory.list[place - 1], address, bytes))
        return memory.list[place - 1];
    ptx_fail("%zu bytes at %#llx are not in memory of the device", bytes,
             (unsigned long long)address);
}

void *ptx_memory_new(size_t bytes) {
    struct allocation *made = calloc(1, sizeof *made);
    if (memory.count == memory.capacity) {
        memory.capacity = 2 * memory.capacity + 16;
        memory.list = realloc(memory.list, memory.capacity * sizeof(void *));
    }
    made->bytes = bytes;
    made->memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    made->written = calloc(bytes, 1);
    made->marks = calloc(bytes, sizeof *made->marks);
    if (!memory.list || !made->memory || !made->written || !made->marks)
        ptx_fail("no memory of the host");
    memset(made->memory, FRESH, bytes);
    size_t place = place_of((uintptr_t)made->memory);
    memmove(memory.list + place + 1, memory.list + place, (memory.count - place) * sizeof(void *));
    memory.list[place] = made;
    memory.count++;
    return made->memory;
}

void ptx_memory_free(void *given) {
    if (!given)
        return;
    struct allocation *old = allocation_of((uintptr_t)given, 0);
    size_t place = place_of((uintptr_t)given) - 1;
    if (old->memory != given)
        ptx_fail("memory is released that was never given");
    memmove(memory.list + place, memory.list + place + 1,
            (memory.count - place - 1) * sizeof(void *));
    memory.count--;
    free(old->memory);
    free(old->written);
    free(old->marks);
    free(old);
}

/* ---- what the host does ---- */

static unsigned char *written_at(const void *address, size_t bytes) {
    const struct allocation *allocation = allocation_of((uintptr_t)address, bytes);
    return allocation->written + ((const unsigned char *)address - allocation->memory);
}

void ptx_memory_put(void *to, const void *from, size_t bytes) {
    memset(written_at(to, bytes), 1, bytes);
    memcpy(to, from, bytes);
}

void ptx_memory_fill(void *to, int byte, size_t bytes) {
    memset(written_at(to, bytes), 1, bytes);
    memset(to, byte, bytes);
}

/* Of what was never written the host may get a copy: it often needs only a part. */
void ptx_memory_get(void *to, const void *from, size_t bytes) {
    (void)written_at(from, bytes);
    memcpy(to, from, bytes);
}

void ptx_memory_copy(void *to, const void *from, size_t bytes) {
    memmove(written_at(to, bytes), written_at(from, bytes), bytes);
    memmove(to, from, bytes);
}

/* ---- what threads do ---- */

struct view {
    unsigned char *bytes, *written; /* `written` NULL: all of it is */
    struct mark *marks;             /* NULL: only one thread can touch it */
};

static struct view view_global(const struct instruction *in, uint64_t address, size_t bytes) {
    struct allocation **near = &((struct instruction *)in)->near; /* only a guess */
    if (!*near || !holds(*near, address, bytes))
        *near = allocation_of(address, bytes);
    uint64_t offset = address - (uintptr_t)(*near)->memory;
    return (struct view){(*near)->memory + offset, (*near)->written + offset,
                         (*near)->marks + offset};
}

static void check_within(const char *what, uint64_t offset, size_t bytes, size_t size) {
    if (offset > size || bytes > size - offset)
        ptx_fail("%zu bytes at %llu are not in the %zu bytes of %s", bytes,
                 (unsigned long long)offset, size, what);
}

static struct view view_of(const struct thread *thread, const struct instruction *in,
                           uint64_t address, size_t bytes) {
    const struct program *program = thread->block->program;
    enum space space = in->space;
    if (space == SPACE_GENERIC) {
        space = SPACE_GLOBAL + (enum space)(address >> GENERIC_BIT);
        address &= GENERIC_OFFSET;
    }
    switch (space) {
    case SPACE_SHARED:
        check_within("shared memory", address, bytes, program->shared_bytes);
        return (struct view){thread->block->shared + address,
                             thread->block->shared + program->shared_bytes + address,
                             thread->block->marks + address};
    case SPACE_LOCAL:
        check_within("local memory", address, bytes, program->local_bytes);
        return (struct view){thread->local + address, thread->local_written + address, NULL};
    case SPACE_PARAM:
        check_within("arguments", address, bytes, program->argument_bytes);
        return (struct view){thread->block->arguments + address, NULL, NULL};
    default:
        return view_global(in, address, bytes);
    }
}

static bool is_written(const unsigned char *written, size_t bytes) {
    uint64_t eight;
    if (bytes != sizeof eight)
        return !memchr(written, 0, bytes);
    memcpy(&eight, written, sizeof eight);
    return eight == UINT64_C(0x0101010101010101);
}

/* The memory that an instruction means, for this access. */
static struct view access_memory(const struct thread *thread, const struct instruction *in,
                                 enum access access) {
    size_t bytes = (size_t)in->bytes * in->count;
    uint64_t base =
        in->space == SPACE_SHARED ? thread->r[in->from[0]].u32 : thread->r[in->from[0]].u64;
    uint64_t address = base + (uint64_t)in->offset;
    if (address % bytes)
        ptx_fail("the address %#llx is not a multiple of %zu", (unsigned long long)address, bytes);
    struct view view = view_of(thread, in, address, bytes);
    if (view.written && access != ACCESS_WRITE && !is_written(view.written, bytes))
        ptx_fail("it reads memory that was never written");
    if (view.written && access == ACCESS_WRITE)
        memset(view.written, 1, bytes);
    uint64_t who =
        mark_who(memory.launch, thread->block->number, thread->block->phase, thread->number);
    if (view.marks && mark_access(view.marks, bytes, access, who))
        ptx_fail("it touches memory that another thread touches, with no barrier between them");
    return view;
}

static union word loaded(const unsigned char *from, uint32_t bytes, bool is_signed) {
    union word word = {0};
    if (bytes == 8)
        memcpy(&word, from, 8);
    else if (bytes == 4)
        memcpy(&word, from, 4);
    else
        memcpy(&word, from, bytes);
    if (is_signed && bytes == 1)
        word.s64 = (int8_t)word.u64;
    else if (is_signed && bytes == 2)
        word.s64 = word.s16;
    else if (is_signed && bytes == 4)
        word.s64 = word.s32;
    return word;
}

/* Volatile reads are of what other threads change by atomic operations. */
void step_load(struct thread *thread, const struct instruction *in) {
    struct view view = access_memory(thread, in, in->is_volatile ? ACCESS_ATOMIC : ACCESS_READ);
    for (uint32_t i = 0; i < in->count; i++)
        thread->r[in->to[i]] = loaded(view.bytes + i * in->bytes, in->bytes, in->is_signed);
}

void step_store(struct thread *thread, const struct instruction *in) {
    struct view view = access_memory(thread, in, ACCESS_WRITE);
    for (uint32_t i = 0; i < in->count; i++)
        memcpy(view.bytes + i * in->bytes, &thread->r[in->from[1 + i]], in->bytes);
}

/* ---- atomic operations on words without a sign ---- */

static void exchange(struct thread *thread, const struct instruction *in,
                     uint64_t (*operate)(uint64_t, uint64_t)) {
    struct view view = access_memory(thread, in, ACCESS_ATOMIC);
    union word before = loaded(view.bytes, in->bytes, false), given = thread->r[in->from[1]];
    uint64_t after = operate(before.u64, in->bytes == 4 ? given.u32 : given.u64);
    memcpy(view.bytes, &after, in->bytes);
    thread->r[in->to[0]] = before;
}

static uint64_t sum_of(uint64_t a, uint64_t b) {
    return a + b;
}

static uint64_t larger_of(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t either_of(uint64_t a, uint64_t b) {
    return a | b;
}

void step_add(struct thread *thread, const struct instruction *in) {
    exchange(thread, in, sum_of);
}

void step_max(struct thread *thread, const struct instruction *in) {
    exchange(thread, in, larger_of);
}

void step_or(struct thread *thread, const struct instruction *in) {
    exchange(thread, in, either_of);
}

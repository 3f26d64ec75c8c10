#include "device/device.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/clock.h"
#include "device/backend.h"

struct allocation {
    void *memory;
    size_t bytes;
};

struct device {
    const struct device_backend *backend;
    void *state;
    char name[DEVICE_NAME_BYTES];
    bool lost;
    struct allocation *allocations;
    size_t count, capacity;
    uint64_t used, limit;
    uint64_t calls_left; /* that do not fail; 0: no such limit */
    bool counts_calls;
};

#ifdef HAVE_CUDA
#define CUDA device_cuda
#else
static unsigned none(const char **why) {
    *why = "this program was built without CUDA";
    return 0;
}

static const struct device_backend no_cuda = {.count = none};

#define CUDA no_cuda
#endif

static const struct device_backend *backend_of(enum device_kind kind) {
    return kind == DEVICE_EMULATED ? &device_emulated : &CUDA;
}

unsigned device_count(enum device_kind kind, const char **why) {
    return backend_of(kind)->count(why);
}

const char *device_describe(enum device_kind kind, unsigned number, uint64_t *bytes) {
    static _Thread_local char name[DEVICE_NAME_BYTES];
    backend_of(kind)->describe(number, name, bytes);
    return name;
}

/* ---- failing ---- */

/* Turns the answer of a backend into an error code. */
static int answer(struct device *device, int failure, const char *why) {
    if (!failure)
        return 0;
    assert(failure == BACKEND_FULL || failure == BACKEND_LOST);
    device->lost |= failure != BACKEND_FULL;
    return error_set(ERROR_UNAVAILABLE, "%s: %s", device->name, why);
}

/* 0 if a call may be made; else the error, and why. */
static int check(struct device *device) {
    if (device->counts_calls && device->calls_left-- == 0) {
        device->calls_left = 0;
        device->lost = true;
    }
    if (failpoint_hit(FAILPOINT_device_lost))
        device->lost = true;
    return device->lost ? answer(device, BACKEND_LOST, "the device was lost") : 0;
}

bool device_is_lost(const struct device *device) {
    return device->lost;
}

/* ---- opening and closing ---- */

static uint64_t patience_for(uint64_t most_ms) {
    const char *text = getenv("DML_DEVICE_PATIENCE_MS");
    return text ? strtoull(text, NULL, 10) : most_ms;
}

void device_be_patient(struct device *device, uint64_t most_ms) {
    device->backend->be_patient(device->state, patience_for(most_ms));
}

int device_open(enum device_kind kind, unsigned number, struct device **device) {
    const struct device_backend *backend = backend_of(kind);
    const char *why = NULL;
    char reason[DEVICE_WHY_BYTES] = "";
    *device = NULL;
    unsigned count = backend->count(&why);
    if (!count)
        return error_set(ERROR_UNAVAILABLE, "no device can be used: %s", why);
    if (number >= count)
        return error_set(ERROR_UNAVAILABLE, "there is no device %u here: there are %u, from 0 on",
                         number, count);
    struct device *opened = memory_new(1, sizeof *opened);
    uint64_t bytes;
    opened->backend = backend;
    const char *text = getenv("DML_DEVICE_BYTES");
    opened->limit = text ? strtoull(text, NULL, 10) : UINT64_MAX;
    backend->describe(number, opened->name, &bytes);
    int failure = backend->open(number, patience_for(DEVICE_ANSWER_MS), &opened->state, reason);
    int code = answer(opened, failure, reason);
    if (code) {
        free(opened);
        return code;
    }
    const char *seed = getenv("DML_SHUFFLE");
    device_shuffle(opened, seed ? strtoull(seed, NULL, 10) : 0);
    *device = opened;
    return 0;
}

void device_close(struct device *device) {
    if (!device)
        return;
    while (device->count)
        device_delete(device, device->allocations[device->count - 1].memory);
    assert(!device->used);
    device->backend->close(device->state);
    free(device->allocations);
    free(device);
}

const char *device_name(const struct device *device) {
    return device->name;
}

/* ---- memory ---- */

static uint64_t left_of_limit(const struct device *device) {
    return device->limit > device->used ? device->limit - device->used : 0;
}

uint64_t device_room(const struct device *device) {
    uint64_t left = left_of_limit(device);
    uint64_t there = device->lost ? 0 : device->backend->room(device->state);
    return left < there ? left : there;
}

static int out_of_memory(struct device *device, size_t bytes) {
    char why[DEVICE_WHY_BYTES];
    snprintf(why, sizeof why, "no memory for %zu more bytes; %llu are in use here", bytes,
             (unsigned long long)device->used);
    return answer(device, BACKEND_FULL, why);
}

int device_new(struct device *device, size_t bytes, void **memory) {
    char why[DEVICE_WHY_BYTES] = "";
    *memory = NULL;
    bytes = bytes ? bytes : 1;
    int code = check(device);
    if (code)
        return code;
    if (failpoint_hit(FAILPOINT_device_memory) || bytes > left_of_limit(device))
        return out_of_memory(device, bytes);
    int failure = device->backend->allocate(device->state, bytes, memory, why);
    if (failure == BACKEND_FULL)
        return out_of_memory(device, bytes);
    if (failure)
        return answer(device, failure, why);
    MEMORY_ROOM(device->allocations, device->count, device->capacity);
    device->allocations[device->count++] = (struct allocation){*memory, bytes};
    device->used += bytes;
    return 0;
}

/* What was allocated last is mostly released first, so the search begins there. */
void device_delete(struct device *device, void *memory) {
    size_t i = device->count;
    if (!memory)
        return;
    while (i > 0 && device->allocations[i - 1].memory != memory)
        i--;
    assert(i > 0 && device->allocations[i - 1].bytes <= device->used);
    device->backend->release(device->state, memory);
    device->used -= device->allocations[i - 1].bytes;
    device->allocations[i - 1] = device->allocations[--device->count];
}

/* ---- queues ---- */

/* On a slow device a proof, many waits, takes longer than a worker may say nothing. */
static int waited(int code) {
    heartbeat();
    return code;
}

int device_put(struct device *device, enum device_queue queue, void *to, const void *from,
               size_t bytes) {
    char why[DEVICE_WHY_BYTES] = "";
    int code = check(device);
    if (code || !bytes)
        return code;
    return answer(device, device->backend->put(device->state, queue, to, from, bytes, why), why);
}

int device_get(struct device *device, enum device_queue queue, void *to, const void *from,
               size_t bytes) {
    char why[DEVICE_WHY_BYTES] = "";
    int code = check(device);
    if (code || !bytes)
        return code;
    return waited(
        answer(device, device->backend->get(device->state, queue, to, from, bytes, why), why));
}

int device_fill(struct device *device, enum device_queue queue, void *to, int byte, size_t bytes) {
    char why[DEVICE_WHY_BYTES] = "";
    int code = check(device);
    if (code || !bytes)
        return code;
    return answer(device, device->backend->fill(device->state, queue, to, byte, bytes, why), why);
}

int device_copy(struct device *device, enum device_queue queue, void *to, const void *from,
                size_t bytes) {
    char why[DEVICE_WHY_BYTES] = "";
    int code = check(device);
    if (code || !bytes)
        return code;
    return answer(device, device->backend->copy(device->state, queue, to, from, bytes, why), why);
}

int device_launch(struct device *device, enum device_queue queue, const struct kernel *kernel,
                  uint64_t blocks, const void *arguments) {
    char why[DEVICE_WHY_BYTES] = "";
    int code = check(device);
    if (code || !blocks)
        return code;
    if (failpoint_hit(FAILPOINT_device_launch) || blocks > INT32_MAX) {
        snprintf(why, sizeof why, "the kernel %s could not be started", kernel->name);
        return answer(device, BACKEND_LOST, why);
    }
    return answer(
        device,
        device->backend->launch(device->state, queue, kernel, (uint32_t)blocks, arguments, why),
        why);
}

int device_order(struct device *device, enum device_queue before, enum device_queue after) {
    char why[DEVICE_WHY_BYTES] = "";
    int code = check(device);
    if (code)
        return code;
    return answer(device, device->backend->order(device->state, before, after, why), why);
}

int device_wait(struct device *device, enum device_queue queue) {
    char why[DEVICE_WHY_BYTES] = "";
    int code = check(device);
    if (code)
        return code;
    return waited(answer(device, device->backend->wait(device->state, queue, why), why));
}

/* ---- for tests ---- */

void device_limit(struct device *device, uint64_t bytes) {
    device->limit = bytes;
}

void device_fail_after(struct device *device, uint64_t calls) {
    device->counts_calls = true;
    device->calls_left = calls;
}

void device_shuffle(struct device *device, uint64_t seed) {
    if (device->backend->shuffle)
        device->backend->shuffle(device->state, seed);
}

/* ---- waiting for a device (device/backend.h) ---- */

#define SPIN_NS INT64_C(100000)
#define PAUSE_SHARE 32 /* of the time since */
#define PAUSE_NS_MIN INT64_C(10000)
#define PAUSE_NS_MAX INT64_C(1000000)

void patience_begin(struct patience *patience, uint64_t most_ms) {
    patience->since_ns = clock_monotonic_ns();
    patience->most_ns = (int64_t)most_ms * NS_PER_MS;
}

bool patience_lasts(const struct patience *patience) {
    int64_t waited = clock_monotonic_ns() - patience->since_ns;
    if (waited < SPIN_NS)
        return true;
    if (waited >= patience->most_ns)
        return false;
    int64_t pause = waited / PAUSE_SHARE;
    pause = pause < PAUSE_NS_MIN ? PAUSE_NS_MIN : pause > PAUSE_NS_MAX ? PAUSE_NS_MAX : pause;
    nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    return true;
}

void patience_over(uint64_t most_ms, char *why) {
    snprintf(why, DEVICE_WHY_BYTES,
             "it hangs: what it was told to do has not ended in %" PRIu64 ".%03" PRIu64 " s",
             most_ms / 1000, most_ms % 1000);
}

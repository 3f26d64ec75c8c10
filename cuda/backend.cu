/* GPUs, by the CUDA runtime: the only file that calls it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>

#include "device/backend.h"

/* Memory of the host that the GPU reads and writes by itself. A slot is used again when the GPU has
 * done so. It takes a limited number of copies: a queue that is too long makes its callers wait,
 * and that without a limit if the GPU hangs. */
#define SLOTS 4
#define SLOT_BYTES (UINT64_C(4) << 20)
#define SLOT_PUTS 128
#define SLOT_ALIGNMENT 64

/* The driver takes memory too: for kernels when they first run, and for its own tables. */
#define RESERVED_BYTES (UINT64_C(256) << 20)

struct slot {
    unsigned char *memory;
    cudaEvent_t taken; /* recorded when the slot was left to the GPU */
};

struct stream {
    cudaStream_t stream;
    struct slot slots[SLOTS];
    unsigned slot; /* the one that is filled */
    size_t used;   /* bytes of it */
    unsigned puts; /* into it */
};

struct cuda {
    int number;
    struct stream streams[DEVICE_QUEUES];
    cudaEvent_t ordered;
    uint64_t patience_ms;
};

/* A GPU of this process hangs: what the runtime is still told may wait for it for ever. */
static bool hangs;

/* ---- failing ---- */

static int failed(cudaError_t error, const char *doing, char *why) {
    if (error == cudaSuccess)
        return 0;
    (void)cudaGetLastError();
    snprintf(why, DEVICE_WHY_BYTES, "%s: %s (%s)", doing, cudaGetErrorString(error),
             cudaGetErrorName(error));
    return error == cudaErrorMemoryAllocation ? BACKEND_FULL : BACKEND_LOST;
}

/* The runtime waits for the GPU also when the process ends. */
static void leave_at_once(int status, void *unused) {
    (void)unused;
    fflush(NULL);
    _exit(status);
}

static int give_up(const struct cuda *cuda, char *why) {
    if (!hangs)
        (void)on_exit(leave_at_once, NULL);
    hangs = true;
    patience_over(cuda->patience_ms, why);
    return BACKEND_LOST;
}

/* The runtime's calls go to the device that the thread has chosen. */
static struct cuda *chosen(void *state) {
    struct cuda *cuda = (struct cuda *)state;
    (void)cudaSetDevice(cuda->number);
    return cuda;
}

/* ---- waiting ---- */

typedef cudaError_t query_function(void *asked);

static cudaError_t query_stream(void *stream) {
    return cudaStreamQuery((cudaStream_t)stream);
}

static cudaError_t query_event(void *event) {
    return cudaEventQuery((cudaEvent_t)event);
}

/* Waits until what is asked has ended: the runtime's own waits have no limit. */
static int await(const struct cuda *cuda, query_function *query, void *asked, const char *doing,
                 char *why) {
    struct patience patience;
    cudaError_t error;
    patience_begin(&patience, cuda->patience_ms);
    while ((error = query(asked)) == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* "not ready" counts as one */
        if (!patience_lasts(&patience))
            return give_up(cuda, why);
    }
    return failed(error, doing, why);
}

static int wait(void *state, enum device_queue queue, char *why) {
    struct cuda *cuda = chosen(state);
    return await(cuda, query_stream, cuda->streams[queue].stream, "a kernel failed", why);
}

/* For those who release things: nothing uses them any more. False if the GPU hangs. */
static bool settled(struct cuda *cuda) {
    char why[DEVICE_WHY_BYTES];
    for (unsigned queue = 0; queue < DEVICE_QUEUES && !hangs; queue++)
        if (cuda->streams[queue].stream)
            (void)wait(cuda, (enum device_queue)queue, why);
    return !hangs;
}

/* ---- what is there ---- */

static const char *no_device(cudaError_t error) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return "there is no NVIDIA driver here";
    if (error == cudaErrorInsufficientDriver)
        return "the NVIDIA driver is too old for the CUDA runtime of this program: update it, or "
               "build with an older CUDA Toolkit";
    if (error == cudaErrorNoDevice || error == cudaSuccess)
        return "there is no GPU that this process may use (see nvidia-smi and "
               "CUDA_VISIBLE_DEVICES)";
    return cudaGetErrorString(error);
}

static unsigned count_devices(const char **why) {
    int count = 0;
    if (hangs) {
        *why = "the one that this process has used hangs: restart the process, or the machine";
        return 0;
    }
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0)
        return (unsigned)count;
    (void)cudaGetLastError();
    *why = no_device(error);
    return 0;
}

static void describe(unsigned number, char name[DEVICE_NAME_BYTES], uint64_t *bytes) {
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, (int)number) != cudaSuccess) {
        (void)cudaGetLastError();
        properties.name[0] = '\0';
        properties.totalGlobalMem = 0;
    }
    snprintf(name, DEVICE_NAME_BYTES, "cuda:%u%s%.100s", number, properties.name[0] ? " " : "",
             properties.name);
    *bytes = properties.totalGlobalMem;
}

/* ---- copies ---- */

/* Leaves the slot to the GPU, and waits until that has no use for the next one any more. */
static int next_slot(const struct cuda *cuda, struct stream *stream, const char *doing, char *why) {
    cudaError_t error = cudaEventRecord(stream->slots[stream->slot].taken, stream->stream);
    if (error != cudaSuccess)
        return failed(error, doing, why);
    stream->slot = (stream->slot + 1) % SLOTS;
    stream->used = stream->puts = 0;
    return await(cuda, query_event, stream->slots[stream->slot].taken, doing, why);
}

/* Through pinned memory: the runtime would stage what is not pinned itself, but only after waiting
 * for the queue, and then neither copies nor kernels run beside the host. */
static int put(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why) {
    static const char doing[] = "a copy to the device failed";
    const struct cuda *cuda = chosen(state);
    struct stream *stream = &chosen(state)->streams[queue];
    int failure = 0;
    for (size_t done = 0; !failure && done < bytes;) {
        if (stream->used >= SLOT_BYTES || stream->puts == SLOT_PUTS) {
            failure = next_slot(cuda, stream, doing, why);
            continue;
        }
        size_t left = SLOT_BYTES - stream->used;
        size_t part = bytes - done < left ? bytes - done : left;
        unsigned char *staged = stream->slots[stream->slot].memory + stream->used;
        memcpy(staged, (const unsigned char *)from + done, part);
        failure = failed(cudaMemcpyAsync((unsigned char *)to + done, staged, part,
                                         cudaMemcpyHostToDevice, stream->stream),
                         doing, why);
        stream->used += (part + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
        stream->puts++;
        done += part;
    }
    return failure;
}

/* Lets the GPU fill a slot, which is *slot then, and nobody else's before it is emptied. */
static int fill_slot(const struct cuda *cuda, struct stream *stream, const void *from, size_t bytes,
                     struct slot **slot, char *why) {
    static const char doing[] = "a copy from the device failed";
    int failure = next_slot(cuda, stream, doing, why);
    if (failure)
        return failure;
    *slot = &stream->slots[stream->slot];
    stream->used = SLOT_BYTES;
    cudaError_t error =
        cudaMemcpyAsync((*slot)->memory, from, bytes, cudaMemcpyDeviceToHost, stream->stream);
    if (error == cudaSuccess)
        error = cudaEventRecord((*slot)->taken, stream->stream);
    return failed(error, doing, why);
}

static size_t part_after(size_t done, size_t bytes) {
    return bytes - done < SLOT_BYTES ? bytes - done : SLOT_BYTES;
}

/* Through pinned memory, too: a copy to other memory would return when it has ended, however long
 * that takes. While the host empties a slot the GPU fills the next one. */
static int get(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why) {
    const struct cuda *cuda = chosen(state);
    struct stream *stream = &chosen(state)->streams[queue];
    struct slot *slot = NULL, *next = NULL;
    size_t part = part_after(0, bytes), following;
    int failure = fill_slot(cuda, stream, from, part, &slot, why);
    for (size_t done = 0; !failure && done < bytes; done += part, part = following, slot = next) {
        following = part_after(done + part, bytes);
        if (following)
            failure = fill_slot(cuda, stream, (const unsigned char *)from + done + part, following,
                                &next, why);
        if (!failure)
            failure = await(cuda, query_event, slot->taken, "a kernel failed", why);
        if (!failure)
            memcpy((unsigned char *)to + done, slot->memory, part);
    }
    return failure;
}

static int fill(void *state, enum device_queue queue, void *to, int byte, size_t bytes, char *why) {
    cudaStream_t stream = chosen(state)->streams[queue].stream;
    return failed(cudaMemsetAsync(to, byte, bytes, stream), "memory cannot be filled", why);
}

static int copy(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
                char *why) {
    cudaStream_t stream = chosen(state)->streams[queue].stream;
    return failed(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                  "a copy within the device failed", why);
}

/* ---- opening and closing ---- */

static int open_stream(struct stream *stream, char *why) {
    int failure = failed(cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking),
                         "no queue can be made", why);
    for (unsigned i = 0; !failure && i < SLOTS; i++) {
        struct slot *slot = &stream->slots[i];
        failure = failed(cudaHostAlloc((void **)&slot->memory, SLOT_BYTES, cudaHostAllocDefault),
                         "no memory of the host can be pinned for copies", why);
        if (!failure)
            failure = failed(cudaEventCreateWithFlags(&slot->taken, cudaEventDisableTiming),
                             "no event can be made", why);
    }
    return failure;
}

__global__ void probe_kernel(int *answer) {
    *answer = 42;
}

/* Whether the GPU runs what this program holds, while that can still be an answer. */
static int probe(struct cuda *cuda, char *why) {
    int *answer = NULL, got = 0;
    int failure = failed(cudaMalloc((void **)&answer, sizeof *answer), "no memory", why);
    if (failure)
        return failure;
    probe_kernel<<<1, 1, 0, cuda->streams[QUEUE_COMPUTE].stream>>>(answer);
    failure = failed(cudaGetLastError(), "it does not run the kernels of this program", why);
    if (!failure)
        failure = get(cuda, QUEUE_COMPUTE, &got, answer, sizeof got, why);
    if (!hangs)
        (void)cudaFree(answer);
    if (!failure && got != 42) {
        snprintf(why, DEVICE_WHY_BYTES, "it does not compute what it is told to");
        failure = BACKEND_LOST;
    }
    return failure;
}

static void close_stream(struct stream *stream) {
    for (unsigned i = 0; i < SLOTS; i++) {
        if (stream->slots[i].taken)
            (void)cudaEventDestroy(stream->slots[i].taken);
        (void)cudaFreeHost(stream->slots[i].memory);
    }
    if (stream->stream)
        (void)cudaStreamDestroy(stream->stream);
}

/* If a GPU hangs, everything of it is left as it is: it may still read and write there. */
static void close_device(void *state) {
    struct cuda *cuda = (struct cuda *)state;
    if (!hangs && settled(chosen(cuda))) {
        for (unsigned queue = 0; queue < DEVICE_QUEUES; queue++)
            close_stream(&cuda->streams[queue]);
        if (cuda->ordered)
            (void)cudaEventDestroy(cuda->ordered);
        (void)cudaGetLastError();
    }
    free(cuda);
}

static int open_device(unsigned number, uint64_t patience_ms, void **state, char *why) {
    struct cuda *cuda = (struct cuda *)calloc(1, sizeof *cuda);
    if (!cuda) {
        snprintf(why, DEVICE_WHY_BYTES, "no memory of the host");
        return BACKEND_FULL;
    }
    cuda->number = (int)number;
    cuda->patience_ms = patience_ms;
    int failure = failed(cudaSetDevice(cuda->number), "it cannot be used", why);
    for (unsigned queue = 0; !failure && queue < DEVICE_QUEUES; queue++)
        failure = open_stream(&cuda->streams[queue], why);
    if (!failure)
        failure = failed(cudaEventCreateWithFlags(&cuda->ordered, cudaEventDisableTiming),
                         "no event can be made", why);
    if (!failure)
        failure = probe(cuda, why);
    if (failure)
        close_device(cuda);
    else
        *state = cuda;
    return failure;
}

/* ---- memory ---- */

static uint64_t room(void *state) {
    size_t left = 0, whole = 0;
    chosen(state);
    if (cudaMemGetInfo(&left, &whole) != cudaSuccess) {
        (void)cudaGetLastError(); /* else the next launch would be blamed for it */
        return 0;
    }
    return left > RESERVED_BYTES ? left - RESERVED_BYTES : 0;
}

static int allocate(void *state, size_t bytes, void **memory, char *why) {
    chosen(state);
    return failed(cudaMalloc(memory, bytes), "memory cannot be had", why);
}

/* That cudaFree() waits for what still uses the memory is not promised. */
static void release(void *state, void *memory) {
    if (!hangs && settled(chosen(state)))
        (void)cudaFree(memory);
}

/* ---- queues ---- */

/* What earlier kernels failed of may be told here, too. */
static int launch(void *state, enum device_queue queue, const struct kernel *kernel,
                  uint32_t blocks, const void *arguments, char *why) {
    char doing[80];
    kernel->launch(chosen(state)->streams[queue].stream, blocks, arguments);
    snprintf(doing, sizeof doing, "the kernel %s could not be started", kernel->name);
    return failed(cudaGetLastError(), doing, why);
}

static int order(void *state, enum device_queue before, enum device_queue after, char *why) {
    struct cuda *cuda = chosen(state);
    cudaError_t error = cudaEventRecord(cuda->ordered, cuda->streams[before].stream);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(cuda->streams[after].stream, cuda->ordered, 0);
    return failed(error, "one queue cannot wait for the other", why);
}

static void be_patient(void *state, uint64_t most_ms) {
    ((struct cuda *)state)->patience_ms = most_ms;
}

/* In the order of the fields. */
const struct device_backend device_cuda = {
    count_devices, describe, open_device, close_device, room,  allocate, release,    put,
    get,           fill,     copy,        launch,       order, wait,     be_patient, NULL,
};

/* GPUs, by the CUDA runtime: the only file that calls it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#include "device/backend.h"

/* Memory of the host that the GPU reads by itself. A slot is used again when the GPU has read it.
 */
#define SLOTS 4
#define SLOT_BYTES (UINT64_C(4) << 20)
#define SLOT_ALIGNMENT 64

/* The driver takes memory too: for kernels when they first run, and for its own tables. */
#define RESERVED_BYTES (UINT64_C(256) << 20)

struct slot {
    unsigned char *memory;
    cudaEvent_t read; /* recorded when the slot was full */
};

struct stream {
    cudaStream_t stream;
    struct slot slots[SLOTS];
    unsigned slot; /* the one that is filled */
    size_t used;   /* bytes of it */
};

struct cuda {
    int number;
    struct stream streams[DEVICE_QUEUES];
    cudaEvent_t ordered;
};

/* ---- failing ---- */

static int failed(cudaError_t error, const char *doing, char *why) {
    if (error == cudaSuccess)
        return 0;
    (void)cudaGetLastError();
    snprintf(why, DEVICE_WHY_BYTES, "%s: %s (%s)", doing, cudaGetErrorString(error),
             cudaGetErrorName(error));
    return error == cudaErrorMemoryAllocation ? BACKEND_FULL : BACKEND_LOST;
}

/* The runtime's calls go to the device that the thread has chosen. */
static struct cuda *chosen(void *state) {
    struct cuda *cuda = (struct cuda *)state;
    (void)cudaSetDevice(cuda->number);
    return cuda;
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

/* ---- opening and closing ---- */

static int open_stream(struct stream *stream, char *why) {
    int failure = failed(cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking),
                         "no queue can be made", why);
    for (unsigned i = 0; !failure && i < SLOTS; i++) {
        struct slot *slot = &stream->slots[i];
        failure = failed(cudaHostAlloc((void **)&slot->memory, SLOT_BYTES, cudaHostAllocDefault),
                         "no memory of the host can be pinned for copies", why);
        if (!failure)
            failure = failed(cudaEventCreateWithFlags(&slot->read, cudaEventDisableTiming),
                             "no event can be made", why);
    }
    return failure;
}

__global__ void probe_kernel(int *answer) {
    *answer = 42;
}

/* Whether the GPU runs what this program holds, while that can still be an answer. */
static int probe(struct cuda *cuda, char *why) {
    struct stream *stream = &cuda->streams[QUEUE_COMPUTE];
    int *answer = NULL, got = 0;
    int failure = failed(cudaMalloc((void **)&answer, sizeof *answer), "no memory", why);
    if (failure)
        return failure;
    probe_kernel<<<1, 1, 0, stream->stream>>>(answer);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(&got, answer, sizeof got, cudaMemcpyDeviceToHost, stream->stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream->stream);
    (void)cudaFree(answer);
    failure = failed(error, "it does not run the kernels of this program", why);
    if (!failure && got != 42) {
        snprintf(why, DEVICE_WHY_BYTES, "it does not compute what it is told to");
        failure = BACKEND_LOST;
    }
    return failure;
}

static void close_device(void *state) {
    struct cuda *cuda = chosen(state);
    for (unsigned queue = 0; queue < DEVICE_QUEUES; queue++) {
        struct stream *stream = &cuda->streams[queue];
        if (stream->stream)
            (void)cudaStreamSynchronize(stream->stream);
        for (unsigned i = 0; i < SLOTS; i++) {
            if (stream->slots[i].read)
                (void)cudaEventDestroy(stream->slots[i].read);
            (void)cudaFreeHost(stream->slots[i].memory);
        }
        if (stream->stream)
            (void)cudaStreamDestroy(stream->stream);
    }
    if (cuda->ordered)
        (void)cudaEventDestroy(cuda->ordered);
    (void)cudaGetLastError();
    free(cuda);
}

static int open_device(unsigned number, void **state, char *why) {
    struct cuda *cuda = (struct cuda *)calloc(1, sizeof *cuda);
    if (!cuda) {
        snprintf(why, DEVICE_WHY_BYTES, "no memory of the host");
        return BACKEND_FULL;
    }
    cuda->number = (int)number;
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
    struct cuda *cuda = chosen(state);
    for (unsigned queue = 0; queue < DEVICE_QUEUES; queue++)
        (void)cudaStreamSynchronize(cuda->streams[queue].stream);
    (void)cudaFree(memory);
}

/* ---- copies ---- */

/* Leaves the slot to the GPU, and waits until it has read the next one. */
static cudaError_t next_slot(struct stream *stream) {
    cudaError_t error = cudaEventRecord(stream->slots[stream->slot].read, stream->stream);
    if (error != cudaSuccess)
        return error;
    stream->slot = (stream->slot + 1) % SLOTS;
    stream->used = 0;
    return cudaEventSynchronize(stream->slots[stream->slot].read);
}

/* Through pinned memory: the runtime would stage what is not pinned itself, but only after waiting
 * for the queue, and then neither copies nor kernels run beside the host. */
static int put(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why) {
    struct stream *stream = &chosen(state)->streams[queue];
    cudaError_t error = cudaSuccess;
    for (size_t done = 0; error == cudaSuccess && done < bytes;) {
        if (stream->used >= SLOT_BYTES) {
            error = next_slot(stream);
            continue;
        }
        size_t left = SLOT_BYTES - stream->used;
        size_t part = bytes - done < left ? bytes - done : left;
        unsigned char *staged = stream->slots[stream->slot].memory + stream->used;
        memcpy(staged, (const unsigned char *)from + done, part);
        error = cudaMemcpyAsync((unsigned char *)to + done, staged, part, cudaMemcpyHostToDevice,
                                stream->stream);
        stream->used += (part + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
        done += part;
    }
    return failed(error, "a copy to the device failed", why);
}

static int get(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why) {
    cudaStream_t stream = chosen(state)->streams[queue].stream;
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    return failed(error, "a copy from the device failed", why);
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

static int wait(void *state, enum device_queue queue, char *why) {
    return failed(cudaStreamSynchronize(chosen(state)->streams[queue].stream), "a kernel failed",
                  why);
}

/* In the order of the fields. */
const struct device_backend device_cuda = {
    count_devices, describe, open_device, close_device, room,  allocate, release, put,
    get,           fill,     copy,        launch,       order, wait,     NULL,
};

/* The part of the CUDA runtime that programs of this project call, with an interpreter in place of
 * a GPU: cuda/backend.cu and the kernels' launches are linked with it as they are.
 *
 * A stream does nothing before it is asked whether it has ended, so that what is missing shows: an
 * order between streams, or a wait before the host uses memory again. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/random.h"
#include "tests/ptx/ptx.h"
#include "tests/ptx/runtime.h"

#define ROOM_BYTES (UINT64_C(8) << 30)

enum task_kind { TASK_COPY, TASK_FILL, TASK_LAUNCH, TASK_AWAIT };

struct task {
    enum task_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    int byte;
    enum cudaMemcpyKind copy;
    struct program *program;
    uint32_t blocks, threads;
    void *arguments;
    cudaStream_t stream; /* AWAIT: of this stream, tasks up to number `until` */
    uint64_t until;
};

struct CUstream_st {
    struct task *tasks; /* those from `first` on are not done */
    size_t first, count, capacity;
    uint64_t done; /* how many are */
    cudaStream_t next;
};

struct CUevent_st {
    cudaStream_t stream; /* NULL: not recorded */
    uint64_t until;
};

static struct {
    pthread_mutex_t lock;
    cudaStream_t streams;
    uint64_t launches;
} runtime = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};

/* Calls of several threads come one after the other. */
static cudaError_t leave(void) {
    pthread_mutex_unlock(&runtime.lock);
    return cudaSuccess;
}

static void enter(void) {
    pthread_mutex_lock(&runtime.lock);
}

/* ---- streams ---- */

static void run_copy(const struct task *task) {
    if (task->copy == cudaMemcpyHostToDevice)
        ptx_memory_put(task->to, task->from, task->bytes);
    else if (task->copy == cudaMemcpyDeviceToHost)
        ptx_memory_get(task->to, task->from, task->bytes);
    else
        ptx_memory_copy(task->to, task->from, task->bytes);
}

static uint64_t seed(void) {
    const char *text = getenv("DML_SHUFFLE");
    return random_mix((text ? strtoull(text, NULL, 10) : 1) + runtime.launches++);
}

static void run_until(cudaStream_t stream, uint64_t until);

static void run_task(const struct task *task) {
    switch (task->kind) {
    case TASK_COPY:
        run_copy(task);
        break;
    case TASK_FILL:
        ptx_memory_fill(task->to, task->byte, task->bytes);
        break;
    case TASK_LAUNCH:
        ptx_run(task->program, task->blocks, task->threads, task->arguments, seed());
        break;
    case TASK_AWAIT:
        run_until(task->stream, task->until);
        break;
    }
    free(task->arguments);
}

static void run_until(cudaStream_t stream, uint64_t until) {
    while (stream->done < until) {
        struct task task = stream->tasks[stream->first++];
        stream->done++;
        if (stream->first == stream->count)
            stream->first = stream->count = 0;
        run_task(&task);
    }
}

static uint64_t end_of(cudaStream_t stream) {
    return stream->done + stream->count - stream->first;
}

static void add_task(cudaStream_t stream, struct task task) {
    if (stream->count == stream->capacity) {
        stream->capacity = 2 * stream->capacity + 16;
        stream->tasks = realloc(stream->tasks, stream->capacity * sizeof task);
        if (!stream->tasks)
            abort();
    }
    stream->tasks[stream->count++] = task;
}

static void run_all(void) {
    for (cudaStream_t stream = runtime.streams; stream; stream = stream->next)
        run_until(stream, end_of(stream));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return cudaErrorMemoryAllocation;
    enter();
    (*stream)->next = runtime.streams;
    runtime.streams = *stream;
    return leave();
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    enter();
    run_until(stream, end_of(stream));
    cudaStream_t *at = &runtime.streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    free(stream->tasks);
    free(stream);
    return leave();
}

/* Whether nothing that is asked for has ended, nor ever will: for tests of devices that hang. */
static bool hangs(void) {
    return getenv("DML_PTX_HANGS") != NULL;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (hangs())
        return cudaErrorNotReady;
    enter();
    run_until(stream, end_of(stream));
    return leave();
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    enter();
    event->stream = stream;
    event->until = end_of(stream);
    return leave();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (event->stream && hangs())
        return cudaErrorNotReady;
    enter();
    if (event->stream)
        run_until(event->stream, event->until);
    return leave();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    enter();
    if (event->stream)
        add_task(stream,
                 (struct task){.kind = TASK_AWAIT, .stream = event->stream, .until = event->until});
    return leave();
}

/* ---- memory ---- */

/* Memory is not counted: tests limit it where they care. */
cudaError_t cudaMalloc(void **memory, size_t bytes) {
    if (bytes > ROOM_BYTES)
        return cudaErrorMemoryAllocation;
    enter();
    *memory = ptx_memory_new(bytes);
    return leave();
}

cudaError_t cudaFree(void *memory) {
    enter();
    run_all();
    ptx_memory_free(memory);
    return leave();
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    *memory = malloc(bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory) {
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *whole) {
    *left = *whole = ROOM_BYTES;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    enter();
    add_task(stream, (struct task){
                         .kind = TASK_COPY, .to = to, .from = from, .bytes = bytes, .copy = kind});
    return leave();
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    enter();
    add_task(stream, (struct task){.kind = TASK_FILL, .to = to, .byte = byte, .bytes = bytes});
    return leave();
}

/* ---- devices: one ---- */

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, "interpreted PTX");
    properties->totalGlobalMem = ROOM_BYTES;
    return cudaSetDevice(device);
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory" : "unknown error";
}

/* ---- kernels: what nvcc's code for the host calls ---- */

struct CUkern_st {
    const void *host; /* the function that stands for it there */
    const char *name;
    struct CUkern_st *next;
};

static struct CUkern_st *kernels;
static _Thread_local struct {
    dim3 blocks, threads;
    cudaStream_t stream;
} configured;

void **__cudaRegisterFatBinary(void *binary) {
    (void)binary;
    return NULL;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle) {
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *thread, uint3 *block, dim3 *threads, dim3 *blocks,
                            int *warp) {
    struct CUkern_st *kernel = malloc(sizeof *kernel);
    (void)handle, (void)device, (void)limit, (void)thread, (void)block;
    (void)threads, (void)blocks, (void)warp;
    if (!kernel)
        abort();
    *kernel = (struct CUkern_st){host, name, kernels};
    kernels = kernel;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
    for (*kernel = kernels; *kernel; *kernel = (*kernel)->next)
        if ((*kernel)->host == host)
            return cudaSuccess;
    return cudaErrorInvalidDeviceFunction;
}

unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, size_t shared,
                                     struct CUstream_st *stream) {
    (void)shared, (void)stream;
    configured.blocks = blocks;
    configured.threads = threads;
    configured.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *blocks, dim3 *threads, size_t *shared, void *stream) {
    *blocks = configured.blocks;
    *threads = configured.threads;
    *shared = 0;
    *(cudaStream_t *)stream = configured.stream;
    return cudaSuccess;
}

/* Kernels of this project have one argument, and blocks and threads in one dimension. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void **arguments,
                               size_t shared, cudaStream_t stream) {
    (void)shared;
    enter();
    struct program *program = ptx_program(kernel->name);
    size_t bytes = ptx_argument_bytes(program);
    void *copy = malloc(bytes);
    if (!copy)
        abort();
    memcpy(copy, arguments[0], bytes);
    add_task(stream, (struct task){.kind = TASK_LAUNCH,
                                   .program = program,
                                   .blocks = blocks.x,
                                   .threads = threads.x,
                                   .arguments = copy});
    return leave();
}

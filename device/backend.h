/* Inside device/ only: what the functions of device/device.h are for each kind of device. */
#ifndef DML_DEVICE_BACKEND_H
#define DML_DEVICE_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

#define DEVICE_NAME_BYTES 128

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that can fail return 0, or write a text without the device's name to `why`, which has
 * room for DEVICE_WHY_BYTES, and return one of these. */
#define DEVICE_WHY_BYTES 256
enum backend_failure {
    BACKEND_FULL = 1, /* no memory: other calls may work */
    BACKEND_LOST,     /* nothing will work any more */
};

/* `state` is what open() made. Sizes are above 0. */
struct device_backend {
    unsigned (*count)(const char **why);
    void (*describe)(unsigned number, char name[DEVICE_NAME_BYTES], uint64_t *bytes);
    int (*open)(unsigned number, uint64_t patience_ms, void **state, char *why);
    void (*close)(void *state); /* after all memory was released */
    uint64_t (*room)(void *state);
    int (*allocate)(void *state, size_t bytes, void **memory, char *why);
    void (*release)(void *state, void *memory);
    int (*put)(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why);
    int (*get)(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why);
    int (*fill)(void *state, enum device_queue queue, void *to, int byte, size_t bytes, char *why);
    int (*copy)(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
                char *why);
    int (*launch)(void *state, enum device_queue queue, const struct kernel *kernel,
                  uint32_t blocks, const void *arguments, char *why);
    int (*order)(void *state, enum device_queue before, enum device_queue after, char *why);
    int (*wait)(void *state, enum device_queue queue, char *why);
    void (*be_patient)(void *state, uint64_t most_ms);
    void (*shuffle)(void *state, uint64_t seed);
};

extern const struct device_backend device_emulated;
extern const struct device_backend device_cuda; /* only if HAVE_CUDA is defined */

/* Waiting for a device by asking it again and again: one that hangs would never wake its waiter. */

struct patience {
    int64_t since_ns, most_ns;
};

void patience_begin(struct patience *patience, uint64_t most_ms);

/* To be called when the device was asked and is still at work. Returns true when it is time to ask
 * again: at once in the first microseconds, as most waits are short; later after a pause that is a
 * small share of the wait so far, so that no core is kept busy. False: the wait is over its limit.
 */
bool patience_lasts(const struct patience *patience);

/* Writes to `why`, which has DEVICE_WHY_BYTES, that the wait was too long. */
void patience_over(uint64_t most_ms, char *why);

#ifdef __cplusplus
}
#endif

#endif

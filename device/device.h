/* A device that computes: its memory, and queues of copies and kernels.
 *
 * There are two kinds. CUDA is a GPU. The emulated device is the processor: it runs the bodies of
 * kernels in loops, in host memory, so that everything that is done with a device can be tried
 * where there is none; it is slow.
 *
 * What is put into a queue is done in order. Queues do not wait for each other unless
 * device_order() says so: the emulated one puts everything off until it is waited for, so that a
 * missing order shows. Memory of a device must not be touched by the host.
 *
 * Functions return 0, or ERROR_UNAVAILABLE with a text that names the device: no memory, or the
 * device failed; what failed may be told only by a later call. A device that hangs has failed, too:
 * no call waits for ever. After a failure other than of memory every call fails, and only
 * releasing and closing are of use. One thread at a time. */
#ifndef DML_DEVICE_DEVICE_H
#define DML_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/kernel.h"

enum device_kind { DEVICE_EMULATED, DEVICE_CUDA, DEVICE_KINDS };

enum device_queue { QUEUE_COMPUTE, QUEUE_COPY, DEVICE_QUEUES };

struct device; /* opaque */

/* How many devices of the kind this process can use; if none, *why says it (a constant). There is
 * always one emulated device. */
unsigned device_count(enum device_kind kind, const char **why);

/* "cuda:0 NVIDIA H200", "emulated"; and its memory in bytes. Of a number below device_count(). */
const char *device_describe(enum device_kind kind, unsigned number, uint64_t *bytes);

int device_open(enum device_kind kind, unsigned number, struct device **device);
void device_close(struct device *device); /* releases all of its memory; NULL is fine */

const char *device_name(const struct device *device); /* as device_describe() */
bool device_is_lost(const struct device *device);     /* whether every call fails from now on */

/* How long a call may wait from now on; at first DEVICE_ANSWER_MS. In tests DML_DEVICE_PATIENCE_MS
 * in the environment overrides it. */
void device_be_patient(struct device *device, uint64_t most_ms);

/* Bytes that device_new() may still find, all together. */
uint64_t device_room(const struct device *device);

/* Memory with undefined contents, aligned to 256 bytes; *memory is NULL after a failure, and some
 * address also for 0 bytes. Releasing waits for what is in the queues. */
int device_new(struct device *device, size_t bytes, void **memory);
void device_delete(struct device *device, void *memory); /* of device_new(), or NULL */

/* From the host: `from` may change as soon as it returns. To the host: returns when all is there.
 */
int device_put(struct device *device, enum device_queue queue, void *to, const void *from,
               size_t bytes);
int device_get(struct device *device, enum device_queue queue, void *to, const void *from,
               size_t bytes);

/* Within the device. */
int device_fill(struct device *device, enum device_queue queue, void *to, int byte, size_t bytes);
int device_copy(struct device *device, enum device_queue queue, void *to, const void *from,
                size_t bytes);

/* Runs a kernel in so many blocks; does nothing if there are none. Arguments are copied. */
int device_launch(struct device *device, enum device_queue queue, const struct kernel *kernel,
                  uint64_t blocks, const void *arguments);

/* What comes into `after` from now on waits for all that is in `before` now. */
int device_order(struct device *device, enum device_queue before, enum device_queue after);

/* Returns when the queue is empty. */
int device_wait(struct device *device, enum device_queue queue);

/* For tests. Memory never exceeds `bytes` from now on (also DML_DEVICE_BYTES in the environment).
 * All calls fail after `calls` more of them that can fail. The emulated device runs blocks and the
 * threads of a phase in an order that `seed` decides, not 0 (also DML_SHUFFLE); an even one lets
 * the copy queue run as far ahead of the other as it may, in place of as far behind. With
 * DML_DEVICE_RACES in the environment it runs them in two threads of the processor, for a thread
 * sanitizer: blocks beside each other, or threads of a phase. */
void device_limit(struct device *device, uint64_t bytes);
void device_fail_after(struct device *device, uint64_t calls);
void device_shuffle(struct device *device, uint64_t seed);

#endif

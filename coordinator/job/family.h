/* What a job says of its model's family (objective/family.h): which keys it has, what they mean for
 * a shape, and what messages call it. The rows are in coordinator/job/family.c. */
#ifndef DML_COORDINATOR_JOB_FAMILY_H
#define DML_COORDINATOR_JOB_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/job/job.h"
#include "objective/family.h"

struct job_family {
    const struct family *family;

    /* For messages about the loss: the key that says it, what that is, an example of it, and what
     * it is called in short. */
    const char *loss_key, *loss, *loss_example, *loss_short;

    /* Gives a job that was read its objective, and the defaults of the family to the keys that it
     * does not set. */
    int (*complete)(struct job *job);

    /* What does not go together: ERROR_CONFIG. */
    int (*check)(const struct job *job);

    /* Its part of job_shape(); NULL: none. */
    void (*set_shape)(const struct job *job, struct objective_shape *shape);

    /* Its scaling, once the data is known. ERROR_CONFIG if the one that the job asks for does not
     * suit it. NULL: those of the columns. */
    int (*choose_scaling)(const struct job *job, struct objective_shape *shape);

    /* In words, before the data is read; with the shape; and that it is too large: free() them.
     * NULL: there is nothing to say. */
    char *(*words)(const struct job *job);
    char *(*words_of_shape)(const struct objective_shape *shape);
    char *(*too_large)(const struct job *job, const struct objective_shape *shape);

    /* Why no step lowered a loss, and why none is finite where the run starts: free() them. NULL:
     * for the same reasons as with any family. */
    char *(*no_lower_loss)(const struct job *job, double loss);
    char *(*not_finite)(const struct job *job);
};

const struct job_family *job_family(const struct job *job);

/* What is there of the shape before the data is read. A plug-in has no tensors yet. */
struct objective_shape job_shape(const struct job *job);

/* How the library of a plug-in is asked; the texts are the job's. */
struct plugin_source job_plugin_source(const struct job *job);
void job_release_plugin(struct job *job); /* frees them */

#endif

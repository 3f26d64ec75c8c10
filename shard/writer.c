#include "shard/writer.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"

struct writer {
    const struct disk *disk;
    void (*done)(void *context);
    void *context;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t posted;
    struct checkpoint_job *job; /* to be written or being written; the caller's */
    bool ended;                 /* a job has ended, and writer_take() has not told so yet */
    bool closing;
    int code;
    char reason[1024];
};

/* The next job, or NULL when the writer is to end. A job that was posted before `closing` was set
 * is still written. */
static struct checkpoint_job *wait_for_job(struct writer *writer) {
    pthread_mutex_lock(&writer->mutex);
    while (!writer->job && !writer->closing)
        pthread_cond_wait(&writer->posted, &writer->mutex);
    struct checkpoint_job *job = writer->job;
    pthread_mutex_unlock(&writer->mutex);
    return job;
}

static void *work(void *argument) {
    struct writer *writer = argument;
    for (struct checkpoint_job *job; (job = wait_for_job(writer));) {
        failpoint(FAILPOINT_checkpoint_begin);
        int code = checkpoint_write(job, writer->disk);
        if (!code)
            failpoint(FAILPOINT_checkpoint_done);
        /* The error text belongs to this thread, so it is handed over as a copy. */
        pthread_mutex_lock(&writer->mutex);
        writer->code = code;
        snprintf(writer->reason, sizeof writer->reason, "%s", error_text());
        writer->job = NULL;
        writer->ended = true;
        pthread_mutex_unlock(&writer->mutex);
        error_clear();
        /* Last: the owner that this wakes calls writer_take() and must find `ended`. The job may be
         * freed from the unlocking on. */
        writer->done(writer->context);
    }
    return NULL;
}

/* The fields of the job are set before the mutex is taken, so the thread that finds the job under
 * the mutex sees them too. */
void writer_start(struct writer *writer, struct checkpoint_job *job) {
    job->on_taken = writer->done;
    job->on_taken_context = writer->context;
    pthread_mutex_lock(&writer->mutex);
    assert(!writer->job && !writer->ended && !writer->closing); /* one job at a time */
    writer->job = job;
    pthread_cond_signal(&writer->posted);
    pthread_mutex_unlock(&writer->mutex);
}

bool writer_take(struct writer *writer, int *code) {
    pthread_mutex_lock(&writer->mutex);
    bool ended = writer->ended;
    writer->ended = false;
    *code = ended ? writer->code : 0;
    if (*code)
        error_set(*code, "%s", writer->reason);
    pthread_mutex_unlock(&writer->mutex);
    return ended;
}

struct writer *writer_new(const struct disk *disk, void (*done)(void *context), void *context) {
    struct writer *writer = memory_new(1, sizeof *writer);
    *writer = (struct writer){.disk = disk, .done = done, .context = context};
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->posted, NULL);
    int code = pthread_create(&writer->thread, NULL, work, writer);
    if (code) {
        fprintf(stderr, "dml-shard: a thread could not be started: %s\n", strerror(code));
        exit(-ERROR_UNAVAILABLE);
    }
    return writer;
}

void writer_free(struct writer *writer) {
    if (!writer)
        return;
    pthread_mutex_lock(&writer->mutex);
    writer->closing = true;
    pthread_cond_signal(&writer->posted);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    pthread_mutex_destroy(&writer->mutex);
    pthread_cond_destroy(&writer->posted);
    free(writer);
}

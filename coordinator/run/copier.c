#include "coordinator/run/copier.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/machine/copies.h"

struct copier {
    struct copies *copies;
    struct outbox *out;
    struct copier_callbacks callbacks;
    struct event *ended;
    bool runs; /* the thread is there */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t posted;
    struct copies_action action; /* of the thread while `busy`; else of the loop */
    bool busy, is_done, closing;
    int notice; /* an eventfd, by which the thread wakes the loop */
};

/* ---- the thread ---- */

static void *work(void *argument) {
    struct copier *copier = argument;
    pthread_mutex_lock(&copier->mutex);
    while (true) {
        while (!copier->busy && !copier->closing)
            pthread_cond_wait(&copier->posted, &copier->mutex);
        if (!copier->busy)
            break;
        pthread_mutex_unlock(&copier->mutex);
        copies_carry_out(&files_disk, &copier->action);
        pthread_mutex_lock(&copier->mutex);
        copier->busy = false;
        copier->is_done = true;
        (void)!write(copier->notice, &(uint64_t){1}, sizeof(uint64_t));
    }
    pthread_mutex_unlock(&copier->mutex);
    return NULL;
}

static void start_thread(struct copier *copier) {
    int code = pthread_create(&copier->thread, NULL, work, copier);
    if (code) {
        fprintf(stderr, "dml-coordinator: a thread could not be started: %s\n", strerror(code));
        exit(-ERROR_UNAVAILABLE);
    }
    copier->runs = true;
}

/* ---- the loop ---- */

/* Hands the thread the next action, if it has none. */
static void post(struct copier *copier) {
    pthread_mutex_lock(&copier->mutex);
    if (!copier->busy && !copier->is_done && copies_next_action(copier->copies, &copier->action)) {
        if (!copier->runs)
            start_thread(copier);
        copier->busy = true;
        pthread_cond_signal(&copier->posted);
    }
    pthread_mutex_unlock(&copier->mutex);
}

static void on_ended(evutil_socket_t descriptor, short events, void *context) {
    struct copier *copier = context;
    struct copies_action action = {0};
    (void)descriptor, (void)events;
    (void)!read(copier->notice, &(uint64_t){0}, sizeof(uint64_t));
    pthread_mutex_lock(&copier->mutex);
    bool is_done = copier->is_done;
    if (is_done) {
        action = copier->action;
        copier->action = (struct copies_action){0};
    }
    copier->is_done = false;
    pthread_mutex_unlock(&copier->mutex);
    if (!is_done)
        return;
    const uint32_t shard = action.shard;
    const struct message *passed = copies_done(copier->copies, &action, copier->out);
    post(copier);
    copier->callbacks.passed(copier->callbacks.context, shard, passed);
}

struct copier *copier_new(struct event_base *base, const char *folder, uint64_t term,
                          uint32_t shards, struct outbox *out,
                          const struct copier_callbacks *callbacks) {
    struct copier *copier = memory_new(1, sizeof *copier);
    *copier = (struct copier){.copies = copies_new(folder, term, shards),
                              .out = out,
                              .callbacks = *callbacks,
                              .notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    pthread_mutex_init(&copier->mutex, NULL);
    pthread_cond_init(&copier->posted, NULL);
    if (copier->notice < 0) {
        fprintf(stderr, "dml-coordinator: there is no descriptor left\n");
        exit(-ERROR_UNAVAILABLE);
    }
    copier->ended = event_new(base, copier->notice, EV_READ | EV_PERSIST, on_ended, copier);
    event_add(copier->ended, NULL);
    return copier;
}

void copier_free(struct copier *copier) {
    if (!copier)
        return;
    pthread_mutex_lock(&copier->mutex);
    copier->closing = true;
    pthread_cond_signal(&copier->posted);
    pthread_mutex_unlock(&copier->mutex);
    if (copier->runs)
        pthread_join(copier->thread, NULL);
    event_free(copier->ended);
    close(copier->notice);
    copies_action_release(&copier->action);
    copies_free(copier->copies);
    pthread_mutex_destroy(&copier->mutex);
    pthread_cond_destroy(&copier->posted);
    free(copier);
}

const struct message *copier_take(struct copier *copier, uint32_t worker,
                                  const struct message *message) {
    const struct message *passed = copies_take(copier->copies, worker, message, copier->out);
    post(copier);
    return passed;
}

void copier_lost(struct copier *copier, uint32_t worker) {
    copies_lost(copier->copies, worker);
}

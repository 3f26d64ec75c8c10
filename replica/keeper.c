#include "replica/keeper.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* Bytes of a place, in memory until all of them are here. */
struct aside {
    uint32_t place;
    uint64_t length, room;
    uint8_t *data; /* owned */
};

struct asides {
    struct aside *items; /* owned */
    size_t count, capacity;
};

struct keeper {
    void (*looked)(void *context);
    void *context;
    struct partial_set *partial; /* NULL unless the head is lacking, */
    struct set_range head;       /* of which this part is asked for */
    struct set *set;             /* NULL before that is complete */
    struct asides asides;

    pthread_t thread;
    bool running;
    pthread_mutex_t mutex; /* of all that follows */
    pthread_cond_t posted;
    bool closing;
    struct asides looks; /* to be done, in their order; without data: look at the copy alone */
    struct keeper_answer *answers;
    size_t answer_count, answer_capacity;
};

struct keeper *keeper_new(void (*looked)(void *context), void *context) {
    struct keeper *keeper = memory_new(1, sizeof *keeper);
    keeper->looked = looked;
    keeper->context = context;
    pthread_mutex_init(&keeper->mutex, NULL);
    pthread_cond_init(&keeper->posted, NULL);
    return keeper;
}

static void forget_asides(struct asides *asides) {
    for (size_t i = 0; i < asides->count; i++)
        free(asides->items[i].data);
    free(asides->items);
    *asides = (struct asides){0};
}

void keeper_free(struct keeper *keeper) {
    if (!keeper)
        return;
    keeper_stop(keeper);
    partial_free(keeper->partial);
    pthread_mutex_destroy(&keeper->mutex);
    pthread_cond_destroy(&keeper->posted);
    free(keeper);
}

/* ---- the thread ---- */

static struct keeper_answer look_now(struct set *set, const struct aside *look) {
    struct keeper_answer answer = {.place = look->place};
    answer.error = look->data ? set_put(set, look->place, look->data) : 0;
    if (answer.error)
        snprintf(answer.reason, sizeof answer.reason, "%s", error_text());
    error_clear();
    answer.here = !answer.error && set_has(set, look->place);
    return answer;
}

static void *work(void *context) {
    struct keeper *keeper = context;
    pthread_mutex_lock(&keeper->mutex);
    while (!keeper->closing) {
        if (!keeper->looks.count) {
            pthread_cond_wait(&keeper->posted, &keeper->mutex);
            continue;
        }
        struct aside look = keeper->looks.items[0];
        memmove(keeper->looks.items, keeper->looks.items + 1,
                --keeper->looks.count * sizeof *keeper->looks.items);
        pthread_mutex_unlock(&keeper->mutex);
        struct keeper_answer answer = look_now(keeper->set, &look);
        free(look.data);
        pthread_mutex_lock(&keeper->mutex);
        MEMORY_ROOM(keeper->answers, keeper->answer_count, keeper->answer_capacity);
        keeper->answers[keeper->answer_count++] = answer;
        keeper->looked(keeper->context);
    }
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

void keeper_stop(struct keeper *keeper) {
    pthread_mutex_lock(&keeper->mutex);
    keeper->closing = true;
    pthread_cond_signal(&keeper->posted);
    pthread_mutex_unlock(&keeper->mutex);
    if (keeper->running)
        pthread_join(keeper->thread, NULL);
    keeper->running = keeper->closing = false;
    keeper->set = NULL;
    forget_asides(&keeper->asides);
    forget_asides(&keeper->looks);
    free(keeper->answers);
    keeper->answers = NULL;
    keeper->answer_count = keeper->answer_capacity = 0;
}

/* ---- the head ---- */

/* It becomes the name of a file. */
static bool is_fingerprint(const char *text) {
    while (isalnum((unsigned char)*text))
        text++;
    return !*text;
}

int keeper_begin(struct keeper *keeper, const char *folder, const char *fingerprint) {
    keeper_stop(keeper);
    partial_free(keeper->partial);
    keeper->partial = NULL;
    if (!is_fingerprint(fingerprint))
        return error_set(ERROR_DATA, "%s: not the fingerprint of a set", fingerprint);
    keeper->partial = partial_new(folder, fingerprint);
    return 0;
}

struct set_range keeper_head_lacks(struct keeper *keeper) {
    assert(keeper->partial);
    keeper->head.bytes = partial_lacks(keeper->partial, &keeper->head.offset);
    return keeper->head;
}

int keeper_open(struct keeper *keeper, struct set **set) {
    assert(keeper->partial && !keeper->running);
    int code = partial_open(keeper->partial, set);
    partial_free(keeper->partial);
    keeper->partial = NULL;
    if (code)
        return code;
    keeper->set = *set;
    keeper->running = !pthread_create(&keeper->thread, NULL, work, keeper);
    return keeper->running ? 0 : error_set(ERROR_UNAVAILABLE, "cannot start a thread");
}

/* ---- places ---- */

static struct aside *find_aside(struct keeper *keeper, uint32_t place) {
    for (size_t i = 0; i < keeper->asides.count; i++)
        if (keeper->asides.items[i].place == place)
            return &keeper->asides.items[i];
    return NULL;
}

static uint64_t bytes_of(const struct keeper *keeper, uint32_t place) {
    uint64_t offset;
    return place == PLACE_HEAD ? keeper->head.bytes : set_place(keeper->set, place, &offset);
}

void keeper_put_aside(struct keeper *keeper, const struct action *action) {
    struct aside *aside = find_aside(keeper, action->place);
    if (!aside) {
        MEMORY_ROOM(keeper->asides.items, keeper->asides.count, keeper->asides.capacity);
        aside = &keeper->asides.items[keeper->asides.count++];
        const uint64_t room = bytes_of(keeper, action->place);
        *aside = (struct aside){action->place, 0, room, memory_new(room, 1)};
    }
    if (!action->at)
        aside->length = 0;
    assert(action->at == aside->length && action->byte_count <= aside->room - aside->length);
    memcpy(aside->data + aside->length, action->bytes, action->byte_count);
    aside->length += action->byte_count;
}

/* Takes it out of those that are put aside: without data if it is not whole. */
static struct aside take_aside(struct keeper *keeper, uint32_t place) {
    struct aside *found = find_aside(keeper, place), taken = {.place = place};
    if (!found || found->length < found->room)
        return taken;
    taken = *found;
    *found = keeper->asides.items[--keeper->asides.count];
    return taken;
}

int keeper_look_at_head(struct keeper *keeper) {
    struct aside aside = take_aside(keeper, PLACE_HEAD);
    int code = aside.data ? partial_put(keeper->partial, aside.data) : 0;
    free(aside.data);
    return code;
}

void keeper_look(struct keeper *keeper, uint32_t place) {
    const struct aside look = take_aside(keeper, place);
    assert(keeper->running);
    pthread_mutex_lock(&keeper->mutex);
    MEMORY_ROOM(keeper->looks.items, keeper->looks.count, keeper->looks.capacity);
    keeper->looks.items[keeper->looks.count++] = look;
    pthread_cond_signal(&keeper->posted);
    pthread_mutex_unlock(&keeper->mutex);
}

bool keeper_take(struct keeper *keeper, struct keeper_answer *answer) {
    pthread_mutex_lock(&keeper->mutex);
    const bool any = keeper->answer_count > 0;
    if (any) {
        *answer = keeper->answers[0];
        memmove(keeper->answers, keeper->answers + 1,
                --keeper->answer_count * sizeof *keeper->answers);
    }
    pthread_mutex_unlock(&keeper->mutex);
    return any;
}

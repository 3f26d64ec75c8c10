#include "coordinator/status/history.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "coordinator/status/run_folder.h"

static const char *const decisions[] = {[DECISION_PUBLISHED] = "published",
                                        [DECISION_REFUSED] = "refused",
                                        [DECISION_ROLLED_BACK] = "rolled back",
                                        [DECISION_KEPT] = "kept"};

const char *decision_text(enum decision decision) {
    assert((unsigned)decision < sizeof decisions / sizeof decisions[0]);
    return decisions[decision];
}

bool decision_makes_live(enum decision decision) {
    return decision == DECISION_PUBLISHED || decision == DECISION_ROLLED_BACK;
}

/* A decision of a kind that is not known counts as a refusal: it made no model live. */
static int history_take(void *context, const struct store_publication *publication) {
    struct history *history = context;
    enum decision decision = DECISION_REFUSED;
    for (unsigned i = 0; i < sizeof decisions / sizeof decisions[0]; i++)
        if (strcmp(decisions[i], publication->kind) == 0)
            decision = i;
    assert(!history->count ||
           history->items[history->count - 1].publication < publication->publication);
    history->items = memory_resize(history->items, history->count + 1, sizeof *history->items);
    history->items[history->count++] =
        (struct history_item){.publication = publication->publication,
                              .wall_ms = publication->wall_ms,
                              .decision = decision,
                              .run = publication->run,
                              .previous_run = publication->previous_run,
                              .settled = publication->settled_ms != 0,
                              .text = memory_copy_string(publication->text)};
    return 0;
}

int history_read(struct store *store, struct history *history) {
    *history = (struct history){0};
    return store_publications(store, history_take, history);
}

void history_release(struct history *history) {
    for (size_t i = 0; i < history->count; i++)
        free(history->items[i].text);
    free(history->items);
    *history = (struct history){0};
}

const struct history_item *history_pending(const struct history *history) {
    if (!history->count)
        return NULL;
    const struct history_item *last = &history->items[history->count - 1];
    return last->settled ? NULL : last;
}

int64_t history_live(const struct history *history) {
    for (size_t i = history->count; i; i--)
        if (decision_makes_live(history->items[i - 1].decision))
            return history->items[i - 1].run;
    return 0;
}

struct history_refusals history_refusals(const struct history *history) {
    struct history_refusals refusals = {0};
    for (size_t i = history->count; i; i--) {
        const struct history_item *item = &history->items[i - 1];
        if (decision_makes_live(item->decision))
            break;
        if (item->decision != DECISION_REFUSED)
            continue;
        refusals.count++;
        refusals.since_ms = item->wall_ms;
        refusals.last = refusals.last ? refusals.last : item;
    }
    assert(!refusals.count == !refusals.last);
    return refusals;
}

const struct history_item *history_of(const struct history *history, int64_t run) {
    for (size_t i = history->count; i; i--)
        if (history->items[i - 1].run == run)
            return &history->items[i - 1];
    return NULL;
}

int64_t history_current(const char *state) {
    char target[32] = "";
    char *link = memory_format("%s/models/current", state);
    ssize_t length = readlink(link, target, sizeof target - 1);
    bool leads = length > 0 && access(link, F_OK) == 0;
    free(link);
    return leads ? run_of_folder(target) : 0;
}

/* The index of `run` in the stack of versions; `depth` if it is not there. */
static size_t find_in_stack(const int64_t *stack, size_t depth, int64_t run) {
    for (size_t i = depth; i; i--)
        if (stack[i - 1] == run)
            return i - 1;
    return depth;
}

int64_t history_before(const struct history *history, int64_t live) {
    int64_t *stack = memory_new(history->count + 1, sizeof *stack);
    size_t depth = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct history_item *item = &history->items[i];
        if (!decision_makes_live(item->decision))
            continue;
        if (!depth && item->previous_run) /* that model was live before this history begins */
            stack[depth++] = item->previous_run;
        if (item->decision == DECISION_ROLLED_BACK)
            depth = find_in_stack(stack, depth, item->run);
        if (!depth || stack[depth - 1] != item->run)
            stack[depth++] = item->run;
    }
    assert(depth <= history->count + 1);
    size_t place = find_in_stack(stack, depth, live);
    int64_t before = place ? stack[place - 1] : 0;
    free(stack);
    return before;
}

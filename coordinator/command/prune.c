/* `prune`: removes from state folders what nothing needs any more. */
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/command/place.h"
#include "coordinator/publish/prune.h"
#include "coordinator/run/lock.h"
#include "coordinator/status/report.h"

static json_t *list_json(const char *state, const struct prune_list *list) {
    json_t *items = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(items, json_pack("{s:s, s:o, s:I}", "kind", list->items[i].kind,
                                               "path", text_to_json(list->items[i].path), "bytes",
                                               (json_int_t)list->items[i].bytes));
    return json_pack("{s:o, s:o, s:I, s:I}", "folder", text_to_json(state), "removed", items,
                     "bytes", (json_int_t)list->bytes, "bytes_kept", (json_int_t)list->bytes_kept);
}

#define MB 1e6

static void print_list(const char *state, const struct prune_list *list, bool dry_run) {
    for (size_t i = 0; i < list->count; i++) {
        printf("%-10s %10.1f MB  ", list->items[i].kind, (double)list->items[i].bytes / MB);
        escape_put(list->items[i].path, stdout);
        putchar('\n');
    }
    escape_put(state, stdout);
    printf(": %.1f MB %s, %.1f MB kept\n", (double)list->bytes / MB,
           dry_run ? "would be removed" : "removed", (double)list->bytes_kept / MB);
}

static int prune_opened(const struct options *options, struct store *store, const char *state,
                        json_t *all) {
    struct prune_list list;
    int code = prune_find(store, state, &list);
    if (!code && !options->dry_run)
        code = prune_remove(store, &list);
    if (!code && options->json)
        json_array_append_new(all, list_json(state, &list));
    else if (!code)
        print_list(state, &list, options->dry_run);
    prune_release(&list);
    return code;
}

static int prune_folder(const struct options *options, const char *state, json_t *all) {
    struct store *store = NULL;
    int lock;
    int code = state_lock(state, &lock);
    if (code)
        return code;
    code = store_open_existing(state, &store);
    if (!code)
        code = prune_opened(options, store, state, all);
    int closed = store ? store_close(store) : 0;
    state_unlock(lock);
    return code ? code : closed;
}

int command_prune(const struct options *options) {
    char **states;
    int code = places_of(options, &states);
    if (code)
        return code;
    json_t *all = json_array();
    for (char **state = states; *state; state++) {
        int failed = prune_folder(options, *state, all);
        if (failed)
            log_error("%s: %s", *state, error_text());
        error_clear(); /* one folder does not hold up the others */
        code = code ? code : failed;
    }
    if (options->json) {
        json_t *answer = json_pack("{s:O, s:b}", "folders", all, "dry_run", options->dry_run);
        report_print_json(answer);
        json_decref(answer);
    }
    json_decref(all);
    places_free(states);
    return code;
}

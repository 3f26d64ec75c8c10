/* `jobs`: the runs so far; `metrics`: the same for Prometheus; and `prune`: removes what nothing
 * needs any more. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/command.h"
#include "coordinator/command/diff.h"
#include "coordinator/command/print.h"
#include "coordinator/publish/prune.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/run/session.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/past_metrics.h"
#include "model/score.h"

/* The runs in another order. */
struct sorted {
    json_t *run;
    double key; /* lower is better; infinity: it has no such figure */
    size_t place;
    bool fold;  /* after all others: no other run has figures of the rows of its fold */
    bool apart; /* after those that can be compared: its holdout has rows of its own */
};

static int compare(const void *a, const void *b) {
    const struct sorted *x = a, *y = b;
    if (x->fold != y->fold)
        return x->fold - y->fold;
    if (x->apart != y->apart)
        return x->apart - y->apart;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->place > y->place) - (x->place < y->place);
}

/* The holdout rows that a run was evaluated on, or NULL: it has no holdout, or an older program
 * left it. */
static const char *rows_of(const json_t *run) {
    return json_string_value(json_object_get(json_object_get(run, "holdout"), "rows"));
}

static bool is_fold(const json_t *run) {
    return member_count(json_object_get(run, "sweep"), "fold") > 0;
}

/* The last run with a holdout that is not of a fold, of runs in the order of their numbers. */
static const json_t *last_evaluated(const json_t *runs) {
    const json_t *last = NULL, *run;
    size_t i;
    json_array_foreach(runs, i, run) if (json_is_object(json_object_get(run, "holdout")) &&
                                         !is_fold(run)) last = run;
    return last;
}

/* Marks the runs whose holdout has other rows than that of `last`: their figures cannot be
 * compared. */
static void mark_incomparable(const json_t *runs, const json_t *last) {
    const char *of_last = last ? rows_of(last) : NULL;
    size_t i;
    json_t *run;
    json_array_foreach(runs, i, run) {
        const char *rows = rows_of(run);
        bool same = rows && of_last ? strcmp(rows, of_last) == 0 : rows == of_last;
        if (last && json_is_object(json_object_get(run, "holdout")) && !same)
            json_object_set_new(run, "other_holdout", json_true());
    }
}

/* Names them below the table, in whatever order it has. */
static void print_incomparable(const json_t *runs, const json_t *last) {
    char *list = NULL;
    size_t i;
    const json_t *run;
    json_array_foreach(runs, i, run) {
        char *before = list;
        if (!json_object_get(run, "other_holdout"))
            continue;
        list = memory_format("%s%s%lld", before ? before : "", before ? ", " : "",
                             member_count(run, "run"));
        free(before);
    }
    if (list)
        printf("other holdout than run %lld, so figures are not comparable: %s\n",
               member_count(last, "run"), list);
    free(list);
}

static void sort_runs(json_t *folder, const struct score_figure *figure) {
    json_t *runs = json_object_get(folder, "runs"), *in_order = json_array();
    assert(figure);
    size_t count = json_array_size(runs);
    struct sorted *sorted = memory_new(count, sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        json_t *run = json_array_get(runs, i);
        double value = member_number(json_object_get(run, "holdout"), figure->name);
        if (isnan(value))
            value = member_number(json_object_get(run, "test"), figure->name);
        sorted[i] = (struct sorted){.run = run,
                                    .key = isnan(value)                     ? INFINITY
                                           : figure->better == SCORE_HIGHER ? -value
                                                                            : value,
                                    .place = i,
                                    .fold = is_fold(run),
                                    .apart = json_is_true(json_object_get(run, "other_holdout"))};
    }
    qsort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 0; i < count; i++)
        json_array_append(in_order, sorted[i].run);
    assert(json_array_size(in_order) == count);
    json_object_set_new(folder, "runs", in_order);
    free(sorted);
}

/* ---- sizes ---- */

/* The bytes of a folder in the state folder, or of the part of it that belongs to a run. */
static json_int_t bytes_in(const char *state, const char *folder, const json_t *run) {
    char *path = run ? memory_format("%s/%s/%lld", state, folder, member_count(run, "run"))
                     : path_join(state, folder);
    uint64_t bytes = file_bytes(path);
    free(path);
    return (json_int_t)bytes;
}

/* A run that goes on from the end of another has taken over its checkpoints, which stay in the
 * folder of the run that began anew. `runs` come in the order of their numbers. */
static void take_over_checkpoints(json_t *runs, size_t at) {
    assert(at < json_array_size(runs));
    json_t *bytes = json_object_get(json_array_get(runs, at), "bytes");
    const json_t *continues = json_object_get(json_array_get(runs, at), "continues");
    while (json_is_integer(continues) && at--) {
        json_t *run = json_array_get(runs, at), *before = json_object_get(run, "bytes");
        if (!json_equal(json_object_get(run, "run"), continues))
            continue;
        json_object_set(bytes, "checkpoints", json_object_get(before, "checkpoints"));
        json_object_set_new(before, "checkpoints", json_integer(0));
        return;
    }
}

/* Adds what each run and the whole folder hold. Packs and sets are shared by runs. */
static void add_sizes(const char *state, json_t *folder) {
    size_t i;
    json_t *runs = json_object_get(folder, "runs"), *run;
    json_array_foreach(runs, i, run) {
        json_t *of_run = json_pack("{s:I, s:I}", "model", bytes_in(state, "models", run),
                                   "checkpoints", bytes_in(state, "shards", run));
        json_object_set_new(run, "bytes", of_run);
        take_over_checkpoints(runs, i);
    }
    json_t *bytes =
        json_pack("{s:I, s:I, s:I, s:I}", "all", bytes_in(state, ".", NULL), "models",
                  bytes_in(state, "models", NULL), "checkpoints", bytes_in(state, "shards", NULL),
                  "data", bytes_in(state, "packs", NULL));
    json_object_set_new(folder, "bytes", bytes);
}

static void add_folder(const struct options *options, const char *state,
                       const struct score_figure *figure, json_t *runs, json_t *all) {
    add_sizes(state, runs);
    const json_t *last = last_evaluated(json_object_get(runs, "runs")); /* before they are sorted */
    mark_incomparable(json_object_get(runs, "runs"), last);
    if (figure)
        sort_runs(runs, figure);
    if (!options->json) {
        escape_put(state, stdout);
        putchar('\n');
        report_print_runs(runs, options->folds, terminal_colors(STDOUT_FILENO));
        print_incomparable(json_object_get(runs, "runs"), last);
    }
    json_object_set_new(runs, "folder", text_to_json(state));
    json_array_append(all, runs);
}

int command_jobs(const struct options *options) {
    if (options->diff)
        return command_diff(options);
    char **states;
    const struct score_figure *figure = options->sort ? score_figure_find(options->sort) : NULL;
    if (options->sort && !figure)
        return error_set(ERROR_USAGE, "there is no figure `%s`; dml-figures(7) lists them%s",
                         options->sort, score_figure_suggestion(options->sort));
    int code = places_of(options, &states);
    if (code)
        return code;
    json_t *all = json_array();
    struct asked *asked = ask_folders(states, QUESTION_RUNS);
    for (size_t i = 0; states[i]; i++) {
        if (asked[i].code) /* a folder that cannot be read does not hide the others */
            log_error("%s", asked[i].why);
        else
            add_folder(options, states[i], figure, asked[i].answer, all);
        code = code ? code : asked[i].code;
    }
    if (options->json) {
        json_t *answer = json_pack("{s:O}", "folders", all);
        report_print_json(answer);
        json_decref(answer);
    }
    json_decref(all);
    asked_free(asked, states);
    names_free(states);
    return code;
}

/* ---- `metrics` ---- */

struct metrics_source {
    struct past_folder *folders;
    size_t count;
};

static int put_metrics(void *context, FILE *out) {
    const struct metrics_source *source = context;
    size_t length;
    char *text = past_metrics_text(source->folders, source->count, &length);
    fwrite(text, 1, length, out);
    free(text);
    return 0;
}

/* A folder that cannot be read is told, and is in the metrics: whoever watches them shall see it.
 */
int command_metrics(const struct options *options) {
    char **states;
    int code = places_of(options, &states);
    if (code)
        return code;
    struct metrics_source source = {0};
    struct asked *asked = ask_folders(states, QUESTION_RUNS);
    for (size_t i = 0; states[i]; i++) {
        if (asked[i].code)
            log_error("%s", asked[i].why);
        source.folders = memory_resize(source.folders, i + 1, sizeof *source.folders);
        source.folders[source.count++] =
            (struct past_folder){.path = states[i], .runs = asked[i].answer};
    }
    code = output_file_write(options->output, put_metrics, &source);
    asked_free(asked, states);
    free(source.folders);
    names_free(states);
    return code;
}

/* ---- `prune` ---- */

#define MB 1e6

static int prune_opened(const struct options *options, struct store *store, const char *state,
                        int lock, json_t *all) {
    struct prune_list list;
    int code = prune_find(store, state, &list);
    const bool removes = list.count && !options->dry_run;
    if (!code && removes)
        code = state_lock_works(state, lock);
    if (!code && removes)
        code = prune_remove(store, &list);
    json_t *items = json_array();
    for (size_t i = 0; i < list.count && !code; i++) {
        const struct prune_item *item = &list.items[i];
        json_array_append_new(items, json_pack("{s:s, s:o, s:I}", "kind", item->kind, "path",
                                               text_to_json(item->path), "bytes",
                                               (json_int_t)item->bytes));
        if (options->json)
            continue;
        printf("%-10s %10.1f MB  ", item->kind, (double)item->bytes / MB);
        escape_put(item->path, stdout);
        putchar('\n');
    }
    if (!code && options->json) {
        json_array_append_new(all, json_pack("{s:o, s:O, s:I, s:I}", "folder", text_to_json(state),
                                             "removed", items, "bytes", (json_int_t)list.bytes,
                                             "bytes_kept", (json_int_t)list.bytes_kept));
    } else if (!code) {
        escape_put(state, stdout);
        printf(": %.1f MB %s, %.1f MB kept\n", (double)list.bytes / MB,
               options->dry_run ? "would be removed" : "removed", (double)list.bytes_kept / MB);
    }
    json_decref(items);
    prune_release(&list);
    return code;
}

/* Who only looks need not be one who may write. Until something is to be removed, others wait as
 * for one who reads. */
static int prune_folder(const struct options *options, const char *state, json_t *all) {
    struct record_reader reader = {.state = state, .lock = -1};
    int code = options->dry_run ? record_reader_open(state, &reader)
                                : state_lock_existing(state, STATE_READS, &reader.lock);
    if (!code && !options->dry_run)
        code = store_open_existing(state, session_may_upgrade, &reader.store);
    if (!code && reader.maybe_live)
        log_warning("%s: a coordinator may be working there; files that it is still writing are "
                    "reported as left over",
                    state);
    if (!code)
        code = prune_opened(options, reader.store, state, reader.lock, all);
    int closed = reader.store ? store_close(reader.store) : 0;
    reader.store = NULL;
    record_reader_close(&reader);
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
        if (failed && strstr(error_text(), *state))
            log_error("%s", error_text());
        else if (failed)
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
    names_free(states);
    return code;
}

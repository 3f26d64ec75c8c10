#include "coordinator/command/diff.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/print.h"
#include "coordinator/job/key.h"
#include "coordinator/run/sets.h"
#include "coordinator/status/report.h"
#include "coordinator/status/run_folder.h"
#include "model/compare.h"
#include "model/importance.h"

#define COEFFICIENTS_MOST 10

/* One of the two runs. */
struct side {
    const char *name; /* the operand */
    char *state;      /* folder */
    int64_t number;   /* of the run; 0: it is looked for by `tag`, or is the live or newest run */
    const char *tag;  /* or NULL */
    json_t *run;      /* as in report_runs(), with `folder` */
    json_t *settings, *not_default, *files;
    char *data; /* the fingerprint of all rows */
    json_t *result;
};

static void side_release(struct side *side) {
    free(side->state);
    free(side->data);
    json_decref(side->run);
    json_decref(side->settings);
    json_decref(side->not_default);
    json_decref(side->files);
    json_decref(side->result);
    *side = (struct side){0};
}

/* ---- which run is meant ---- */

/* The state folder that an operand or, without one, the current directory names. */
static int find_folder(const struct options *options, const char *operand, char **state) {
    struct options place = *options;
    place.operands = &operand;
    place.operands_count = operand != NULL;
    return place_of(&place, state);
}

/* Splits STATE/models/RUN, a model as predict names it. Whether it is that. */
static bool split_model_folder(const char *name, struct side *side) {
    char *plain = memory_copy_string(name);
    for (size_t length = strlen(plain); length > 1 && plain[length - 1] == '/'; length--)
        plain[length - 1] = '\0';
    const char *last = strrchr(plain, '/');
    char *models = path_folder(plain), *state = path_folder(models);
    const char *middle = strrchr(models, '/');
    const bool is_models = strcmp(middle ? middle + 1 : models, "models") == 0;
    side->number = last && is_models ? run_of_folder(last + 1) : 0;
    if (side->number)
        side->state = memory_copy_string(state);
    free(state);
    free(models);
    free(plain);
    return side->number != 0;
}

/* `folder` is the operand for the state folder, or NULL. */
static int find_side(const struct options *options, const char *name, const char *folder,
                     struct side *side) {
    struct stat status;
    side->name = name;
    side->number = run_of_folder(name);
    if (side->number)
        return find_folder(options, folder, &side->state);
    if (split_model_folder(name, side))
        return 0;
    if (stat(name, &status) == 0 || name_ends(name, ".conf") || name_ends(name, ".state"))
        return find_folder(options, name, &side->state);
    side->tag = name;
    return find_folder(options, folder, &side->state);
}

/* Of several runs with a tag the newest. */
static json_t *choose_run(const json_t *runs, const struct side *side) {
    json_t *run, *live = NULL, *last = NULL;
    size_t i;
    json_array_foreach(runs, i, run) {
        const char *publication = member_text(run, "publication");
        if (side->number ? member_count(run, "run") == side->number
                         : !side->tag || !strcmp(member_text(run, "tag"), side->tag))
            last = run;
        if (strcmp(publication, "live") == 0)
            live = run;
    }
    return live && !side->number && !side->tag ? live : last;
}

static int refuse_unknown(const struct side *side, size_t count) {
    char *word = shell_word(side->state);
    int code =
        !count ? error_set(ERROR_UNAVAILABLE, "%s: nothing was run there yet", side->state)
        : side->number
            ? error_set(ERROR_UNAVAILABLE, "%s: there is no run %lld; `jobs %s` lists the runs",
                        side->state, (long long)side->number, word)
            : error_set(ERROR_UNAVAILABLE,
                        "%s: there is no run with the tag %s, nor a folder or job file of that "
                        "name; `jobs %s` lists the runs",
                        side->state, side->tag, word);
    free(word);
    return code;
}

/* ---- what is recorded of it ---- */

static int diff_take_source(void *context, const struct store_source *source) {
    json_array_append_new(context,
                          json_pack("{s:o, s:I, s:I, s:s}", "path", text_to_json(source->path),
                                    "rows", (json_int_t)source->rows, "bytes",
                                    (json_int_t)source->bytes, "fingerprint", source->fingerprint));
    return 0;
}

static int read_recorded(struct store *store, const json_t *runs, struct side *side) {
    json_t *chosen = choose_run(runs, side);
    if (!chosen)
        return refuse_unknown(side, json_array_size(runs));
    side->run = json_incref(chosen);
    side->number = member_count(chosen, "run");
    json_object_set_new(chosen, "folder", text_to_json(side->state));
    struct store_run record;
    bool found;
    int code = store_run_find(store, side->number, &record, &found);
    if (!code && !found)
        code = error_set(ERROR_AGAIN, "%s: run %lld has only just begun; ask again", side->state,
                         (long long)side->number);
    if (code)
        return code;
    side->settings = json_loads(record.settings, 0, NULL);
    side->not_default = key_names_not_default(side->settings);
    side->result = record.result ? json_loads(record.result, 0, NULL) : NULL;
    side->data = memory_copy_string(record.data);
    side->files = json_array();
    store_run_release(&record);
    return store_sources(store, side->number, diff_take_source, side->files);
}

/* A coordinator that works in the folder is asked for its runs, and does not tell their settings
 * and files: these are read from a copy of its database. */
static int read_side(struct side *side) {
    struct record_reader reader;
    json_t *answer = NULL;
    int code = record_reader_open(side->state, &reader);
    const bool busy = code == ERROR_AGAIN && !reader.copy;
    if (busy) {
        error_clear();
        code = ask_live(side->state, QUESTION_RUNS, &answer);
        if (!code)
            code = store_read(side->state, &reader.store);
    } else if (!code) {
        code = report_runs(reader.store, &answer);
    }
    if (!code && !busy)
        record_reader_mark(&reader, answer);
    if (!code)
        code = read_recorded(reader.store, json_object_get(answer, "runs"), side);
    json_decref(answer);
    record_reader_close(&reader);
    return code;
}

/* ---- how they differ ---- */

static json_t *pair(const json_t *a, const json_t *b, const char *member) {
    json_t *x = json_object_get(a, member), *y = json_object_get(b, member);
    return json_pack("[o, o]", x ? json_incref(x) : json_null(), y ? json_incref(y) : json_null());
}

static bool has_name(const json_t *names, const char *name) {
    size_t i;
    const json_t *one;
    json_array_foreach(names, i, one) if (!strcmp(json_string_value(one), name)) return true;
    return false;
}

/* Where results are kept changes no result. A key that an older program did not know, at its
 * default in the other run, says nothing. */
static void add_setting(const struct side sides[2], const char *key, json_t *set, json_t *others) {
    const json_t *a = json_object_get(sides[0].settings, key);
    const json_t *b = json_object_get(sides[1].settings, key);
    const bool set_a = has_name(sides[0].not_default, key);
    const bool set_b = has_name(sides[1].not_default, key);
    if (!strcmp(key, "name") || !strcmp(key, "state") || (a && b && json_equal(a, b)) ||
        ((!a || !b) && !set_a && !set_b))
        return;
    json_array_append_new(set_a || set_b ? set : others,
                          json_pack("{s:s, s:o, s:[b, b]}", "key", key, "values",
                                    pair(sides[0].settings, sides[1].settings, key), "set", set_a,
                                    set_b));
}

static json_t *settings_json(const struct side sides[2]) {
    json_t *set = json_array(), *others = json_array();
    const char *key;
    json_t *value;
    json_object_foreach(sides[0].settings, key, value) add_setting(sides, key, set, others);
    json_object_foreach(sides[1].settings, key, value) if (!json_object_get(sides[0].settings, key))
        add_setting(sides, key, set, others);
    json_array_extend(set, others);
    json_decref(others);
    return set;
}

static const json_t *find_file(const json_t *files, const char *path) {
    size_t i;
    const json_t *file;
    json_array_foreach(files, i, file) if (!strcmp(member_text(file, "path"), path)) return file;
    return NULL;
}

static json_t *file_json(const json_t *file) {
    json_t *copy = file ? json_copy((json_t *)(uintptr_t)file) : json_null();
    if (file)
        json_object_del(copy, "path");
    return copy;
}

static long long rows_of(const json_t *files) {
    long long rows = 0;
    size_t i;
    const json_t *file;
    json_array_foreach(files, i, file) rows += member_count(file, "rows");
    return rows;
}

static json_t *data_json(const struct side sides[2]) {
    const json_t *a = sides[0].files, *b = sides[1].files, *file;
    json_t *files = json_array();
    size_t i;
    json_array_foreach(a, i, file) {
        const char *path = member_text(file, "path");
        const json_t *other = find_file(b, path);
        if (!json_equal(file, other))
            json_array_append_new(files, json_pack("{s:s, s:o, s:o}", "path", path, "a",
                                                   file_json(file), "b", file_json(other)));
    }
    json_array_foreach(b, i, file) {
        const char *path = member_text(file, "path");
        if (!find_file(a, path))
            json_array_append_new(
                files, json_pack("{s:s, s:n, s:o}", "path", path, "a", "b", file_json(file)));
    }
    return json_pack("{s:b, s:[I, I], s:[I, I], s:o}", "same",
                     !strcmp(sides[0].data, sides[1].data), "rows", (json_int_t)rows_of(a),
                     (json_int_t)rows_of(b), "count", (json_int_t)json_array_size(a),
                     (json_int_t)json_array_size(b), "files", files);
}

/* The numbers of two objects, each [a, b]; null if neither has any. */
static json_t *numbers_json(const json_t *a, const json_t *b) {
    json_t *all = json_object();
    const json_t *const of[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)of[i], name,
                            value) if (json_is_number(value) && !json_object_get(all, name))
            json_object_set_new(all, name, pair(a, b, name));
    }
    if (json_object_size(all))
        return all;
    json_decref(all);
    return json_null();
}

/* What a training came to: from the list of runs, as a run that has not ended has no result. */
static json_t *training_json(const struct side sides[2]) {
    static const char *const listed[] = {"loss", "gradient_max", "steps",   "evaluations",
                                         "l1",   "l2",           "nonzero", "seconds"};
    static const char *const recorded[] = {"examples", "features", "parameters"};
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        json_object_set_new(all, listed[i], pair(sides[0].run, sides[1].run, listed[i]));
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
        json_object_set_new(all, recorded[i], pair(sides[0].result, sides[1].result, recorded[i]));
    return all;
}

/* Null if one has no figures on a holdout. */
static json_t *same_holdout_json(const struct side sides[2]) {
    const json_t *a = json_object_get(sides[0].run, "holdout");
    const json_t *b = json_object_get(sides[1].run, "holdout");
    const json_t *rows = json_object_get(a, "rows");
    if (!json_is_object(a) || !json_is_object(b))
        return json_null();
    return json_boolean(rows && json_equal(rows, json_object_get(b, "rows")));
}

/* ---- the weights ---- */

/* The deviations of features over the training rows of one of the models, if these rows are there;
 * else `spread` stays empty. */
static void find_spread(const struct model *model, struct importance *spread) {
    struct set *set = sets_find_of_model(model);
    if (set && importance_find(set, model, spread))
        importance_release(spread);
    set_close(set);
    error_clear();
}

static int open_model(const struct side *side, struct model **model) {
    char *folder = run_model_folder(side->state, side->number);
    int code = model_open(folder, model);
    free(folder);
    return code;
}

static json_t *coefficients_json(const struct side sides[2]) {
    struct model *models[2] = {NULL, NULL};
    struct importance spread = {0};
    json_t *json = NULL;
    for (int i = 0; i < 2 && !json; i++) {
        if (!json_is_string(json_object_get(sides[i].run, "model")))
            json = json_pack("{s:o}", "why",
                             json_sprintf("run %lld has no model", (long long)sides[i].number));
        else if (open_model(&sides[i], &models[i]))
            json = json_pack("{s:o}", "why", text_to_json(error_text()));
    }
    const char *obstacle = json ? NULL : compare_obstacle(models[0], models[1]);
    if (obstacle)
        json = json_pack("{s:s}", "why", obstacle);
    for (int i = 0; i < 2 && !json && !spread.deviation; i++)
        find_spread(models[i], &spread);
    if (!json)
        json = compare_weights(models[0], models[1], spread.deviation, COEFFICIENTS_MOST);
    error_clear();
    importance_release(&spread);
    model_close(models[0]);
    model_close(models[1]);
    return json;
}

/* ---- the command ---- */

static json_t *diff_json(const struct side sides[2]) {
    const json_t *a = sides[0].run, *b = sides[1].run;
    assert(a && b);
    return json_pack(
        "{s:[O, O], s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "runs", a, b, "settings",
        settings_json(sides), "data", data_json(sides), "training", training_json(sides), "holdout",
        numbers_json(json_object_get(a, "holdout"), json_object_get(b, "holdout")), "test",
        numbers_json(json_object_get(a, "test"), json_object_get(b, "test")), "same_holdout",
        same_holdout_json(sides), "coefficients", coefficients_json(sides));
}

int command_diff(const struct options *options) {
    struct side sides[2] = {0};
    const int count = options->operands_count;
    int code = 0;
    if (count < 2 || count > 3 || options->sort || options->folds)
        return error_set(ERROR_USAGE,
                         "`jobs --diff` takes two runs and, for runs named by number or tag, the "
                         "state folder or job file, as in `jobs --diff 1 2 adult.state`; it takes "
                         "no --sort and no --folds");
    for (int i = 0; i < 2 && !code; i++)
        code = find_side(options, options->operands[i], count > 2 ? options->operands[2] : NULL,
                         &sides[i]);
    for (int i = 0; i < 2 && !code; i++)
        code = read_side(&sides[i]);
    if (!code) {
        json_t *diff = diff_json(sides);
        (options->json ? report_print_json : diff_print)(diff);
        json_decref(diff);
    }
    side_release(&sides[0]);
    side_release(&sides[1]);
    return code;
}

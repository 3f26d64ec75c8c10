#include "coordinator/publish/derive.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/job.h"
#include "coordinator/job/key.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/result.h"
#include "coordinator/status/run_folder.h"
#include "model/ranking.h"
#include "objective/objective.h"

/* ---- what is there already ---- */

static bool has_model(const char *state, int64_t run) {
    char *file = memory_format("%s/models/%lld/model.json", state, (long long)run);
    const bool there = access(file, R_OK) == 0;
    free(file);
    return there;
}

static int take_derived(void *context, const struct store_run *run) {
    struct derivation *derivation = context;
    if (run->start_run != derivation->from || strcmp(run->command, "publish") != 0 ||
        !has_model(derivation->state, run->run))
        return 0;
    json_t *settings = json_loads(run->settings, 0, NULL);
    if (json_equal(settings, derivation->stored)) {
        derivation->run = run->run;
        json_decref(derivation->result);
        derivation->result = run->result ? json_loads(run->result, 0, NULL) : NULL;
    }
    json_decref(settings);
    return 0;
}

/* The keys that the command sets, with the values that they have now. */
static json_t *set_json(const struct derivation *derivation) {
    json_t *set = json_object();
    for (uint32_t i = 0; i < derivation->settings_count; i++)
        for (size_t k = 0; k < keys_count; k++) {
            const char *name = keys[k].name;
            const size_t length = strlen(name);
            const char *setting = derivation->settings[i];
            if (!strncmp(setting, name, length) && strspn(setting + length, " =") > 0)
                json_object_set(set, name, json_object_get(derivation->stored, name));
        }
    return set;
}

int derive_find(struct derivation *derivation) {
    struct store_run from;
    bool found;
    assert(derivation->from > 0 && derivation->settings_count > 0 && !derivation->run);
    int code = store_run_find(derivation->store, derivation->from, &from, &found);
    if (!code && (!found || !from.result))
        code = error_set(ERROR_UNAVAILABLE,
                         "%s: there is no record of how run %lld ended, so its model can get no "
                         "other threshold",
                         derivation->state, (long long)derivation->from);
    json_t *before = code ? NULL : json_loads(from.settings, 0, NULL);
    derivation->stored = json_copy(before);
    if (!code)
        code = job_set_threshold(derivation->settings, derivation->settings_count,
                                 derivation->stored, &derivation->wanted);
    derivation->set = code ? NULL : set_json(derivation);
    if (!code && json_equal(before, derivation->stored))
        derivation->run = derivation->from;
    else if (!code)
        code = store_runs(derivation->store, take_derived, derivation);
    json_decref(before);
    store_run_release(&from);
    return code;
}

char *derive_words(const json_t *set) {
    char *words = memory_copy_string("");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)set, key, value) {
        char *before = words;
        words = json_is_string(value) ? memory_format("%s%s%s = %s", before, *before ? ", " : "",
                                                      key, json_string_value(value))
                                      : memory_format("%s%s%s = %g", before, *before ? ", " : "",
                                                      key, json_number_value(value));
        free(before);
    }
    return words;
}

void derive_release(struct derivation *derivation) {
    json_decref(derivation->stored);
    json_decref(derivation->set);
    json_decref(derivation->result);
    derivation->stored = derivation->set = derivation->result = NULL;
}

/* ---- the rows that were held out ---- */

/* What is done beside the loop, without the store. */
struct deriving {
    const struct derivation *derivation;
    char **sources; /* fingerprints of the files that were trained on, NULL-terminated; owned */
    json_t *result; /* that of the run, and then of the new one; owned */
    char *folder;   /* of the new model; owned */
    char sha256[SHA256_TEXT];
    int64_t number;
};

static int take_fingerprint(void *context, const struct store_source *source) {
    char ***names = context;
    const uint32_t count = names_count(*names);
    *names = memory_resize(*names, count + 2, sizeof **names);
    (*names)[count] = memory_copy_string(source->fingerprint);
    (*names)[count + 1] = NULL;
    return 0;
}

/* Whether these are the rows that the run had: by what tells them from others. Takes the packs. */
static struct holdout *check_rows(const struct deriving *work, struct pack **packs, uint32_t count,
                                  const struct holdout_pick *pick) {
    char rows[17];
    const json_t *of_run = json_object_get(work->result, "holdout");
    snprintf(rows, sizeof rows, "%016llx", (unsigned long long)holdout_rows_id(packs, count, pick));
    if (!strcmp(rows, member_text(of_run, "rows")))
        return holdout_new(packs, count, pick);
    for (uint32_t i = 0; i < count; i++)
        pack_close(packs[i]);
    return NULL;
}

/* NULL if it cannot be read. */
static struct pack *open_pack(const char *state, const char *name, const char *ending) {
    char *path = memory_format("%s/packs/%s%s", state, name, ending);
    struct pack *pack = NULL;
    if (pack_open(path, &pack))
        error_clear();
    free(path);
    return pack;
}

/* The rows of a share are in the packs of the files that were trained on. */
static struct holdout *find_share(const struct deriving *work, double share) {
    const uint32_t count = names_count(work->sources);
    struct pack **packs = memory_new(count + 1, sizeof(struct pack *));
    struct holdout *holdout = NULL;
    uint32_t opened = 0;
    while (opened < count &&
           (packs[opened] = open_pack(work->derivation->state, work->sources[opened], ".pack")))
        opened++;
    if (count && opened == count) {
        holdout = check_rows(work, packs, count, &(struct holdout_pick){.share = share});
    } else {
        while (opened)
            pack_close(packs[--opened]);
    }
    free(packs);
    return holdout;
}

static bool is_source(const struct deriving *work, const char *name) {
    for (char **source = work->sources; source && *source; source++)
        if (!strncmp(name, *source, strlen(*source)))
            return true;
    return false;
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether a key `holdout` may name this file: by its name, or by that of its folder. The rows are
 * compared all the same, so a file too many does no harm but that none is found. */
static bool is_named(const json_t *held_out, const char *source) {
    char *folder = path_folder(source);
    bool named = false;
    size_t i;
    const json_t *pattern;
    json_array_foreach(held_out, i, pattern) {
        const char *name = last_name(json_string_value(pattern));
        named |= !fnmatch(name, last_name(source), 0) || !strcmp(name, last_name(folder));
    }
    free(folder);
    return named;
}

/* A holdout in files of its own has packs that the record does not name. */
static struct holdout *find_files(const struct deriving *work, const json_t *held_out) {
    char *folder = path_join(work->derivation->state, "packs"), **names = NULL;
    if (folder_names(folder, &names))
        error_clear();
    struct pack **packs = memory_new(names_count(names) + 1, sizeof(struct pack *));
    uint32_t count = 0;
    for (char **name = names; name && *name; name++) {
        struct pack *pack = name_ends(*name, ".pack") && !is_source(work, *name)
                                ? open_pack(work->derivation->state, *name, "")
                                : NULL;
        if (pack && is_named(held_out, pack_source(pack)))
            packs[count++] = pack;
        else
            pack_close(pack);
    }
    struct holdout *holdout = count ? check_rows(work, packs, count, NULL) : NULL;
    free(packs);
    names_free(names);
    free(folder);
    return holdout;
}

/* NULL if the run had none, or its rows are gone. */
static struct holdout *find_holdout(const struct deriving *work) {
    const json_t *held_out = json_object_get(work->derivation->stored, "holdout");
    const char *first = json_string_value(json_array_get(held_out, 0));
    double share;
    if (!first || !json_is_object(json_object_get(work->result, "holdout")))
        return NULL;
    return key_number(first, &share) ? find_share(work, share) : find_files(work, held_out);
}

/* ---- the new threshold ---- */

static int fit(const struct deriving *work, struct model *model, const struct holdout *holdout) {
    const struct response_wanted *wanted = &work->derivation->wanted;
    const struct objective *objective = objective_find(model->layout.objective);
    struct ranking *margins = NULL;
    if (!response_has_thresholds(objective))
        return error_set(ERROR_USAGE,
                         "--set threshold: run %lld has the objective %s, and a threshold needs "
                         "two classes, or lists of classes, and probabilities",
                         (long long)work->derivation->from, model->layout.objective);
    const bool needs_rows = response_is_found(wanted);
    if (needs_rows && !holdout)
        return error_set(ERROR_UNAVAILABLE,
                         "threshold = %s is found on the rows that run %lld has held out, and "
                         "%s/packs does not have them any more; set a probability, or train with "
                         "`run JOBFILE --set threshold=...`",
                         wanted->rule, (long long)work->derivation->from, work->derivation->state);
    int code = needs_rows ? holdout_margins(holdout, model, &margins) : 0;
    if (code)
        return code;
    if (!model->response)
        model->response = response_new(model->layout.outputs);
    model->layout.response = model->response;
    response_drop_thresholds(model->response);
    response_fit(wanted, &model->layout, margins, model->response);
    if (response_is_plain(model->response))
        model->layout.response = NULL;
    ranking_free(margins);
    return 0;
}

/* ---- the figures ---- */

/* Leaves figures out that another threshold changes. */
static json_t *figures_of_any_threshold(const json_t *figures) {
    static const char *const others[] = {
        "threshold",       "accuracy",     "precision", "recall",          "f1",
        "macro_precision", "macro_recall", "macro_f1",  "micro_precision", "micro_recall",
        "micro_f1",        "hamming",      "classes",   "confusion"};
    json_t *left = json_copy((json_t *)(uintptr_t)figures);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        json_object_del(left, others[i]);
    return left;
}

static int score(struct deriving *work, const struct model *model, const struct holdout *holdout) {
    const json_t *before = json_object_get(work->result, "holdout");
    const json_t *test = json_object_get(work->result, "test");
    struct score_figures figures;
    if (json_is_object(test))
        json_object_set_new(work->result, "test", figures_of_any_threshold(test));
    if (!json_is_object(before))
        return 0;
    if (!holdout) {
        log_warning("the rows that run %lld has held out are not in %s/packs any more: the figures "
                    "of the new model that depend on the threshold are left out",
                    (long long)work->derivation->from, work->derivation->state);
        json_object_set_new(work->result, "holdout", figures_of_any_threshold(before));
        return 0;
    }
    int code = holdout_score(holdout, model, &figures);
    if (code)
        return code;
    json_object_set_new(work->result, "holdout", holdout_json(holdout, &figures));
    score_figures_release(&figures);
    return 0;
}

/* ---- the model ---- */

static json_t *derived_json(const struct derivation *derivation) {
    return json_pack("{s:I, s:O}", "run", (json_int_t)derivation->from, "set", derivation->set);
}

/* The member `threshold` of a model or a result is what its response has, or goes. */
static json_t *threshold_json(const struct model *model) {
    json_t *members = json_object();
    response_describe(model->response, members);
    json_t *threshold = json_object_get(members, "threshold");
    json_t *answer = threshold ? json_incref(threshold) : json_null();
    json_decref(members);
    return answer;
}

static int write_model(struct deriving *work, const struct model *model) {
    json_t *threshold = threshold_json(model);
    json_object_set_new(work->result, "run", json_integer((json_int_t)work->number));
    json_object_set_new(work->result, "derived", derived_json(work->derivation));
    json_object_del(work->result, "model");
    json_object_del(work->result, "model_sha256");
    if (json_is_null(threshold))
        json_object_del(work->result, "threshold");
    else
        json_object_set(work->result, "threshold", threshold);
    json_t *changes = json_pack("{s:o, s:O, s:O}", "threshold", threshold, "settings",
                                work->derivation->stored, "result", work->result);
    int code = model_copy(model, work->folder, changes);
    json_decref(changes);
    if (!code)
        failpoint(FAILPOINT_derived_model);
    result_add_model(work->result, work->folder, model->sha256);
    memcpy(work->sha256, model->sha256, SHA256_TEXT);
    return code;
}

static int work_on_derived(void *context) {
    struct deriving *work = context;
    const struct derivation *derivation = work->derivation;
    char *folder = run_model_folder(derivation->state, derivation->from);
    struct model *model = NULL;
    struct holdout *holdout = NULL;
    int code = model_open(folder, &model);
    free(folder);
    if (!code) {
        holdout = find_holdout(work);
        code = fit(work, model, holdout);
    }
    if (!code)
        code = score(work, model, holdout);
    if (!code)
        code = write_model(work, model);
    holdout_free(holdout);
    model_close(model);
    return code;
}

/* ---- its run ---- */

/* A folder that an earlier attempt left, which was ended before it recorded the run, is replaced:
 * only the holder of the lock begins runs. */
static int choose_number(const struct derivation *derivation, int64_t *number) {
    int code = store_run_next(derivation->store, number);
    if (code)
        return code;
    char *path = memory_format("%s/models/%lld/model.json", derivation->state, (long long)*number);
    json_t *details = json_load_file(path, 0, NULL), *own = derived_json(derivation);
    const json_t *left = json_object_get(json_object_get(details, "result"), "derived");
    const bool is_own = json_equal(left, own);
    json_decref(own);
    json_decref(details);
    free(path);
    return is_own ? 0 : state_run_next(derivation->state, derivation->store, number);
}

static int record(const struct derivation *derivation, const struct store_run *from,
                  const struct deriving *work, int64_t *number) {
    const json_t *holdout = json_object_get(work->result, "holdout");
    char *settings = json_dumps(derivation->stored, JSON_COMPACT);
    char *result = json_dumps(work->result, JSON_COMPACT);
    char *figures = json_is_object(holdout) ? json_dumps(holdout, JSON_COMPACT) : NULL;
    /* Not the identity of the job: a run that goes on, and `retrain`, look for what was trained. */
    char *identity = memory_format("%s of run %lld", from->identity, (long long)from->run);
    struct store_run run = {.run = work->number,
                            .identity = identity,
                            .settings = settings,
                            .result = result,
                            .started_ms = clock_wall_ms()};
    int code = store_run_derive(derivation->store, from, work->folder, work->sha256, figures, &run);
    assert(code || run.run == work->number);
    *number = run.run;
    free(identity);
    free(figures);
    free(result);
    free(settings);
    return code;
}

int derive_make(struct derivation *derivation) {
    struct deriving work = {.derivation = derivation};
    struct store_run from;
    bool found;
    if (derivation->run)
        return 0;
    int code = store_run_find(derivation->store, derivation->from, &from, &found);
    if (code)
        return code;
    assert(found && from.result);
    work.result = json_loads(from.result, 0, NULL);
    code = store_sources(derivation->store, derivation->from, take_fingerprint, &work.sources);
    if (!code)
        code = choose_number(derivation, &work.number);
    work.folder = run_model_folder(derivation->state, work.number);
    if (!code)
        code = loop_beside(derivation->loop, STAGE_WRITING, work_on_derived, &work);
    if (!code)
        code = record(derivation, &from, &work, &derivation->run);
    if (!code) {
        failpoint(FAILPOINT_derived_run);
        derivation->result = json_incref(work.result);
    }
    names_free(work.sources);
    free(work.folder);
    json_decref(work.result);
    store_run_release(&from);
    return code;
}

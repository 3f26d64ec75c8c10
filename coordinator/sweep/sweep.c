#include "coordinator/sweep/sweep.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/family.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/model_removal.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/sets.h"
#include "coordinator/status/history.h"
#include "coordinator/status/run_folder.h"
#include "coordinator/status/sweep_table.h"

char *sweep_evaluated_on(const struct dataset *data) {
    char *list = memory_copy_string("");
    for (uint32_t i = 0; i < data->sources.count; i++) {
        const struct dataset_source *source = &data->sources.items[i];
        if (source->use != USE_HOLDOUT)
            continue;
        char *more = memory_format("%s%s%s", list, *list ? "," : "", source->fingerprint);
        free(list);
        list = more;
    }
    return list;
}

static const char *const uses[] = {
    [USE_TRAINING] = "data", [USE_HOLDOUT] = "holdout", [USE_TEST] = "test"};

/* The files of the data, as struct store_sweep has them; free it. */
static char *sweep_sources(const struct dataset *data) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < data->sources.count; i++) {
        const struct dataset_source *source = &data->sources.items[i];
        json_array_append_new(list, json_pack("{s:o, s:s, s:s}", "path", text_to_json(source->path),
                                              "fingerprint", source->fingerprint, "use",
                                              uses[source->use]));
    }
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}

/* ---- the data of an earlier sweep, from its packs ---- */

struct recalling {
    const struct job *job;
    struct dataset_sources sources;
    const char *fingerprint;
    struct dataset *data;
};

static int work_on_recalling(void *context) {
    struct recalling *recalling = context;
    int code = dataset_recall(recalling->job, &recalling->sources, recalling->data);
    if (!code && strcmp(set_info(recalling->data->set)->fingerprint, recalling->fingerprint))
        code = error_set(ERROR_DATA, "its data files have changed since the sweep began");
    if (code)
        dataset_release(recalling->data);
    return code;
}

int sweep_recall(struct session *session, const char *sources, const char *fingerprint,
                 struct dataset *data) {
    struct recalling recalling = {.job = session->job, .fingerprint = fingerprint, .data = data};
    json_t *list = json_loads(sources, 0, NULL), *source;
    size_t i;
    json_array_foreach(list, i, source) {
        struct dataset_source read = {.path = (char *)(uintptr_t)member_text(source, "path"),
                                      .use = USE_TRAINING};
        while (read.use < USE_TEST && strcmp(uses[read.use], member_text(source, "use")))
            read.use++;
        snprintf(read.fingerprint, sizeof read.fingerprint, "%s",
                 member_text(source, "fingerprint"));
        dataset_add_source(&recalling.sources, &read);
    }
    json_decref(list);
    int code = loop_beside(&session->loop, STAGE_PACKING, work_on_recalling, &recalling);
    dataset_sources_release(&recalling.sources);
    return code;
}

struct sweep {
    struct training *training;
    const struct dataset *data;
    const char *start_from; /* the folder of a model, or NULL */
    char *begun_from; /* the folder of the model from which the sweep began, found by its hash; or
                         NULL */
    struct sweep_shape shape;
    char *identity;     /* of the whole job */
    char *evaluated_on; /* as of struct store_sweep */
    char *start_sha;    /* of `start_from`; "" without one */
    int64_t number;     /* 0: not begun */
    struct sweep_runs runs;
    uint32_t trained;    /* members, by this command */
    uint32_t fold;       /* whose data is open; 0: none */
    struct dataset left; /* that data */
};

struct sweep_shape sweep_shape_of(const struct job *job) {
    return (struct sweep_shape){
        .values = job_grid_size(job),
        .inner = job_grid_inner(job),
        .folds = job->folds,
        .independent = job_family(job)->family->path_dependent || job->optimizer == JOB_DOWNPOUR ||
                       job->early_stopping,
        .rule = {.by = score_figure_find(job->choose_by),
                 .one_se = job->choose == JOB_CHOOSE_ONE_SE},
    };
}

/* ---- what a sweep is begun with ---- */

static int read_start(struct sweep *sweep) {
    struct model *model;
    int code = training_open_model(sweep->training, sweep->start_from, &model);
    if (!code)
        sweep->start_sha = memory_copy_string(model ? model->sha256 : "");
    model_close(model);
    return code;
}

/* ---- a sweep that goes on, or a new one ---- */

static int read_members(struct sweep *sweep) {
    const struct job *job = sweep->training->session->job;
    json_t *settings = job_settings(job);
    struct sweep_limits limits = {.settings = settings, .state = job->state};
    struct store *store = sweep->training->session->store;
    int code = sweep->runs.count
                   ? sweep_runs_refresh(store, sweep->number, &sweep->shape, &limits, &sweep->runs)
                   : sweep_runs_read(store, sweep->number, &sweep->shape, &limits, &sweep->runs);
    json_decref(settings);
    return code;
}

/* Why the sweep in the store is not the one that is asked for; NULL if it is. */
static const char *other_than(const struct sweep *sweep, const struct sweep_record *record) {
    if (strcmp(record->data, set_info(sweep->data->set)->fingerprint))
        return "has other data";
    if (strcmp(record->evaluated_on, sweep->evaluated_on))
        return "has another holdout";
    if (sweep->start_from && strcmp(record->start_model, sweep->start_sha))
        return *record->start_model ? "started from another model" : "started from zero";
    return NULL;
}

static int take_newest(void *context, const struct store_sweep *sweep) {
    struct sweep_record *newest = context;
    *newest = (struct sweep_record){.sweep = sweep->sweep,
                                    .settings = memory_copy_string(sweep->settings),
                                    .ended_ms = sweep->ended_ms};
    return 0;
}

/* Logs which setting differs, if the newest sweep is unfinished but of another job. */
static int explain_other_job(const struct sweep *sweep) {
    struct sweep_record newest = {0};
    int64_t number;
    int code = store_sweep_last(sweep->training->session->store, &number);
    if (!code)
        code = store_sweep_find(sweep->training->session->store, number, take_newest, &newest);
    json_t *settings = newest.settings ? json_loads(newest.settings, 0, NULL) : NULL;
    const char *key =
        settings ? job_first_difference(sweep->training->session->job, settings) : NULL;
    if (key && !newest.ended_ms)
        log_info("sweep %lld is unfinished, but has another `%s`: a new sweep starts",
                 (long long)newest.sweep, key);
    json_decref(settings);
    free(newest.settings);
    return code;
}

/* The winner of a sweep that has ended is the outcome, unless a decision was made about it since.
 * What came since is told by numbers: clocks may go back. */
static int take_winner(struct sweep *sweep, const struct sweep_record *record,
                       struct sweep_outcome *outcome) {
    struct history history;
    int code = history_read(sweep->training->session->store, &history);
    const struct history_item *decision = code ? NULL : history_of(&history, record->winner);
    if (!code && (!decision || decision->publication <= record->decided)) {
        outcome->winner = record->winner;
        outcome->result = json_loads(record->result, 0, NULL);
    }
    history_release(&history);
    return code;
}

/* The run whose model the sweep was begun from: that which is live still, or what the record of its
 * first run says. Another one may have the same model, but not the same curvature beside it. */
static int find_start_run(struct sweep *sweep, const struct sweep_record *record, int64_t *run) {
    struct store *store = sweep->training->session->store;
    struct store_run first;
    char *sha256;
    bool found;
    *run = history_current(sweep->training->session->job->state);
    int code = store_model_of(store, *run, NULL, &sha256);
    bool lives = !code && !strcmp(sha256, record->start_model);
    free(sha256);
    if (code || lives)
        return code;
    code = store_run_find(store, sweep->runs.members[0].run, &first, &found);
    *run = found ? first.start_run : 0;
    store_run_release(&first);
    return code;
}

/* Whoever goes on with a sweep need not name the model that it was begun from, which full fits that
 * have not begun are to start from as the first one did. A new sweep starts if it is not here. */
static int find_start(struct sweep *sweep, const struct sweep_record *record) {
    bool begins = false;
    int64_t run;
    assert(sweep->number == record->sweep && !sweep->begun_from);
    for (uint32_t i = 0; i < sweep->shape.values; i++)
        begins |= !sweep->runs.members[i].run;
    if (!begins || !sweep->shape.independent || !*record->start_model || sweep->start_from)
        return 0;
    int code = find_start_run(sweep, record, &run);
    if (code)
        return code;
    char *folder = run_model_folder(sweep->training->session->job->state, run);
    if (run && access(folder, F_OK) == 0) {
        sweep->start_from = sweep->begun_from = folder;
        return 0;
    }
    free(folder);
    log_info("sweep %lld is unfinished, but the model that it started from is not here any more: a "
             "new sweep starts",
             (long long)sweep->number);
    sweep->number = 0;
    sweep_runs_release(&sweep->runs);
    return 0;
}

/* Goes on with the sweep of the record, or takes its winner, if either can be. */
static int go_on(struct sweep *sweep, const struct sweep_record *record,
                 struct sweep_outcome *outcome) {
    sweep->number = record->sweep;
    int code = read_members(sweep);
    if (!code && sweep_is_open(record, &sweep->shape, &sweep->runs)) {
        uint32_t member;
        if (record->ended_ms &&
            sweep_next(&sweep->shape, sweep->runs.members, &member) == SWEEP_CHOOSE)
            log_info("sweep %lld has ended; another of its models may be chosen now",
                     (long long)record->sweep);
        return find_start(sweep, record);
    }
    if (code)
        return code;
    sweep->number = 0;
    sweep_runs_release(&sweep->runs);
    return record->winner ? take_winner(sweep, record, outcome) : 0;
}

static int take_up(struct sweep *sweep, struct sweep_outcome *outcome) {
    struct sweep_record record = {0};
    int code = sweep_record_read(sweep->training->session->store, sweep->identity, &record);
    const char *other = !code && record.sweep ? other_than(sweep, &record) : NULL;
    if (!code && !record.sweep)
        code = explain_other_job(sweep);
    else if (!code && !other)
        code = go_on(sweep, &record, outcome);
    else if (!code && !record.ended_ms)
        log_info("sweep %lld is unfinished, but %s: a new sweep starts", (long long)record.sweep,
                 other);
    sweep_record_release(&record);
    return code;
}

static int begin_sweep(struct sweep *sweep) {
    struct training *training = sweep->training;
    json_t *settings = job_settings(training->session->job);
    char *text = json_dumps(settings, JSON_COMPACT);
    char *sources = sweep_sources(sweep->data);
    struct store_sweep record = {.identity = sweep->identity,
                                 .settings = text,
                                 .data = set_info(sweep->data->set)->fingerprint,
                                 .evaluated_on = sweep->evaluated_on,
                                 .sources = sources,
                                 .start_model = sweep->start_sha,
                                 .started_ms = training->started_ms};
    int code = store_sweep_begin(training->session->store, &record);
    sweep->number = record.sweep;
    free(sources);
    free(text);
    json_decref(settings);
    return code;
}

/* ---- a member ---- */

/* The first member's time begins with the command: what came before is counted to it. */
static void prepare(struct sweep *sweep, uint32_t member, const char *start) {
    struct training *training = sweep->training;
    struct sweep_place place = sweep_place(&sweep->shape, member);
    uint32_t open = 0;
    for (uint32_t i = 0; i < sweep->runs.count; i++)
        open += sweep->runs.members[i].state == MEMBER_OPEN;
    assert(sweep->runs.members[member].state == MEMBER_OPEN);
    training->start_from = start;
    training->member = (struct training_member){.sweep = sweep->number,
                                                .number = member,
                                                .identity = sweep->identity,
                                                .is_start = !place.fold,
                                                .is_last = open == 1};
    if (sweep->trained++) {
        training->started_ns = clock_monotonic_ns();
        training->started_ms = clock_wall_ms();
    }
}

/* ---- the data of a fold ---- */

static int work_on_fold(void *context) {
    struct sweep *sweep = context;
    return dataset_open_fold(sweep->training->session->job, &sweep->data->sources, sweep->fold,
                             &sweep->left);
}

/* The set of a fold is as large as the data, so it is there only while it is trained on. */
static void close_fold(struct sweep *sweep) {
    char *path = sweep->left.set ? memory_copy_string(set_path(sweep->left.set)) : NULL;
    dataset_release(&sweep->left);
    sweep->fold = 0;
    if (path && guard_holds())
        unlink(path);
    free(path);
}

static int work_on_check(void *context) {
    const struct sweep *sweep = context;
    return dataset_check_folds(sweep->training->session->job, &sweep->data->sources);
}

/* Opens the data of a member: of all rows, or of all but those of its fold. *data is a view. Its
 * seconds are how long reading took, and 0 for every member but the first that uses it. */
static int choose_data(struct sweep *sweep, uint32_t fold, struct dataset *data) {
    int code = 0;
    bool open = sweep->fold == fold && sweep->trained;
    if (sweep->fold != fold)
        close_fold(sweep);
    if (sweep->fold != fold && fold) {
        sweep->fold = fold;
        code = loop_beside(&sweep->training->session->loop, STAGE_PACKING, work_on_fold, sweep);
    }
    assert(code || sweep->fold == fold);
    *data = fold ? sweep->left : *sweep->data;
    if (open)
        data->seconds = 0;
    return code;
}

/* ---- training a member ---- */

static int train_member(struct sweep *sweep, uint32_t member) {
    struct training *training = sweep->training;
    struct job *job = training->session->job;
    struct sweep_place place = sweep_place(&sweep->shape, member);
    struct dataset data;
    struct job_grid_lists lists;
    assert(member < sweep->runs.count && place.fold <= sweep->shape.folds);
    /* Only full fits start from the live model: that may have been trained on the rows of any fold.
     */
    const uint32_t before = sweep_start_of(&sweep->shape, member);
    char *start = NULL;
    if (before != SWEEP_NO_MEMBER)
        start = run_model_folder(job->state, sweep->runs.members[before].run);
    else if (sweep->start_from && !place.fold)
        start = memory_copy_string(sweep->start_from);
    char fold[48] = "", *value = job_grid_words(job, place.value);
    if (place.fold)
        snprintf(fold, sizeof fold, ", fold %u of %u", place.fold, sweep->shape.folds);
    log_info("sweep %lld, run %u of %u: %s%s", (long long)sweep->number, member + 1,
             sweep->runs.count, value, fold);
    free(value);
    int code = choose_data(sweep, place.fold, &data);
    job_grid_enter(job, place.value, &lists);
    prepare(sweep, member, start);
    progress_open(!training->session->options->quiet);
    if (!code)
        code = training_run(training, &data, data.set);
    if (!code)
        code = training_conclude(training);
    training_release(training, code);
    training->member = (struct training_member){0};
    job_grid_leave(job, &lists);
    free(start);
    return code;
}

/* ---- what is left behind ---- */

/* The models of folds are of no use once they were evaluated_on. */
static int remove_models_of_folds(struct sweep *sweep) {
    struct training *training = sweep->training;
    const struct sweep_runs *members = &sweep->runs;
    int64_t *runs = memory_new(members->count, sizeof *runs);
    size_t count = 0;
    assert(sweep->shape.values <= members->count);
    for (uint32_t i = sweep->shape.values; i < members->count; i++)
        if (members->members[i].state == MEMBER_DONE && !members->removed[i])
            runs[count++] = members->members[i].run;
    int code = models_remove(&training->session->loop, training->session->store,
                             training->session->job->state, runs, count, NULL);
    free(runs);
    return code;
}

/* ---- all of it ---- */

/* The end is committed with the whole result, so that it need not be made again. */
static int conclude(struct sweep *sweep, struct sweep_outcome *outcome) {
    const struct score_figure *by;
    uint32_t winner = sweep_decide(&sweep->shape, &sweep->runs, &by).value;
    if (by != sweep->shape.rule.by)
        log_warning("sweep %lld: no value has the figure %s on %s, so %s decides",
                    (long long)sweep->number, sweep->shape.rule.by->name,
                    sweep->shape.folds ? "all folds" : "the holdout", by->name);
    assert(winner < sweep->shape.values);
    outcome->winner = sweep->runs.members[winner].run;
    outcome->result = sweep_result(sweep->number, &sweep->shape, &sweep->runs);
    char *text = json_dumps(outcome->result, JSON_COMPACT);
    close_fold(sweep);
    int code = sweep->shape.folds ? sets_prune_folds(&sweep->training->session->loop,
                                                     sweep->training->session->job->state)
                                  : 0;
    if (!code)
        code =
            store_sweep_end(sweep->training->session->store, sweep->number, outcome->winner, text);
    free(text);
    return code;
}

/* For whoever asks for the status. */
static json_t *show_sweep(void *context) {
    const struct sweep *sweep = context;
    return sweep_json(sweep->number, &sweep->shape, &sweep->runs);
}

static int train_all(struct sweep *sweep, struct sweep_outcome *outcome) {
    uint32_t member;
    int code = read_members(sweep);
    sweep->training->session->sweep = code ? NULL : show_sweep;
    sweep->training->session->sweep_context = sweep;
    if (!code)
        code = remove_models_of_folds(sweep); /* left by a command that was killed */
    while (!code && sweep_next(&sweep->shape, sweep->runs.members, &member) == SWEEP_TRAIN) {
        code = train_member(sweep, member);
        if (!code)
            code = read_members(sweep);
        if (!code)
            code = remove_models_of_folds(sweep);
    }
    if (!code)
        code = remove_models_of_folds(sweep);
    return code ? code : conclude(sweep, outcome);
}

int sweep_train(struct training *training, const struct dataset *data, const char *start_from,
                bool fresh, struct sweep_outcome *outcome) {
    struct session *session = training->session;
    struct sweep sweep = {.training = training,
                          .data = data,
                          .start_from = start_from,
                          .shape = sweep_shape_of(session->job),
                          .identity = job_identity(session->job),
                          .evaluated_on = sweep_evaluated_on(data)};
    *outcome = (struct sweep_outcome){0};
    assert(job_has_sweep(session->job) && !session->sweep);
    int code = read_start(&sweep);
    if (!code && !fresh)
        code = take_up(&sweep, outcome);
    bool begins = !outcome->winner && !sweep.number;
    if (!code && begins) /* what a fold lacks is told before hours of training, not after */
        code = loop_beside(&session->loop, STAGE_PACKING, work_on_check, &sweep);
    if (!code && begins)
        code = begin_sweep(&sweep);
    if (!code && !outcome->winner)
        code = train_all(&sweep, outcome);
    if (code)
        training_release(training, code); /* workers may wait for a member that does not come */
    dataset_release(&sweep.left);
    session->sweep = NULL;
    session->sweep_context = NULL;
    sweep_runs_release(&sweep.runs);
    free(sweep.begun_from);
    free(sweep.start_sha);
    free(sweep.evaluated_on);
    free(sweep.identity);
    return code;
}

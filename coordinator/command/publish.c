/* `publish`: makes the model of a run live, or only gives the run a tag and a note. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/command/go_live.h"
#include "coordinator/job/job.h"
#include "coordinator/publish/derive.h"
#include "coordinator/status/sweep_plan.h"
#include "optimizer/row.h"

/* ---- what may go live ---- */

struct fold_search {
    uint32_t member, fold; /* fold: 0: the member is a full fit */
};

static int find_fold(void *context, const struct store_sweep *sweep) {
    struct fold_search *search = context;
    json_t *settings = json_loads(sweep->settings, 0, NULL);
    struct sweep_shape shape = sweep_shape_stored(settings);
    search->fold = sweep_place(&shape, search->member).fold;
    json_decref(settings);
    return 0;
}

/* A run whose record was lost may have a model all the same. */
static int check_run(struct go_live *live) {
    struct store_run run;
    bool found;
    int code = store_run_find(live->store, live->to, &run, &found);
    if (code || !found)
        return code;
    /* A model that was trained without the rows of a fold was made to be evaluated on these. */
    struct fold_search search = {.member = run.member};
    if (run.sweep)
        code = store_sweep_find(live->store, run.sweep, find_fold, &search);
    if (!code && search.fold)
        code = error_set(
            ERROR_UNAVAILABLE,
            "run %lld is fold %u of sweep %lld: its model was trained without the rows of the "
            "fold, to be evaluated on them; `jobs` says which run of the sweep was chosen",
            (long long)live->to, search.fold, (long long)run.sweep);
    else if (!code && !run.reason)
        code = error_set(ERROR_UNAVAILABLE,
                         "run %lld has not ended, and has no model yet: `run` resumes it",
                         (long long)live->to);
    else if (!code && !reason_has_model(reason_of(run.reason)))
        code = error_set(ERROR_UNAVAILABLE, "run %lld has no model: it ended with `%s`",
                         (long long)live->to, run.reason);
    store_run_release(&run);
    return code;
}

static int check_refusal(const struct go_live *live) {
    struct history history;
    int code = history_read(live->store, &history);
    assert(live->to > 0);
    const struct history_item *item = code ? NULL : history_of(&history, live->to);
    if (item && item->decision == DECISION_REFUSED && !live->options->force) {
        char when[CLOCK_MINUTE];
        clock_minute(item->wall_ms, when);
        code = error_set(ERROR_DATA,
                         "the gate refused run %lld on %s: %s; --force makes its model live anyway",
                         (long long)live->to, when, item->text);
    }
    history_release(&history);
    return code;
}

/* ---- the command ---- */

static int label(struct go_live *live) {
    const struct options *options = live->options;
    struct store_run run;
    bool found;
    if (!options->tag && !options->note)
        return 0;
    assert(live->to > 0);
    int code = store_run_find(live->store, live->to, &run, &found);
    store_run_release(&run);
    if (!code && !found)
        code = error_set(ERROR_UNAVAILABLE, "%s: there is no record of run %lld", live->state,
                         (long long)live->to);
    if (!code)
        code = store_run_label(live->store, live->to, options->tag, options->note);
    return code ? code : store_flush(live->store);
}

static int label_only(struct go_live *live) {
    if (!live->options->tag && !live->options->note)
        return error_set(ERROR_USAGE, "`publish --no-publish` needs `--tag` or `--note`");
    int code = label(live);
    if (code)
        return code;
    if (live->options->json)
        return go_live_show_kept(live);
    printf("run %lld has its label; what is live stays\n", (long long)live->to);
    return 0;
}

/* A publication that was cut off is completed when it is repeated. */
static int make_live(struct go_live *live) {
    int announced = go_live_settle_earlier(live, DECISION_PUBLISHED), code = 0;
    assert(live->to > 0);
    if (!announced && !live->completed) {
        live->from = history_current(live->state);
        code = check_run(live);
        if (!code)
            code = go_live_check(live);
        if (!code)
            code = check_refusal(live);
    }
    if (!code && (!announced || live->completed))
        code = label(live);
    if (!code && !announced && !live->completed)
        announced = go_live_now(live, DECISION_PUBLISHED, "by `publish`");
    if (code)
        return code;
    if (announced && announced != ERROR_UNAVAILABLE)
        return announced;
    code = go_live_show(live, "", "publication");
    return announced ? announced : code;
}

/* ---- with another threshold ---- */

/* What the command line says of the threshold, and what it says of the job. */
struct settings {
    struct options job; /* the options with the settings of the job file alone */
    const char **threshold;
    uint32_t count;
};

static int refuse_setting(const char *setting) {
    return error_set(ERROR_USAGE,
                     "--set %s: `publish` trains nothing, so it can set threshold, "
                     "cost.false_positive and cost.false_negative, which change no parameter and "
                     "no probability; `run JOBFILE --set ...` trains a model with other settings",
                     setting);
}

/* Release it in any case. */
static int settings_split(const struct options *options, struct settings *settings) {
    const uint32_t all = options->settings_count;
    *settings =
        (struct settings){.job = *options, .threshold = memory_new(all + 1, sizeof(char *))};
    settings->job.settings = memory_new(all + 1, sizeof(char *));
    settings->job.settings_count = 0;
    for (uint32_t i = 0; i < all; i++) {
        const char *setting = options->settings[i];
        if (job_sets_model(setting))
            return refuse_setting(setting);
        if (job_sets_threshold(setting))
            settings->threshold[settings->count++] = setting;
        else
            settings->job.settings[settings->job.settings_count++] = setting;
    }
    if (settings->count && options->no_publish)
        return error_set(ERROR_USAGE,
                         "`publish --no-publish` only gives the run a tag or a note; leave out "
                         "`--set %s`, or --no-publish",
                         settings->threshold[0]);
    return 0;
}

static void settings_release(struct settings *settings) {
    free(settings->threshold);
    free(settings->job.settings);
}

/* A model that is live with another threshold is not decided about any more. */
static int decide_source(struct go_live *live, int64_t from) {
    struct history history;
    int code = history_read(live->store, &history);
    const bool open = !code && !history_of(&history, from) && history_current(live->state) != from;
    history_release(&history);
    return open ? go_live_keep(live, from, "its model is published with another threshold") : code;
}

static void show_derived(const struct go_live *live, const struct derivation *derivation) {
    const json_t *holdout = json_object_get(derivation->result, "holdout");
    const json_t *threshold = json_object_get(derivation->result, "threshold");
    const json_t *all = json_object_get(threshold, "probabilities");
    /* Those that a threshold changes. */
    static const char *const figures[] = {"accuracy", "precision", "recall", "f1", "micro_f1"};
    char *words = derive_words(derivation->set);
    if (!live->options->json) {
        printf("run %lld is the model of run %lld with %s", (long long)derivation->run,
               (long long)derivation->from, words);
        if (json_array_size(all) == 1)
            printf(": %.6g", json_number_value(json_array_get(all, 0)));
        const char *before = "\non the holdout:";
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            if (!json_is_number(json_object_get(holdout, figures[i])))
                continue;
            printf("%s %s %.6g", before, figures[i], member_number(holdout, figures[i]));
            before = ",";
        }
        putchar('\n');
    }
    log_info("later runs of the job get this threshold if its job file says so, too: %s", words);
    free(words);
}

/* The decision about a model that an interrupted command made is found again by its run: the same
 * command completes it. */
static int publish_derived(struct go_live *live, struct derivation *derivation) {
    int code = check_run(live);
    if (!code)
        code = go_live_check(live);
    if (!code)
        code = check_refusal(live);
    if (!code)
        code = derive_find(derivation);
    if (code)
        return code;
    live->to = derivation->run ? derivation->run : INT64_MAX; /* no decision is about that */
    int announced = go_live_settle_earlier(live, DECISION_PUBLISHED);
    if (announced && announced != ERROR_UNAVAILABLE)
        return announced;
    live->from = live->completed ? live->from : history_current(live->state);
    if (!live->completed)
        code = derive_make(derivation);
    live->to = derivation->run;
    if (!code && derivation->run != derivation->from)
        code = decide_source(live, derivation->from);
    if (!code)
        code = label(live);
    if (!code && !live->completed) {
        char *words = derive_words(derivation->set);
        char *why = memory_format("by `publish`, the model of run %lld with %s",
                                  (long long)derivation->from, words);
        announced = go_live_now(live, DECISION_PUBLISHED, why);
        free(why);
        free(words);
    }
    if (code || (announced && announced != ERROR_UNAVAILABLE))
        return code ? code : announced;
    if (derivation->run != derivation->from)
        show_derived(live, derivation);
    live->derived = derivation->run != derivation->from ? derivation->result : NULL;
    code = go_live_show(live, "", "publication");
    return announced ? announced : code;
}

static int make_live_with(struct go_live *live, const struct settings *settings) {
    struct derivation derivation = {.loop = &live->loop,
                                    .store = live->store,
                                    .state = live->state,
                                    .from = live->to,
                                    .settings = settings->threshold,
                                    .settings_count = settings->count};
    int code = publish_derived(live, &derivation);
    derive_release(&derivation);
    return code;
}

/* Whoever names only the job does not say which of its models. */
static int check_is_run(const char *name) {
    if (!name_ends(name, ".conf") && !name_ends(name, ".state"))
        return 0;
    char *word = shell_word(name);
    int code = error_set(ERROR_USAGE,
                         "%s is not a run: give its number or its tag first, as `jobs` lists them, "
                         "as in `publish 1 %s`",
                         name, word);
    free(word);
    return code;
}

int command_publish(const struct options *options) {
    struct go_live live;
    const char *name = options->operands[0];
    if (check_is_run(name))
        return ERROR_USAGE;
    struct settings settings;
    int code = settings_split(options, &settings);
    if (code) {
        settings_release(&settings);
        return code;
    }
    code = go_live_open(&settings.job, 1, &live);
    if (!code)
        code = go_live_find(&live, name, name, &live.to);
    if (!code)
        code = settings.count        ? make_live_with(&live, &settings)
               : options->no_publish ? label_only(&live)
                                     : make_live(&live);
    go_live_close(&live);
    settings_release(&settings);
    return code;
}

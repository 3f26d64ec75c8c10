#include "coordinator/job/job.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "coordinator/job/family.h"
#include "coordinator/job/key.h"
#include "data/remote/address.h"

/* ---- questions about a job ---- */

double job_holdout_share(const struct job *job) {
    double share;
    return job->holdout[0] && key_number(job->holdout[0], &share) ? share : 0;
}

char *const *job_holdout_paths(const struct job *job) {
    static char *const none[] = {NULL};
    return job_holdout_share(job) > 0 ? none : job->holdout;
}

bool job_has_units(const struct job *job) {
    return job->optimizer == JOB_DOWNPOUR && job_family(job)->family->scales_columns &&
           !job->standardise && job->precondition != PRECONDITION_DIAGONAL;
}

uint32_t job_steps_least(const struct job *job) {
    return job_has_units(job) && !job->downpour.batch ? DOWNPOUR_STEPS_LEAST : 0;
}

uint32_t job_batch_most(const struct job *job) {
    return job->downpour.batch ? job->downpour.batch : DOWNPOUR_BATCH;
}

bool job_has_sweep(const struct job *job) {
    return job->l2.count > 1 || job->l1.count > 1 || job->folds;
}

uint32_t job_grid_inner(const struct job *job) {
    return job->l2.count ? job->l2.count : 1;
}

uint32_t job_grid_size(const struct job *job) {
    return job_grid_inner(job) * (job->l1.count ? job->l1.count : 1);
}

/* The value of a key, of its list from strong to weak. */
static double in_list(const struct numbers *numbers, uint32_t at) {
    assert(at < numbers->count || at == 0);
    return numbers->count > 1 ? numbers->all[at] : numbers->value;
}

static void enter_value(struct numbers *numbers, uint32_t at, double *value) {
    *value = in_list(numbers, at);
    if (!numbers->automatic)
        *numbers = (struct numbers){.value = *value, .all = value, .count = 1};
}

void job_grid_enter(struct job *job, uint32_t value, struct job_grid_lists *lists) {
    uint32_t inner = job_grid_inner(job);
    assert(value < job_grid_size(job));
    lists->l1 = job->l1;
    lists->l2 = job->l2;
    enter_value(&job->l1, value / inner, &lists->value[0]);
    enter_value(&job->l2, value % inner, &lists->value[1]);
}

void job_grid_leave(struct job *job, const struct job_grid_lists *lists) {
    job->l1 = lists->l1;
    job->l2 = lists->l2;
}

char *job_grid_words(const struct job *job, uint32_t value) {
    uint32_t inner = job_grid_inner(job);
    double l1 = in_list(&job->l1, value / inner), l2 = in_list(&job->l2, value % inner);
    if (job->l2.automatic && job->l1.count < 2)
        return memory_copy_string("l2 = auto");
    if (job->l1.count < 2)
        return memory_format("l2 = %g", l2);
    if (job->l2.count < 2)
        return memory_format("l1 = %g", l1);
    return memory_format("l1 = %g, l2 = %g", l1, l2);
}

struct response_wanted job_response(const struct job *job) {
    struct response_wanted wanted = {.rule = job->threshold,
                                     .calibration = job->calibrate,
                                     .classes_weighted = job->class_weight[0] != NULL};
    bool parsed = threshold_parse(job->threshold, &wanted.threshold);
    assert(parsed); /* it was checked when the job file was read */
    wanted.threshold.false_positive = job->false_positive;
    wanted.threshold.false_negative = job->false_negative;
    return wanted;
}

/* ---- another threshold for a finished model ---- */

static const struct key *key_of_setting(const char *setting) {
    size_t length = strcspn(setting, "=");
    while (length && strchr(" \t", setting[length - 1]))
        length--;
    char *name = memory_format("%.*s", (int)length, setting);
    const struct key *key = key_find(name);
    free(name);
    return key;
}

static bool is_of_threshold(const struct key *key) {
    return key->offset == offsetof(struct job, threshold) ||
           key->offset == offsetof(struct job, false_positive) ||
           key->offset == offsetof(struct job, false_negative);
}

bool job_sets_threshold(const char *setting) {
    const struct key *key = key_of_setting(setting);
    return key && is_of_threshold(key);
}

bool job_sets_model(const char *setting) {
    const struct key *key = key_of_setting(setting);
    return key && !is_of_threshold(key) &&
           ((!key->may_change && key->offset != offsetof(struct job, name)) ||
            key->offset == offsetof(struct job, calibrate) ||
            key->offset == offsetof(struct job, prior_correction));
}

/* What an older program did not store was the default. */
static int take_stored(struct job *job, const json_t *stored) {
    const char *rule = json_string_value(json_object_get(stored, "threshold"));
    const json_t *positive = json_object_get(stored, "cost.false_positive");
    const json_t *negative = json_object_get(stored, "cost.false_negative");
    for (size_t i = 0; i < keys_count; i++)
        if (is_of_threshold(&keys[i]))
            key_reset(&keys[i], job);
    if (positive)
        job->false_positive = json_number_value(positive);
    if (negative)
        job->false_negative = json_number_value(negative);
    return rule ? key_assign(key_find("threshold"), job, rule, "the settings of the run") : 0;
}

int job_set_threshold(const char *const *settings, uint32_t count, json_t *stored,
                      struct response_wanted *wanted) {
    struct job job = {.file = NULL};
    int code = take_stored(&job, stored);
    for (uint32_t i = 0; i < count && !code; i++)
        code = job_file_set(&job, settings[i]);
    for (size_t i = 0; i < keys_count; i++) {
        if (!is_of_threshold(&keys[i]))
            continue;
        if (!code)
            json_object_set_new(stored, keys[i].name, key_value(&keys[i], &job));
        key_release(&keys[i], &job);
    }
    if (code)
        return ERROR_USAGE;
    *wanted = (struct response_wanted){
        .rule = json_string_value(json_object_get(stored, "threshold")),
        .classes_weighted = json_array_size(json_object_get(stored, "class_weight")) > 0};
    bool parsed = threshold_parse(wanted->rule, &wanted->threshold);
    assert(parsed); /* as the key was assigned */
    wanted->threshold.false_positive = job.false_positive;
    wanted->threshold.false_negative = job.false_negative;
    if (wanted->threshold.kind == THRESHOLD_COST && job.false_positive == 0 &&
        job.false_negative == 0)
        return error_set(ERROR_USAGE, "threshold = cost: both costs are 0; set "
                                      "cost.false_positive or cost.false_negative above 0");
    if (threshold_is_found(&wanted->threshold) &&
        !json_array_size(json_object_get(stored, "holdout")))
        return error_set(ERROR_USAGE,
                         "threshold = %s is found on rows that are held out, and the run has no "
                         "holdout; set a probability, or train with `holdout`, for example "
                         "holdout = 0.1",
                         wanted->rule);
    return 0;
}

void job_complete_l2(struct job *job, double weight_total, double second) {
    assert(weight_total > 0 && second > 0);
    if (job->l2.automatic)
        job->l2.value = fmin(second / weight_total, PENALTY_MAX);
}

int job_refuse_key(const struct job *job, const char *key, int code) {
    char *why = memory_copy_string(error_text());
    error_clear();
    code = error_set(code, "%s: key `%s`: %s", job->file, key, why);
    free(why);
    return code;
}

/* ---- reading ---- */

static void complete_state(struct job *job, const char *state) {
    if (!job->name) {
        const char *slash = strrchr(job->file, '/'), *name = slash ? slash + 1 : job->file;
        size_t length = strlen(name);
        bool conf = length > 5 && strcmp(name + length - 5, ".conf") == 0;
        job->name = memory_format("%.*s", (int)(conf ? length - 5 : length), name);
    }
    if (!job->state)
        job->state = memory_format("%s.state", job->name);
    char *place = state                           ? memory_copy_string(state)
                  : strcmp(job->folder, ".") == 0 ? memory_copy_string(job->state)
                                                  : path_join(job->folder, job->state);
    free(job->state);
    job->state = place;
}

/* Fills in the defaults that follow from other keys, and checks the whole. */
static int complete(struct job *job) {
    int code = job_family(job)->complete(job);
    if (code)
        return code;
    /* An l1 chooses the weights by itself, a few epochs come to no optimum that they had to be kept
     * from, standard errors are those of an unpenalised fit unless the job says otherwise, and what
     * the tensors of a plug-in are nobody knows here. */
    const struct key *l2 = key_find("l2");
    bool none = job->summary || job->l1.value > 0 || job->optimizer == JOB_DOWNPOUR ||
                job_family(job)->family->own_tensors;
    if (job->l2.automatic && none) {
        key_clear(l2, job);
        code = key_assign(l2, job, "0", "default");
        assert(!code);
    }
    if (objective_of(job->objective)->labels == LABEL_LISTS)
        job->source.label.separator = job->separator[0]; /* so much of reading depends on it */
    code = job_check(job);
    if (!code)
        job_warn_of_unused(job);
    return code;
}

/* Reads a job as far as the name and the state folder; complete() does the rest. */
static int read_job(const char *path, const char *const *settings, uint32_t settings_count,
                    const char *state, struct job **job) {
    struct job *new = memory_new(1, sizeof *new);
    new->file = memory_copy_string(path);
    new->folder = path_folder(path);
    new->given = memory_new(keys_count, sizeof *new->given);
    for (size_t i = 0; i < keys_count; i++)
        key_reset(&keys[i], new);
    int code = job_file_read(new);
    for (uint32_t i = 0; !code && i < settings_count; i++)
        code = job_file_set(new, settings[i]);
    const char *given = state ? state : new->state;
    if (!code && given && address_is(given))
        code = error_set(ERROR_CONFIG,
                         "key `state`: %s: the state folder must be on a local or shared file "
                         "system; to copy a model elsewhere when it goes live, set on_publish",
                         given);
    if (!code)
        complete_state(new, state);
    *job = new;
    return code;
}

int job_read(const char *path, const char *const *settings, uint32_t settings_count,
             const char *state, struct job **job) {
    struct job *new;
    int code = read_job(path, settings, settings_count, state, &new);
    if (!code)
        code = complete(new);
    if (code)
        job_free(new);
    else
        *job = new;
    return code;
}

int job_read_state(const char *path, const char *const *settings, uint32_t settings_count,
                   const char *state, char **folder) {
    struct job *job;
    int code = read_job(path, settings, settings_count, state, &job);
    if (!code && !job_family(job)->family->own_tensors)
        code = complete(job);
    if (!code)
        *folder = memory_copy_string(job->state);
    job_free(job);
    return code;
}

/* How columns become features is in a model, and nothing else can be said of them afterwards. */
static bool is_settled_by_model(const struct key *key) {
#define AT(member) offsetof(struct job, source.member)
    static const size_t settled[] = {AT(table.numbers),
                                     AT(table.categories),
                                     AT(table.text),
                                     AT(words.ngrams),
                                     AT(words.lowercase),
                                     AT(words.least),
                                     AT(words.letters),
                                     AT(table.dates),
                                     AT(table.date_format),
                                     AT(table.missing),
                                     AT(table.trim),
                                     AT(table.hash_bits),
                                     AT(property.column[ROW_CLUSTER])};
#undef AT
    for (size_t i = 0; i < sizeof settled / sizeof *settled; i++)
        if (key->offset == settled[i])
            return true;
    return false;
}

static bool is_about_reading(const struct key *key, enum reading_for use) {
    size_t first = offsetof(struct job, source), end = first + sizeof(struct source_options);
    /* Files beside the data that are read with it. */
    bool of_figures =
        key->offset == offsetof(struct job, weights) || key->offset == offsetof(struct job, labels);
    bool of_margins = key->offset == offsetof(struct job, offsets) ||
                      key->offset == offsetof(struct job, exposures);
    if (use != READING_FOR_JOB && is_settled_by_model(key))
        return false;
    return (key->offset >= first && key->offset < end) || (of_margins && use != READING_FOR_JOB) ||
           (of_figures && use == READING_FOR_EVALUATION);
}

static int refuse_unless_reading(const char *setting, enum reading_for use) {
    char *name = memory_format("%.*s", (int)strcspn(setting, "="), setting);
    const struct key *key = key_find(name);
    int code = 0;
    if (!key || !is_about_reading(key, use)) {
        char allowed[512] = "";
        for (size_t i = 0, used = 0; i < keys_count; i++)
            if (is_about_reading(&keys[i], use))
                used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%s",
                                         used ? ", " : "", keys[i].name);
        code = error_set(
            ERROR_USAGE,
            "--set %s: this command takes only keys about how data is read%s; allowed: %s", setting,
            use == READING_FOR_JOB ? "" : ", because the model determines what columns are",
            allowed);
    }
    free(name);
    return code;
}

int job_set_reading(const char *const *settings, uint32_t count, enum reading_for use,
                    struct source_options *options, struct source_beside *beside) {
    struct job job = {.source = *options,
                      .weights = memory_new(1, sizeof(char *)),
                      .offsets = memory_new(1, sizeof(char *)),
                      .exposures = memory_new(1, sizeof(char *)),
                      .labels = memory_new(1, sizeof(char *))};
    int code = 0;
    for (uint32_t i = 0; !code && i < count; i++) {
        code = refuse_unless_reading(settings[i], use);
        if (!code)
            code = job_file_set(&job, settings[i]);
    }
    *options = job.source;
    *beside = (struct source_beside){.property = {job.weights, job.offsets, job.exposures},
                                     .labels = job.labels};
    return code;
}

void job_print_reading(const char *const *settings, uint32_t count,
                       const struct source_options *options, const char *section,
                       const char *const *but, FILE *out) {
    const struct job job = {.source = *options};
    const size_t length = strlen(section);
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        const size_t name = strlen(key->name);
        bool is_set = false, is_left_out = false;
        for (uint32_t k = 0; k < count; k++)
            is_set |= !strncmp(settings[k], key->name, name) && settings[k][name] == '=';
        for (const char *const *other = but; *other; other++)
            is_left_out |= !strcmp(*other, key->name);
        if (!is_set || is_left_out || !is_about_reading(key, READING_FOR_JOB) ||
            key_section(key) != length || strncmp(key->name, section, length) != 0 ||
            key_is_default(key, &job))
            continue;
        fprintf(out, length ? "    %s = " : "%-9s = ", key_own_name(key));
        key_print(key, &job, out);
        putc('\n', out);
    }
}

void job_free(struct job *job) {
    if (!job)
        return;
    for (size_t i = 0; i < keys_count; i++)
        key_release(&keys[i], job);
    free(job->file);
    free(job->folder);
    free(job->given);
    job_release_plugin(job);
    free(job);
}

/* ---- the settings as JSON, as a job file and as an identity ---- */

json_t *job_settings(const struct job *job) {
    json_t *settings = json_object();
    for (size_t i = 0; i < keys_count; i++)
        if (key_applies(&keys[i], job))
            json_object_set_new(settings, keys[i].name, key_value(&keys[i], job));
    return settings;
}

/* The path of the state folder as it is written in a job file in the job's folder. */
static char *state_as_written(const struct job *job) {
    size_t length = strlen(job->folder);
    if (job->state[0] == '/' || strcmp(job->folder, ".") == 0)
        return memory_copy_string(job->state);
    if (strncmp(job->state, job->folder, length) == 0 && job->state[length] == '/')
        return memory_copy_string(job->state + length + 1);
    char *here = getcwd(NULL, 0);
    char *path = path_join(here ? here : ".", job->state);
    free(here);
    return path;
}

void job_print(const struct job *job) {
    struct job written = *job;
    const struct key *before = NULL;
    written.state = state_as_written(job);
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        json_t *value = key_value(key, job);
        bool unset = json_is_null(value) || (json_is_array(value) && !json_array_size(value));
        json_decref(value);
        if (unset || !key_applies(key, job))
            continue;
        const size_t length = key_section(key), last = before ? key_section(before) : 0;
        if (length != last || (length && strncmp(key->name, before->name, length) != 0)) {
            if (last)
                puts("}");
            if (length)
                printf("%.*s {\n", (int)length, key->name);
        }
        const char *mark = key->tells && !job->given[i] ? "# " : "";
        printf(length ? "    %s%-14s = " : "%s%-18s = ", mark, key_own_name(key));
        key_print(key, &written, stdout);
        putchar('\n');
        before = key;
    }
    if (before && key_section(before))
        puts("}");
    free(written.state);
}

/* Keys at their defaults do not count. So a job keeps its identity when the table gets a new key:
 * its unfinished runs go on with a newer program, and `retrain` finds its last run. */
char *job_identity(const struct job *job) {
    struct hash_stream *stream = hash_stream_new();
    for (size_t i = 0; i < keys_count; i++) {
        if (keys[i].may_change)
            continue;
        json_t *value = key_value(&keys[i], job);
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        if (!key_is_default(&keys[i], job)) {
            hash_stream_add(stream, keys[i].name, strlen(keys[i].name) + 1);
            if (text)
                hash_stream_add(stream, text, strlen(text) + 1);
        }
        free(text);
        json_decref(value);
    }
    char *identity = memory_new(HASH128_TEXT, 1);
    hash_stream_text(stream, identity);
    hash_stream_free(stream);
    return identity;
}

/* Settings that were stored by an older program lack keys that were added since: these had their
 * defaults. */
const char *job_first_difference(const struct job *job, const json_t *stored_settings) {
    for (size_t i = 0; i < keys_count; i++) {
        if (keys[i].may_change)
            continue;
        json_t *value = key_value(&keys[i], job);
        const json_t *stored = json_object_get(stored_settings, keys[i].name);
        bool same = stored ? json_equal(value, stored) : key_is_default(&keys[i], job);
        json_decref(value);
        if (!same)
            return keys[i].name;
    }
    return NULL;
}

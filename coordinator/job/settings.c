/* The settings of a job as JSON, as a job file and as an identity. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "coordinator/job/job.h"
#include "coordinator/job/key.h"

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

static bool is_set(const struct key *key, const struct job *job) {
    json_t *value = key_value(key, job);
    bool set = !json_is_null(value) && !(json_is_array(value) && json_array_size(value) == 0);
    json_decref(value);
    return set;
}

/* Begins the section of a key, unless it is that of the key before. */
static void print_section(const struct key *key, const struct key *before) {
    size_t length = key_section(key), last = before ? key_section(before) : 0;
    if (length == last && (!length || strncmp(key->name, before->name, length) == 0))
        return;
    if (last)
        puts("}");
    if (length)
        printf("%.*s {\n", (int)length, key->name);
}

void job_print(const struct job *job) {
    struct job written = *job;
    const struct key *before = NULL;
    written.state = state_as_written(job);
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        if (!is_set(key, job) || !key_applies(key, job))
            continue;
        print_section(key, before);
        printf(key_section(key) ? "    %-14s = " : "%-18s = ", key_own_name(key));
        key_print(key, &written, stdout);
        putchar('\n');
        before = key;
    }
    if (before && key_section(before))
        puts("}");
    free(written.state);
}

/* The keys that identities were made of before others came. They count also with their defaults, so
 * that a job has the identity that it always had. */
static bool counts_always(const struct key *key) {
    static const char *const names[] = {
        "name",      "data",      "test",         "format",         "csv.header",
        "csv.label", "csv.skip",  "csv.positive", "bad_lines",      "objective",
        "l2",        "intercept", "history",      "history_type",   "precondition",
        "shards",    "holdout",   "vanished",     "early_stopping", "precondition_block"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], key->name) == 0)
            return true;
    return false;
}

/* Of later keys only those count that are not at their defaults: a new key leaves the identities of
 * all jobs that do not set it. So their unfinished runs go on, and `retrain` knows their last. */
char *job_identity(const struct job *job) {
    struct hash_stream *stream = hash_stream_new();
    for (size_t i = 0; i < keys_count; i++) {
        if (keys[i].may_change)
            continue;
        json_t *value = key_value(&keys[i], job);
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        if (counts_always(&keys[i]) || !key_is_default(&keys[i], job)) {
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

/* A key that came after the settings were stored had its default then. */
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

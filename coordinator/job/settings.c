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

void job_print(const struct job *job) {
    struct job written = *job;
    bool section = false;
    written.state = state_as_written(job);
    for (size_t i = 0; i < keys_count; i++) {
        const char *dot = strchr(keys[i].name, '.');
        if (section != (dot != NULL))
            printf(dot ? "%.*s {\n" : "}\n", dot ? (int)(dot - keys[i].name) : 0, keys[i].name);
        section = dot != NULL;
        if (!is_set(&keys[i], job))
            continue;
        printf(dot ? "    %-14s = " : "%-18s = ", dot ? dot + 1 : keys[i].name);
        key_print(&keys[i], &written, stdout);
        putchar('\n');
    }
    free(written.state);
}

char *job_identity(const struct job *job) {
    struct hash_stream *stream = hash_stream_new();
    for (size_t i = 0; i < keys_count; i++) {
        if (keys[i].may_change)
            continue;
        json_t *value = key_value(&keys[i], job);
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        hash_stream_add(stream, keys[i].name, strlen(keys[i].name) + 1);
        if (text)
            hash_stream_add(stream, text, strlen(text) + 1);
        free(text);
        json_decref(value);
    }
    char *identity = memory_new(HASH128_TEXT, 1);
    hash_stream_text(stream, identity);
    hash_stream_free(stream);
    return identity;
}

const char *job_first_difference(const struct job *job, const json_t *stored_settings) {
    for (size_t i = 0; i < keys_count; i++) {
        if (keys[i].may_change)
            continue;
        json_t *value = key_value(&keys[i], job);
        bool same = json_equal(value, json_object_get(stored_settings, keys[i].name));
        json_decref(value);
        if (!same)
            return keys[i].name;
    }
    return NULL;
}

/* Keys that have no effect, because of what others say. Job files may be shared, so that is no
 * error, unless a key with another value than its default is for another objective (job_check). */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "coordinator/job/key.h"

static bool is_in(const struct key *key, const struct key *other) {
    size_t length = key_section(key);
    return length && length == key_section(other) && !strncmp(key->name, other->name, length);
}

/* What makes a section one that counts. */
static const char *way_to_use(const struct key *key, char text[128]) {
    if (key->downpour)
        return "start = downpour or optimizer = downpour";
    snprintf(text, 128, "objective = %.*s", (int)key_section(key), key->name);
    return text;
}

static void warn_of_sections(const struct job *job) {
    const struct key *warned = NULL;
    for (size_t i = 0; i < keys_count; i++) {
        char text[128];
        if (!job->given[i] || key_applies(&keys[i], job) || (warned && is_in(warned, &keys[i])))
            continue;
        warned = &keys[i];
        log_warning("%s: the section %.*s { } has no effect without %s", job->file,
                    (int)key_section(warned), warned->name, way_to_use(warned, text));
    }
}

/* `only` names what the key needs. */
static void warn(const struct job *job, const char *name, bool has_effect, const char *only) {
    if (!has_effect && !key_is_default(key_find(name), job))
        log_warning("%s: key `%s`: has no effect %s", job->file, name, only);
}

void job_warn_of_unused(const struct job *job) {
    warn_of_sections(job);
    warn(job, "seed", job->folds, "without `folds`");
    warn(job, "launch", job->hosts[0], "without `hosts`");
    warn(job, "vanished", job->warm_start, "with warm_start = false");
    warn(job, "csv.category_least", !job->source.hash_bits, "with `csv.hash`");
    warn(job, "precondition_block",
         job->precondition == PRECONDITION_AUTO || job->precondition == PRECONDITION_BLOCK,
         "with this value of `precondition`");
}

void job_warn_of_csv(const struct job *job, const char *format) {
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        bool csv = key->offset != offsetof(struct job, positive) &&
                   (!strncmp(key->name, "csv.", 4) || !strcmp(key->name, "missing_columns"));
        if (csv && job->given[i] && !key_is_default(key, job))
            log_warning("%s: key `%s`: has no effect: the data is %s, no CSV", job->file, key->name,
                        format);
    }
}

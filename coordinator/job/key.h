/* The keys of the job file: one table with type, limits, default and help of each. What a text may
 * say, what an error says is allowed, the defaults and the listings all come from it. */
#ifndef DML_COORDINATOR_JOB_KEY_H
#define DML_COORDINATOR_JOB_KEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "coordinator/job/job.h"

enum key_type {
    KEY_TEXT,    /* char * */
    KEY_LIST,    /* char **, NULL-terminated */
    KEY_COUNT32, /* uint32_t */
    KEY_COUNT64, /* uint64_t */
    KEY_NUMBER,  /* double */
    KEY_FLAG,    /* bool */
    KEY_CHOICE,  /* an enum whose values number `choices` */
};

/* A number that is bounded by nothing else. */
#define NUMBER_MAX 1e300

struct key {
    const char *name; /* "l2", "csv.label" */
    enum key_type type;
    size_t offset; /* of the field in struct job */
    double least, most;
    const char *word;  /* a word taken in place of a number or text, or NULL */
    double word_value; /* what it stands for; NULL for a text */
    const char *const *choices;
    bool (*fits)(const char *text); /* for texts and elements of lists; may be NULL */
    const char *allowed;            /* what such a text is */
    const char *initial;            /* the default as text, or NULL: none */
    bool may_change;                /* when a run is resumed */
    const char *help;
};

extern const struct key keys[];
extern const size_t keys_count;

/* The key of that name, or NULL. */
const struct key *key_find(const char *name);

/* Takes `text` as the key's value, or as the next element of a list. ERROR_CONFIG; the error's
 * text is "`place`: key `x`: … allowed: …". */
int key_assign(const struct key *key, struct job *job, const char *text, const char *place);

/* The number that a whole text is; false if it is none. */
bool key_number(const char *text, double *value);

/* Back to nothing: no text, an empty list. For texts and lists. */
void key_clear(const struct key *key, struct job *job);

/* Writes what the key allows, such as "auto, or a whole number from 1 to 200". */
void key_allowed(const struct key *key, char *text, size_t size);

/* The value. A new reference; null for a text that is not set. */
json_t *key_value(const struct key *key, const struct job *job);

/* Writes the value as a job file would have it; nothing for a text that is not set. */
void key_print(const struct key *key, const struct job *job, FILE *out);

/* Every key with its default and meaning, for people. */
void key_print_help(FILE *out);

#endif

/* The keys of the job file: one table (key_table.c) with the type, limits, default and help of each
 * key. Checks, error messages, defaults and lists are all made from this table.
 *
 * From the file to the job: job_file.c parses the text, key.c sets each key by its row, job_read.c
 * fills in what follows from other keys, job_check.c checks what concerns several keys. */
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
    KEY_NUMBERS, /* struct numbers: one, or a list */
    KEY_COUNTS,  /* struct counts: one, or a list */
    KEY_SERIES,  /* struct series: one, or a list */
    KEY_FLAG,    /* bool */
    KEY_CHOICE,  /* an enum whose values number `choices` */
};

/* The most values of a list of numbers. */
#define NUMBERS_MAX 100

/* The limit of a number that has no other limit. */
#define NUMBER_MAX 1e300

struct key {
    const char *name; /* "l2", "csv.label" */
    enum key_type type;
    size_t offset; /* of the field in struct job */
    double least, most;
    uint32_t multiple;   /* the value must be a multiple of this; 0: any */
    uint32_t values_max; /* of KEY_COUNTS and KEY_SERIES: values of a list, at most LIST_MAX */
    const char *word;    /* a word allowed in place of a number or text, or NULL */
    double word_value;   /* the number that the word stands for; for a text it stands for NULL */
    const char *const *choices;     /* of a text: those that can be listed; or NULL */
    bool (*fits)(const char *text); /* for texts and elements of lists; may be NULL */
    const char *allowed;            /* which texts are allowed, for messages */
    bool offers_figures;            /* of a text: a figure (model/score.h), for completion */
    const char *(*suggestion)(
        const char *text);       /* "; did you mean `x`?", or "", of a text that does
                                    not fit; NULL: the words of the type are offered */
    const char *initial;         /* the default as text, or NULL: none */
    const char *initial_network; /* the default for a network; NULL: `initial` */
    bool may_change;             /* a run may go on with another value */
    bool tells;                  /* to give it says more than its value does, if that is the default
                                    (job_gives()) */
    unsigned objectives;         /* 1 << kind of each that the key is for, or 1 <<
                                    TRAINS_NETWORK; 0: all */
    bool downpour;               /* the key is for training on minibatches */
    const char *help;
};

extern const struct key keys[];
extern const size_t keys_count;

/* The key of that name, or NULL. */
const struct key *key_find(const char *name);

/* The length of the section's name in a key such as "csv.label"; 0 for a key outside of sections.
 */
size_t key_section(const struct key *key);

/* The key's name within its section: "label". */
const char *key_own_name(const struct key *key);

/* Whether the key may have several values. */
bool key_is_list(const struct key *key);

/* Whether the key is for the job's objective (for its loss or, if that is a network's, for those)
 * and for how it trains. */
bool key_applies(const struct key *key, const struct job *job);

/* Whether the key has its default. */
bool key_is_default(const struct key *key, const struct job *job);

/* The names of the keys in job_settings() whose value is not the default, in the order of the
 * table. A new reference. */
json_t *key_names_not_default(const json_t *settings);

/* Sets the key to `text`, or appends `text` to the key's list. ERROR_CONFIG; the error's text is
 * "`place`: key `x`: … allowed: …". */
int key_assign(const struct key *key, struct job *job, const char *text, const char *place);

/* Reads a number; false if the text, as a whole, is not a number. */
bool key_number(const char *text, double *value);

/* Empties a text or list: no text, or no elements. Other types stay as they are. */
void key_clear(const struct key *key, struct job *job);

/* Empties a text or list whose place other values take: addresses that differ from them in a secret
 * alone are no contradiction then. */
void key_replace(const struct key *key, struct job *job);

/* Gives the key its default. The job may be zeroed. */
void key_reset(const struct key *key, struct job *job);

/* Frees what the job holds for the key. */
void key_release(const struct key *key, struct job *job);

/* Writes what the key allows, such as "auto, or a whole number from 1 to 200". */
#define KEY_ALLOWED_BYTES 512
void key_allowed(const struct key *key, char text[KEY_ALLOWED_BYTES]);

/* The key's value; null for a text that is not set. A new reference. */
json_t *key_value(const struct key *key, const struct job *job);

/* Writes the value as it stands in a job file; nothing for a text that is not set. */
void key_print(const struct key *key, const struct job *job, FILE *out);

/* Writes a text in quotes, of which a job file gives the same text. */
void key_print_text(const char *text, FILE *out);

/* Prints every key with its meaning, what is allowed, and its default. */
void key_print_help(FILE *out);

/* ---- from a text to a checked job ---- */

/* Sets the keys that the job's file, or one KEY=VALUE of --set, gives. ERROR_CONFIG; ERROR_USAGE of
 * a setting. */
int job_file_read(struct job *job);
int job_file_set(struct job *job, const char *setting);

/* Makes of a text what libconfuse reads rightly, in place: comments (from # or // to the end of the
 * line, and between slash-star and star-slash) become blanks, and the plus of numbers such as 1e+6
 * becomes 0. ERROR_CONFIG, with `file` and line, for a quote, comment or { that is not closed, for
 * a * outside of quotes, and for text outside of comments that is not UTF-8. */
int job_text_prepare(char *text, const char *file);

/* Checks what concerns several keys: ERROR_CONFIG with the key and what is allowed. */
int job_check(const struct job *job);

/* Warns of keys and sections that have no effect, because of other keys. */
void job_warn_of_unused(const struct job *job);

#endif

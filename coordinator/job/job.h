/* The job file, read and checked against the table of keys (coordinator/job/key.h). Syntax by
 * libconfuse. */
#ifndef DML_COORDINATOR_JOB_JOB_H
#define DML_COORDINATOR_JOB_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data/source/paths.h"
#include "data/source/source.h"
#include "model/response.h"
#include "numeric/vector.h"
#include "objective/shape.h"

/* What to do with features of the live model that the data no longer has. */
enum vanished { VANISHED_DROP, VANISHED_KEEP };

/* A number, or a list of them: the values of a path. */
struct numbers {
    double value;   /* the one in force: the first of the list, or the one that is being trained
                       with */
    double *all;    /* as given, from large to small, each once; owned */
    uint32_t count; /* of `all`: more than one is a list */
    bool automatic; /* a word stands for a number that follows from the data: there are no others,
                       and `value` is NaN until the data is known */
};

/* The most that l2 and l1 may be. All weights are 0 long before this value. With larger values a
 * step that no longer moves the weights no longer moves the intercept either. */
#define PENALTY_MAX 1e20

/* A list of whole numbers in the order as given, or one. The same of numbers. */
#define LIST_MAX 100
struct counts {
    uint32_t count, value[LIST_MAX];
};
struct series {
    uint32_t count;
    double value[LIST_MAX];
};

/* Training on minibatches with Adagrad (Downpour). Of a list by epoch, the last value holds for all
 * later epochs. */
struct job_downpour {
    uint32_t epochs;
    uint32_t batch;         /* rows of a minibatch: a multiple of DOWNPOUR_BATCH_MIN; 0: auto */
    struct counts schedule; /* by epoch: times `batch` */
    struct series rate;     /* by epoch */
    uint64_t seed;          /* of the order of the rows */
};

/* What `objective` says besides the losses. */
#define TRAINS_NETWORK OBJECTIVES
#define TRAINS_PLUGIN (OBJECTIVES + 1)

/* An objective of the user's own. */
struct job_plugin {
    char *library; /* as written, or NULL */
    char *options; /* or NULL */
    char *sha256;  /* of the library: as the job has it, else as it was found; NULL: not yet */
    double seconds;
    uint64_t seed; /* of the start */

    /* Found when the job was read: */
    char *path, *program; /* of the library, from the root; and of dml-replica */
    struct plugin_description description;
};

#define DIRECTIONS_AUTO UINT32_MAX /* 0 is a number of directions */
#define STRIP_COLUMNS_AUTO UINT32_MAX

/* A job file after reading and checking. The job owns its strings and lists. Paths are relative to
 * the job file's folder. 0 means "auto" for history, replicas, shards, threads and portion_chunks.
 */
struct job {
    char *file;   /* as typed */
    char *folder; /* of the job file */
    char *name;
    char *state;
    char **data;                 /* patterns as written, NULL-terminated */
    char **test;                 /* patterns of test data, as those of `data`; may be empty */
    char **weights;              /* patterns of files of weights: of the rows of `data`, */
    char **test_weights;         /* of `test` */
    char **holdout_weights;      /* and of the holdout's files */
    char **offsets, **exposures; /* patterns of files of offsets and of exposures of `data`, */
    char **test_offsets, **test_exposures;
    char **holdout_offsets, **holdout_exposures;
    char **labels;         /* patterns of files of labels of the rows of arrays: of `data`, */
    char **test_labels;    /* of `test` */
    char **holdout_labels; /* and of the holdout's files */
    char **class_weight;   /* as in struct set_options; may be empty */
    uint32_t category_least, bins; /* as in struct set_options, */
    char **cross;                  /* as in struct set_options; may be empty */
    uint32_t cross_least;          /* as in struct set_options */
    enum text_values text_values;  /* as in struct set_options */
    uint32_t strip_columns;        /* of data in tiles; 0: never; or STRIP_COLUMNS_AUTO */
    struct source_options source;  /* points into this job */
    char *positive;                /* or NULL */
    char *separator;               /* of lists of labels: one character */
    char **order;                  /* of ordered classes, as in struct set_options; may be empty */
    int trains;                    /* `objective`: a loss's kind, or TRAINS_… */
    enum objective_kind objective; /* the loss: of a network, that of its outputs; or the row of a
                                      plug-in */
    struct counts layers;          /* units of each hidden layer of a network */
    struct network network;        /* but for the layers: job_shape() adds them */
    enum objective_kind network_loss;
    struct job_plugin plugin;
    struct loss_parameters loss[OBJECTIVE_KINDS]; /* of every loss, by its kind */
    struct numbers l2, l1;
    char **penalty;  /* rules of columns (job/column_rules.h); may be empty */
    char **bounds;   /* rules of columns for bounds; may be empty */
    char **monotone; /* as in struct set_options; may be empty */
    bool intercept;
    bool standardise; /* columns are shifted and scaled, and regularised so */
    uint32_t history;
    enum history_type history_type;
    uint32_t directions; /* of the window of common directions; or DIRECTIONS_AUTO */
    enum job_precondition {
        PRECONDITION_AUTO,
        PRECONDITION_OFF,
        PRECONDITION_BLOCK,
        PRECONDITION_DIAGONAL,
        PRECONDITION_KRONECKER,
    } precondition;
    uint32_t precondition_block; /* most parameters in the dense block */
    enum job_summary { JOB_SUMMARY_NONE, JOB_SUMMARY_MODEL, JOB_SUMMARY_ROBUST } summary;
    char **summary_columns; /* names or patterns; empty: all, by the inverse of a matrix */
    enum job_optimizer { JOB_LBFGS, JOB_DOWNPOUR } optimizer;
    enum job_start { JOB_START_ZERO, JOB_START_DOWNPOUR } start; /* what comes before L-BFGS */
    struct job_downpour downpour;
    double gradient_tolerance;
    double loss_tolerance;
    double gap_tolerance; /* a share of the loss */
    uint64_t max_steps;
    double max_seconds; /* infinity: unlimited */
    uint32_t replicas, shards, threads;
    uint32_t portion_chunks; /* chunks handed out at a time; 0: adapts */
    double checkpoint_seconds;
    uint32_t reconnect_seconds;
    uint32_t flush_ms;
    char *device;           /* as device/find.h reads it; NULL: auto */
    char *scratch;          /* an absolute path, or NULL */
    char **shard_addresses; /* NULL-terminated; empty: started here */
    char **replica_addresses;
    char **hosts; /* NULL-terminated; empty or "local": workers are started here */
    char *launch; /* the command that starts a worker on a host; or NULL */
    bool backup_copies;
    char **holdout; /* a share of the rows as one text, or patterns; may be empty */
    uint32_t folds; /* of the cross-validation; 0: none */
    uint64_t seed;  /* of the assignment of rows to folds */
    enum job_choose { JOB_CHOOSE_BEST, JOB_CHOOSE_ONE_SE } choose; /* among several values */
    char *choose_by;         /* the name of a figure with a direction (model/score.h) */
    uint32_t early_stopping; /* steps without a better loss on the holdout; 0: off */
    char *threshold;         /* as threshold_parse() reads it */
    double false_positive, false_negative; /* what these cost */
    enum calibration_method calibrate;
    bool prior_correction; /* of probabilities, for class_weight */
    bool warm_start;
    enum vanished vanished;
    char **gate; /* conditions as written, NULL-terminated; may be empty */
    enum job_publish { JOB_PUBLISH_AUTO, JOB_PUBLISH_ALWAYS, JOB_PUBLISH_NEVER } publish;
    uint32_t keep_models;
    uint32_t keep_sets;
    char *on_publish; /* or NULL */
    char *http;       /* or NULL */
    bool *given;      /* [keys_count]: whether the job sets the key */
};

/* Reads and checks a job file. `settings` are the KEY=VALUE of --set: they replace what the file
 * says. `state` is the folder of --state, or NULL. ERROR_CONFIG, ERROR_USAGE for a bad --set; the
 * text names file, line, key and what is allowed. */
int job_read(const char *path, const char *const *settings, uint32_t settings_count,
             const char *state, struct job **job);

/* The state folder of a job, which is read and checked no further than that needs: a plug-in is not
 * looked at. Free it. */
int job_read_state(const char *path, const char *const *settings, uint32_t settings_count,
                   const char *state, char **folder);

/* "; did you mean `DIR/x.conf`?", or "", of a path where there is nothing: a job file (`or_state`:
 * or a state folder) of the same folder whose name is similar, or is this one with its ending.
 * Valid until the next call. */
const char *job_suggestion(const char *path, bool or_state);

/* Checks a job whose data is no CSV: ERROR_CONFIG if it takes a number of the rows from a
 * column. */
int job_check_columns(const struct job *job);

/* Whether the rows of the data have such a number of their own. */
bool job_has(const struct job *job, enum row_property property);

/* Warns of the keys about CSV that a job sets; its data has another format, of this name. */
void job_warn_of_csv(const struct job *job, const char *format);

void job_free(struct job *job);

/* Makes the error that is set one of this key: FILE: key `KEY`: …. Returns the code. */
int job_refuse_key(const struct job *job, const char *key, int code);

/* What data is read for without a job file: to propose a job, of which files beside the data are no
 * part, or, by a model, to score it, where how columns become features is settled. Weights and
 * labels beside it are for figures alone. */
enum reading_for { READING_FOR_JOB, READING_FOR_SCORING, READING_FOR_EVALUATION };

/* Applies settings, the KEY=VALUE of --set, to reading options. The strings of `options` must be on
 * the heap. ERROR_USAGE also for a key that is not about such reading. The keys of files beside the
 * data are allowed, too: `beside` becomes their patterns, whatever is returned; release it. */
int job_set_reading(const char *const *settings, uint32_t count, enum reading_for use,
                    struct source_options *options, struct source_beside *beside);

/* Writes, as lines of a job file, what settings say of reading `options`: the keys of one section,
 * "" for those outside of all, without those that `but` names, which ends with NULL. */
void job_print_reading(const char *const *settings, uint32_t count,
                       const struct source_options *options, const char *section,
                       const char *const *but, FILE *out);

/* Whether the errors of all estimates are found, by a matrix that preconditions the run, too. */
static inline bool job_inverts(const struct job *job) {
    return job->summary && !job->summary_columns[0];
}

/* Whether minibatches are trained on, before L-BFGS or in its place. */
static inline bool job_has_minibatches(const struct job *job) {
    return job->optimizer == JOB_DOWNPOUR || job->start == JOB_START_DOWNPOUR;
}

/* Whether steps are in units of the columns (job/scaling.h): of linear models that only minibatches
 * train. In such coordinates l2 is as uneven as the units are, so L-BFGS would take many steps. */
bool job_has_units(const struct job *job);

/* The steps that an epoch is to have by smaller minibatches; 0 where their size is given, or where
 * more than a linear model is trained. */
uint32_t job_steps_least(const struct job *job);

/* The rows of a minibatch, of which steps_least may make fewer. */
uint32_t job_batch_most(const struct job *job);

/* The share of the rows that is held out by hash, in (0, 1); 0: no share was set. */
double job_holdout_share(const struct job *job);

/* The patterns of the holdout's files, NULL-terminated; empty if the holdout is no files. */
char *const *job_holdout_paths(const struct job *job);

/* Whether the job trains several models to choose one of them: for a list of values, or folds. */
bool job_has_sweep(const struct job *job);

/* The values that l1 and l2 have together: each of l1 with each of l2, from strong to weak by l1,
 * then by l2. One if neither has a list. */
#define GRID_MAX 1000
uint32_t job_grid_size(const struct job *job);
uint32_t job_grid_inner(const struct job *job); /* how many of them have the same l1 */

/* Puts the value in place of the lists, from which it is numbered; an automatic l2 stays, as it
 * follows from the rows. The lists are copied before, and put back after. */
struct job_grid_lists {
    struct numbers l1, l2;
    double value[2];
};
void job_grid_enter(struct job *job, uint32_t value, struct job_grid_lists *lists);
void job_grid_leave(struct job *job, const struct job_grid_lists *lists);

/* "l1 = 0.1, l2 = auto": of the keys that have a list, or of l2. Free it. */
char *job_grid_words(const struct job *job, uint32_t value);

/* What is made of the model's margins, but for what the data says. */
struct response_wanted job_response(const struct job *job);

/* Whether a KEY=VALUE of --set sets a key that a finished model can be given without training, as
 * it changes which class is predicted and no parameter: threshold and cost.*. */
bool job_sets_threshold(const char *setting);

/* Whether a KEY=VALUE sets a key that decides what a run trains, or what is made of its margins,
 * but for those of job_sets_threshold(). */
bool job_sets_model(const char *setting);

/* Puts such keys into `stored`, the settings of a run (job_settings()). The rule is wanted of a
 * model that is calibrated or not as it is: `wanted` asks for no calibration, and refers to
 * `stored`. ERROR_USAGE for values that are not allowed, or that the run has no holdout for. */
int job_set_threshold(const char *const *settings, uint32_t count, json_t *stored,
                      struct response_wanted *wanted);

/* Sets the value of an l2 that is automatic, from the sum of the weights of the rows that are
 * trained on, and from the second derivative that the loss has about (objective_typical_second()):
 * second/Σ weights. What is minimised is then Σ weight·loss + ½·second·|w|², except for a factor.
 * So the penalty is as strong in whatever unit the labels are. */
void job_complete_l2(struct job *job, double weight_total, double second);

/* The settings in effect: every key with its value, and `auto` as it is, whatever it became: so
 * they, and the identity, are those of the job on any data. A new reference. */
json_t *job_settings(const struct job *job);

/* Whether the job sets a key itself, be it to its default. */
bool job_gives(const struct job *job, const char *key);

/* Prints the settings, aligned, as a job file that gives the same job. For `check`. Keys that the
 * job leaves, and that say something if they are given, are comments. */
void job_print(const struct job *job);

/* A hash, as hexadecimal text, over the settings that a run may not change when it goes on: all but
 * limits, tolerances, replicas, threads, timings, http and the like. Free it. */
char *job_identity(const struct job *job);

/* The first key whose value differs from that stored for an earlier run, if the run may not go on
 * with another value; NULL if the run may go on. A constant. */
const char *job_first_difference(const struct job *job, const json_t *stored_settings);

#endif

/* One run from data to model: what it holds, and its stages. */
#ifndef DML_COORDINATOR_RUN_TRAINING_H
#define DML_COORDINATOR_RUN_TRAINING_H

#include "base/clock.h"
#include "coordinator/job/job.h"
#include "coordinator/job/scaling.h"
#include "coordinator/job/sizing.h"
#include "coordinator/run/cluster.h"
#include "coordinator/run/curvature.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/kronecker_scaling.h"
#include "coordinator/run/recorder.h"
#include "coordinator/run/session.h"
#include "coordinator/run/start.h"
#include "coordinator/status/metrics.h"
#include "data/set/statistics.h"
#include "coordinator/status/eta.h"
#include "coordinator/status/result.h"
#include "model/collinear.h"
#include "model/model.h"

/* What a run is of a sweep (coordinator/sweep/). */
struct training_member {
    int64_t sweep;        /* 0: it is of none */
    uint32_t number;      /* of the member, from 0 */
    const char *identity; /* of the whole job: the run has this instead of its own */
    bool is_start;        /* other members start from its model */
    bool is_last;         /* of those that this command trains: no other needs its workers */
};

/* Everything that a run holds, in the order in which it is acquired. training_release() mirrors it.
 * A command may train several times in its session. */
struct training {
    struct session *session;
    const char *start_from; /* a new run starts from this model (model_open()); NULL: from zero */
    struct training_member member;
    int64_t started_ns, started_ms;
    struct result_seconds seconds;
    const struct dataset *data; /* the caller's, from training_run() to training_release() */
    struct set *set; /* to train on: that of `data`, or the one that the run began with */
    struct objective_shape shape;
    uint8_t *extra_bits; /* of a summary, as in struct coordinator_settings; owned */
    int16_t *exponents;  /* of a network, as in struct coordinator_settings; owned */
    struct layout parameters;
    struct model_plugin plugin; /* of a plug-in, as are the next: ids and names of features in */
    uint64_t *plugin_ids;       /* the order that it sees them in; owned */
    double *plugin_idf;         /* the idf of the plug-in's features; owned */
    uint32_t *plugin_order;
    const char **plugin_names;
    struct preconditioner_settings preconditioner;
    struct moments moments;    /* of the columns, once they were needed */
    struct column_rules rules; /* what the job says of single columns */
    struct scaling scaling;
    struct sizing sizing;
    struct memory_need need;
    double bias_scale; /* of H₀, see sizing_bias_scale() */
    char uuid[37];
    char name[64]; /* that the workers know it by */
    struct recorder recorder;
    bool resumed;
    bool interrupted;      /* resumed, and its coordinator was lost: its workers may still live */
    bool retrains;         /* `retrain` began it, whoever goes on with it */
    double seconds_before; /* that earlier coordinators spent on this run */
    struct store_saved saved;
    char *shards_folder; /* checkpoints, and where it starts; owned */
    uint32_t pairs_kept; /* curvature pairs that go with the model, at most */
    struct start start;  /* parameters are NULL: at zero */
    struct kronecker_scaling kronecker;
    char *start_model; /* the hash of what it started from, "" if from zero; owned */
    int64_t start_run; /* whose model that is; 0: not known */
    int64_t continues; /* the run from whose end it goes on; 0: it began anew */
    bool prepares;     /* it is new for certain, and some of its workers were started already */
    char *set_path;    /* from the root, for replicas of other hosts; or NULL; owned */
    char *state;       /* that of the state folder, likewise */
    struct {
        bool any;               /* some are listed by names */
        uint32_t fixed;         /* replicas that have addresses of their own */
        uint32_t count;         /* places that an earlier coordinator of the run had */
        char **address;         /* [count]: who was there last, or NULL; owned */
    } places;                   /* of replicas, if their number changes */
    const char **addresses;     /* by link; the texts belong to the job or to `launch` */
    struct launched **launched; /* by link; NULL for a worker that someone else started */
    struct coordinator *coordinator;
    struct cluster *cluster;
    bool cancelled; /* the training was stopped, or could not begin: there is no model */
    struct eta eta;
    struct counters counters;
    struct model_layout layout;
    struct response *response; /* the layout's, once it is known; NULL: it has none; owned */
    struct sample sample; /* of the rows, which the model is compared with when it is read back */
    char *model_folder;
    struct score_figures figures;  /* of the model on the holdout, if there is one */
    struct gap_settings estimates; /* how the gap is estimated */
    struct gap gap;                /* at the end */
    struct optimizer_point answer; /* the model, at the end */
    struct collinear *collinear;   /* columns nearly follow from others, and the model is the
                                      optimum that it found; or NULL; owned */
    struct collinear_fit fit;      /* what it found; owned, as is the next */
    double *ridge;                 /* its penalty */
    bool *runs_away; /* estimates without a finite best value, by elements; NULL: none is known;
                        owned */
    double *squares; /* of columns that are not scaled, for the gap; or NULL */
    size_t squares_bytes; /* of them, of memory_map() */
    json_t *result;
    struct loop_work *removal; /* of the checkpoints, or NULL */
};

/* Takes up the run that the store has, or begins a new one; with what it starts from in `start`. A
 * run that goes on keeps its own start, whatever start_from is now: another one begins a new run.
 */
int training_begin(struct training *training);

/* Opens a model that a run is to start from, beside the loop; NULL if `folder` is. As
 * model_open(). */
int training_open_model(struct training *training, const char *folder, struct model **model);

/* Checks what the model will be scored on, starts workers and trains on the set, until the model
 * was read or the run was cancelled. The workers are told to exit then: what follows needs none.
 * Both outlive the training. */
int training_run(struct training *training, const struct dataset *data, struct set *set);

/* Scores the holdout and the test data, puts the model into its folder, makes the result, and ends
 * the run in the store. This does not make the model live (coordinator/publish/publish.h does). For
 * a run without a model it prints the result and returns ERROR_AGAIN if the run was cancelled,
 * ERROR_DATA if it could not begin. */
int training_conclude(struct training *training);

/* Releases everything that belongs to one training; the same struct can train again. Ends the
 * workers, unless another member of a sweep is to be trained by them. `code` is what the run ended
 * with. */
void training_release(struct training *training, int code);

/* The workers of a run: which are started on this machine and when, and which are adopted. */

/* Starts the workers that any run of the job will have, before its data is read: they begin
 * meanwhile. Starts none on hosts, where they would wait in vain, and none if workers of an earlier
 * coordinator may still wait for the next one. training_release() ends them if there comes no run.
 * ERROR_CONFIG, ERROR_UNAVAILABLE, ERROR_CREATE. */
int workers_prepare(struct training *run);

/* Prepares all workers of a run that is certainly new, once its sizes are known: the workers begin
 * while its columns are measured. */
int workers_prepare_all(struct training *run);

/* Starts the workers for which the job gives no addresses, as far as they do not run, and lists the
 * address of each worker; gets the key if one of these may need it. Those that rest from another
 * member of the sweep serve this one. Errors as of launch_start() and key_ensure(). */
int workers_start(struct training *run);

/* How many replicas the run begins with, vacant places included. */
uint32_t workers_replicas(const struct training *run);

/* ---- what follows from the data (shape.c) ---- */

/* Fills in all of it from the run's job and set, and logs the sizes. ERROR_DATA if the model has
 * more parameters than there may be, or early stopping has no holdout; else as of
 * sizing_precondition(), sizing_of() and hosts_look_up(). */
int training_shape(struct training *run);

/* Chooses the scaling of the columns and what depends on it, and measures them for the estimates of
 * the gap and of errors. Reads the data as often as the job asks for. */
int training_measure_columns(struct training *run);

/* Finds the exact moments of the columns unless they are known: run->moments. Errors as of
 * moments_find(). */
int training_find_moments(struct training *run);

/* The squares of the columns, of memory_map() or on disk. */
int training_find_squares(struct training *run);

/* Finds what is made of the model's margins, on the holdout where that takes rows, and gives it to
 * the layout. Beside the loop, when all slices of the model are in. Errors as of score_margins().
 */
int training_find_response(struct training *run);

void training_release_plugin(struct training *run);

/* The settings of Downpour for a run whose start is known. They refer to the job. A run that starts
 * from a model has no Downpour before L-BFGS: its first steps, as long as if nothing was known,
 * would lead away from what the model has learned. Its sums are H0 of L-BFGS where F may not be
 * convex; elsewhere they cost steps (doc/OPTIMIZERS.md). */
struct downpour_settings training_downpour(const struct training *run);

/* Seconds that all coordinators of the run have spent on it, this one included. */
static inline double training_seconds(const struct training *training) {
    return (double)(clock_monotonic_ns() - training->started_ns) / 1e9 + training->seconds_before;
}

#endif

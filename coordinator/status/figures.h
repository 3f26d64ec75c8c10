/* The table of the figures of a run, and the JSON that is made from it: each answer and the result
 * are the figures that the table names for that place, in its order. status/figures.def is the
 * table and says how a figure is added. */
#ifndef DML_COORDINATOR_STATUS_FIGURES_H
#define DML_COORDINATOR_STATUS_FIGURES_H

#include "coordinator/status/live.h"

/* The objects that figures are in. */
enum figure_place {
    IN_STATUS = 1 << 0,          /* of a run with a coordinator */
    IN_EARLY = 1 << 1,           /* of one that has none yet, or no more */
    IN_RESULT = 1 << 2,          /* of a training */
    IN_RECORDED = 1 << 3,        /* the status of a run that is not alive */
    IN_RECORDED_RESULT = 1 << 4, /* the status of a run that is not alive, copied from its result */
    IN_LISTED = 1 << 5,          /* a run in the list of runs */
    IN_LISTED_RESULT = 1 << 6,   /* a run in the list of runs, copied from its result */
    IN_EVALUATION = 1 << 7,      /* the member `evaluation` of a status */
    IN_DOWNPOUR = 1 << 8,        /* the member `downpour` */
    IN_EPOCHS = 1 << 9,          /* the member `downpour` of a run that was lost, from its epochs */
    IN_TENSOR = 1 << 10,         /* one of `tensors` */
    IN_WORKER = 1 << 11,         /* one of `processes` */
    IN_HOST = 1 << 12,           /* one of `hosts` */
    IN_STEP = 1 << 13,           /* one of the list of steps */
    IN_EPOCH = 1 << 14,          /* one of the list of epochs */
    IN_LIVE = IN_STATUS | IN_EARLY,
    IN_STORE = IN_RECORDED | IN_LISTED,
    IN_COPIES = IN_RECORDED_RESULT | IN_LISTED_RESULT,
};

struct result_seconds {
    double total, pack, train;
};

/* How often something was started again, since the run first began. */
struct result_restarts {
    uint64_t coordinator, shard, replica;
};

/* What figures are read from; each needs only some of it. Nothing is owned. */
struct figure_source {
    const struct live *live; /* NULL: of a result */
    const struct job *job;
    int64_t run, started_ms;
    enum objective_kind objective;
    struct network network;
    const struct coordinator *coordinator; /* NULL early; then `view` has the penalties alone */
    const struct coordinator_settings *settings;
    struct coordinator_view view;
    struct optimizer_point point; /* where loss, gradient and norms are of: x, or the answer */
    const struct result_seconds *seconds;
    const struct result_restarts *restarts;
    const json_t *result;           /* NULL: the training has not ended */
    const struct store_run *record; /* of what is recorded or listed */
    int64_t last_ms;                /* when it ended, or was last known to be alive */
    const struct worker_view *worker;
    uint32_t number; /* of the worker's link, or of the tensor */
    const struct store_host *host;
    const struct store_step *step;
    const struct store_epoch *epoch;
};

enum figure_type { FIGURE_COUNT, FIGURE_NUMBER, FIGURE_FLAG, FIGURE_JSON };
enum metric_type { METRIC_NONE, METRIC_GAUGE, METRIC_GAUGE_OR_NAN, METRIC_COUNTER };

struct figure {
    const char *of, *key;
    enum figure_type type;
    const char *unit, *label;
    unsigned places;
    double (*number)(const struct figure_source *source);
    json_t *(*json)(const struct figure_source *source); /* NULL answers: it is left out */
    struct {
        const char *name, *help;
        enum metric_type type;
        bool replicas_only;
    } metric;
};
extern const struct figure figure_table[];
extern const size_t figure_count;

/* What the figures of a live run are read from, with or without a coordinator. */
struct figure_source figures_of_live(const struct live *live);

/* An object of the figures of a place. A new reference. */
json_t *figures_json(enum figure_place place, const struct figure_source *source);

/* Adds the figures of a place, IN_RECORDED_RESULT or IN_LISTED_RESULT, as the result of a run has
 * them; null where it has none, or is NULL. */
void figures_add_result(json_t *object, enum figure_place place, const json_t *result);

/* [[count, state, replica], …] over the chunks of the running evaluation in order; chunks side by
 * side with the same state and replica, as in struct chunk_view, are one entry. */
json_t *chunks_json(const struct coordinator *coordinator);

/* The tensors of the parameters, if their norms are measured, else an empty list. The norms, |x_t|
 * and |∂F_t|, are null before the first evaluation. */
json_t *tensors_json(const struct figure_source *source);

/* What the rows weigh, and where that comes from: {sum, column, files, classes}; null if all weigh
 * 1. */
json_t *weights_json(const struct set_info *data, const struct job *job);

/* What the offsets of training rows are like: {least, mean, most}; null if no row has one. */
json_t *row_offsets_json(const struct set_info *data);

/* A list of all; empty if `hosts` is NULL. */
json_t *hosts_json(const struct hosts *hosts);

/* The text, or null for "" and NULL. */
json_t *text_or_null(const char *text);

#endif

/* dml/objective.h: an objective of one's own. See dml-objective(3).
 *
 * A plug-in is a shared library that exports one object, `dml_objective`: its name, and functions
 * for the tensors of its parameters, for loss and gradient over a chunk of rows, and for
 * predictions. A job uses it with
 *
 *     objective = plugin
 *     plugin { library = "./mine.so", options = "..." }
 *
 * Where it runs. Each thread of a replica that computes has a process of its own with the library
 * in it, and so has what predicts. No function is called by two threads of one process at once, so
 * nothing has to be safe for threads. A crash ends that process alone and is reported by name, and
 * so is a write beyond an array, or a process that a function forks and does not wait for.
 *
 * What it must be: a function of its arguments alone. The same rows at the same parameters give the
 * same bits, in every process, whatever was computed before: no clock, no random numbers without a
 * fixed seed, no threads whose sums end in another order, nothing kept from one call to the next
 * but memory to work in. For the same bits on all machines build with -ffp-contract=off and without
 * -ffast-math and -march=native, and mind that exp(), log() and the like of libm may differ in
 * their last bits between versions of the system.
 *
 * The header needs nothing else and may be copied. It is C, and C++. */
#ifndef DML_OBJECTIVE_H
#define DML_OBJECTIVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a library built with an older header would be called wrongly. */
#define DML_OBJECTIVE_VERSION 1

#define DML_TENSORS_MAX 32     /* tensors of a model */
#define DML_TENSOR_NAME_MAX 23 /* letters of a tensor's name */
#define DML_ERROR_BYTES 512    /* room for the text of an error, with the 0 at its end */

/* What labels are. */
enum dml_labels {
    DML_LABELS_TARGET = 1, /* any number */
    DML_LABELS_BINARY,     /* 0 or 1; 1 is the larger of the two labels, or csv.positive */
    DML_LABELS_CLASSES     /* 0, 1, ..., classes - 1: the labels of the data in order */
};

/* What predict() writes, and so what is printed and which figures are reported. `K` numbers a row:
 * one a class for DML_LABELS_CLASSES, else one. */
enum dml_prediction {
    DML_PREDICTS_VALUE = 1, /* of targets: the predicted number. RMSE, MAE, R2 */
    DML_PREDICTS_SCORE,     /* of classes: the larger, the likelier; of two, 1 is predicted above 0.
                               Accuracy, AUC, precision and recall */
    DML_PREDICTS_MARGIN /* of classes: as a score, and the logistic function of the one number, or
                           the softmax of several, is the probability. The loss must be minus
                           the logarithm of the probability of the label. Also log loss, Brier */
};

/* How a tensor starts. */
enum dml_start {
    DML_START_ZERO = 0,
    DML_START_UNIFORM, /* evenly in [-bound, bound): numbers that `network.seed` chooses */
    DML_START_CONSTANT /* `bound` everywhere */
};

/* What the library made of the options. */
struct dml_form {
    int32_t labels;     /* enum dml_labels */
    int32_t prediction; /* enum dml_prediction */
};

/* The data that a model is trained on. */
struct dml_data {
    uint32_t features; /* columns: 0 ... features - 1. The order is that of the ids in the data */
    uint32_t outputs;  /* K: the classes of DML_LABELS_CLASSES, else 1 */
};

/* A part of the parameters: a matrix, row by row. All tensors, one after the other as tensors()
 * lists them, are the vector of parameters, and that of the gradient. */
struct dml_tensor {
    char name[DML_TENSOR_NAME_MAX + 1]; /* letters, digits and _ */
    uint64_t rows, columns;
    int32_t by_feature;  /* not 0: row j belongs to column j of the data. A run that starts from an
                            earlier model then finds the rows of features by the features' ids,
                            although the data has got new ones; those start at 0 */
    int32_t regularised; /* not 0: l2 and l1 act on it. dml adds them to loss and gradient */
    int32_t start;       /* enum dml_start */
    int32_t unused;      /* 0 */
    double bound;        /* of the start */
};

/* Rows of the data. Of dense rows, row i has value[i * features + j] in column j. Of sparse rows it
 * has the values `start[i]` to `start[i + 1] - 1`: value[v] in column column[v], columns rising;
 * the others are 0. Rows of weight 0 are left out. A function must take both: predict() gets sparse
 * rows also where the model was trained on dense ones. */
struct dml_rows {
    uint32_t count;
    uint32_t features;
    const uint64_t *start;  /* sparse: count + 1; NULL: the rows are dense */
    const uint32_t *column; /* sparse: a value each */
    const double *value;
    const double *label;  /* count; of predict(): NULL */
    const double *weight; /* count; above 0 and finite; of predict(): NULL */
};

/* Functions answer 0, or another number after writing a text into `error` that says what is wrong.
 * The text is shown to the user. */
struct dml_objective {
    /* DML_OBJECTIVE_HEAD: so that a library built with another header is refused and not called. */
    uint32_t version;
    uint32_t objective_bytes, form_bytes, data_bytes, tensor_bytes, rows_bytes;

    const char *name; /* for messages and the model */

    /* Called once, before all else. Reads the options of the job ("" if there are none), says what
     * it is in *form, and may leave what it wants to find again in *state. Options that it does not
     * know should be errors. */
    int (*open)(const char *options, struct dml_form *form, void **state,
                char error[DML_ERROR_BYTES]);

    /* The tensors of a model of this data: their number is left in *count. It must not depend on
     * anything else. */
    int (*tensors)(void *state, const struct dml_data *data,
                   struct dml_tensor tensors[DML_TENSORS_MAX], uint32_t *count,
                   char error[DML_ERROR_BYTES]);

    /* Loss and gradient. Writes the loss of each row to loss[i], without its weight; and into
     * `gradient` the derivatives by all parameters of the sum of weight[i] * loss[i]. `gradient` is
     * zero before, and is NULL if only losses are asked for. Neither has a part of l2 or l1.
     *
     * Too far out, where a loss is no number or too large, loss[i] may be an infinity or NaN: the
     * line search then takes a shorter step. At the start that is an error. A gradient that is not
     * finite, with losses that are, is always one; and so is a loss of -infinity. */
    int (*chunk)(void *state, const struct dml_data *data, const struct dml_rows *rows,
                 const double *parameters, double *loss, double *gradient,
                 char error[DML_ERROR_BYTES]);

    /* Predictions: K numbers a row into prediction[i * K + k]. */
    int (*predict)(void *state, const struct dml_data *data, const struct dml_rows *rows,
                   const double *parameters, double *prediction, char error[DML_ERROR_BYTES]);
};

#define DML_OBJECTIVE_HEAD                                                                         \
    DML_OBJECTIVE_VERSION, sizeof(struct dml_objective), sizeof(struct dml_form),                  \
        sizeof(struct dml_data), sizeof(struct dml_tensor), sizeof(struct dml_rows)

/* What the library defines:
 *
 *     const struct dml_objective dml_objective = {DML_OBJECTIVE_HEAD, "mine", mine_open,
 *                                                 mine_tensors, mine_chunk, mine_predict}; */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const struct dml_objective dml_objective;

#ifdef __cplusplus
}
#endif

#endif

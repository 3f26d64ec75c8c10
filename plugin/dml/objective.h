/* dml/objective.h: a user's own objective. See dml-objective(3).
 *
 * A plug-in is a shared library that exports one object, `dml_objective`: its name, and functions
 * for the tensors of its parameters, for loss and gradient over a chunk of rows, and for
 * predictions. A job uses it with
 *
 *     objective = plugin
 *     plugin { library = "./mine.so", options = "..." }
 *
 * Where it runs. Each computing thread of a replica has a separate process with the library, and so
 * has prediction. A process never calls two functions at once, so functions need not be safe for
 * threads. A crash ends only that process, and is reported with the library's name. So are a write
 * beyond an array, and a forked process that a function does not wait for.
 *
 * What it must be: a function of its arguments alone. The same rows with the same parameters must
 * give the same bits in every process, whatever was computed before. So a library must not use the
 * clock, random numbers without a fixed seed, or sums whose order depends on threads, and must keep
 * nothing from one call to the next except working memory. For the same bits on all machines build
 * with -ffp-contract=off and without -ffast-math and -march=native. The last bits of exp(), log()
 * and similar functions of libm may differ between versions of the system.
 *
 * The header needs no other header of dml and may be copied. It is valid C and C++. */
#ifndef DML_OBJECTIVE_H
#define DML_OBJECTIVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a library that was built with an older header could not be called correctly. */
#define DML_OBJECTIVE_VERSION 1

#define DML_TENSORS_MAX 32     /* tensors of a model */
#define DML_TENSOR_NAME_MAX 23 /* letters of a tensor's name */
#define DML_ERROR_BYTES 512    /* room for an error message and the 0 at its end */

/* What labels are. */
enum dml_labels {
    DML_LABELS_TARGET = 1, /* any number */
    DML_LABELS_BINARY,     /* 0 or 1; 1 is the larger of the two labels, or csv.positive */
    DML_LABELS_CLASSES     /* 0, 1, ..., classes - 1: the labels of the data in order */
};

/* What predict() writes, and so what is printed and which figures are reported. It writes K numbers
 * for each row: one for each class with DML_LABELS_CLASSES, else one. */
enum dml_prediction {
    DML_PREDICTS_VALUE = 1, /* for targets: the predicted number. Figures: RMSE, MAE, R2 */
    DML_PREDICTS_SCORE,     /* for classes: a class with a larger number is likelier; for two
                               classes, 1 is predicted if the number is above 0. Figures: accuracy,
                               AUC, precision and recall */
    DML_PREDICTS_MARGIN /* for classes: a score of which the logistic function (of one number) or
                           the softmax (of several) is the probability. The loss must be minus
                           the logarithm of the label's probability. Also log loss, Brier score */
};

/* The start values of a tensor. */
enum dml_start {
    DML_START_ZERO = 0,
    DML_START_UNIFORM, /* uniform in [-bound, bound), by the seed plugin.seed */
    DML_START_CONSTANT /* `bound` everywhere */
};

/* What open() finds in the options. */
struct dml_form {
    int32_t labels;     /* enum dml_labels */
    int32_t prediction; /* enum dml_prediction */
};

/* The data that a model is trained on. */
struct dml_data {
    uint32_t features; /* columns: 0 ... features - 1. The order is that of the ids in the data */
    uint32_t outputs;  /* K: the classes of DML_LABELS_CLASSES, else 1 */
};

/* A part of the parameters: a matrix, row by row. All tensors, in the order of tensors(), are the
 * vector of parameters, and that of the gradient. */
struct dml_tensor {
    char name[DML_TENSOR_NAME_MAX + 1]; /* letters, digits and _ */
    uint64_t rows, columns;
    int32_t by_feature;  /* not 0: row j belongs to column j of the data. A run that starts from an
                            earlier model then finds these rows by the ids of their features, also
                            if the data has new features; the rows of those start at 0 */
    int32_t regularised; /* not 0: l2 and l1 act on it. dml adds them to loss and gradient */
    int32_t start;       /* enum dml_start */
    int32_t unused;      /* 0 */
    double bound;        /* of the start */
};

/* Rows of the data. Dense: row i has value[i * features + j] in column j. Sparse: row i has the
 * values v from start[i] to start[i + 1] - 1, value[v] in column column[v], with rising columns;
 * its other columns are 0. Rows of weight 0 are left out. A library must accept both forms:
 * predict() gets sparse rows even if the training data was dense. */
struct dml_rows {
    uint32_t count;
    uint32_t features;
    const uint64_t *start;  /* sparse: count + 1; NULL: the rows are dense */
    const uint32_t *column; /* sparse: one for each value */
    const double *value;
    const double *label;  /* count; for predict(): NULL */
    const double *weight; /* count; above 0 and finite; for predict(): NULL */
};

/* Every function returns 0, or another number after it has written an error message into `error`.
 * The message is shown to the user. */
struct dml_objective {
    /* DML_OBJECTIVE_HEAD, by which a library that was built with another header is refused. */
    uint32_t version;
    uint32_t objective_bytes, form_bytes, data_bytes, tensor_bytes, rows_bytes;

    const char *name; /* for messages and the model */

    /* Called once, before all other functions. Reads the options of the job ("" if there are none),
     * sets *form, and may set *state, which is passed to every other function. Unknown options
     * should be errors. */
    int (*open)(const char *options, struct dml_form *form, void **state,
                char error[DML_ERROR_BYTES]);

    /* Lists the tensors of a model for this data, and sets their number in *count. They may depend
     * only on the data and the options. */
    int (*tensors)(void *state, const struct dml_data *data,
                   struct dml_tensor tensors[DML_TENSORS_MAX], uint32_t *count,
                   char error[DML_ERROR_BYTES]);

    /* Loss and gradient. Writes the loss of each row i, without its weight, to loss[i], and adds
     * the gradient of the sum of weight[i] * loss[i] to `gradient`, which is zero before the call,
     * and NULL if only losses are needed. Neither includes l1 and l2, which dml adds.
     *
     * A loss may be +infinity or NaN, because a trial step may go too far: dml then takes a shorter
     * one. At the start of a training it is an error. A loss of -infinity is always an error, and
     * so is a gradient that is not finite while the losses are. */
    int (*chunk)(void *state, const struct dml_data *data, const struct dml_rows *rows,
                 const double *parameters, double *loss, double *gradient,
                 char error[DML_ERROR_BYTES]);

    /* Writes the K predictions of each row i into prediction[i * K + k]. */
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

/* libdml: scores rows with the models of dml. dml-model(3) explains this header with examples.
 *
 *     struct dml_model *model;
 *     struct dml_scorer *scorer;
 *     const char *const names[] = {"age", "workclass"};
 *     if (dml_model_open("adult.state", &model) ||
 *         dml_scorer_of_columns(model, 2, names, 0, &scorer))
 *         errx(1, "%s", dml_error_text());
 *     const char *const texts[] = {NULL, "State-gov"};
 *     const double numbers[] = {39, 0};
 *     double probability;
 *     if (dml_score(scorer, &(struct dml_rows){.count = 1, .texts = texts, .numbers = numbers},
 *                   &(struct dml_scores){.values = &probability}, NULL))
 *         errx(1, "%s", dml_error_text());
 *
 * Scores equal those that `dml-coordinator predict` prints, to the last bit. An open model never
 * changes: any number of threads may use it at once, each with its own scorer. The only state of
 * the library is the text of each thread's last error. It starts no threads and no processes,
 * handles no signals, writes nothing anywhere, and never ends the process. */
#ifndef DML_MODEL_H
#define DML_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DML_API __attribute__((visibility("default")))

/* ---- errors ---- */

/* What functions that can fail return. */
enum dml_status {
    DML_OK = 0,
    DML_USAGE = -64,       /* this model does not support the request */
    DML_DATA = -65,        /* the model, or a row, is invalid */
    DML_UNAVAILABLE = -69, /* not enough memory; or the model is that of a plug-in */
    DML_INTERNAL = -70,    /* a defect of the library */
    DML_IO = -74,          /* the files cannot be read */
    DML_PERMISSION = -77
};

/* Says of this thread's last call that failed what went wrong, where, and what to do. Valid until
 * the thread's next call. */
DML_API const char *dml_error_text(void);

/* The version of the library, "0.1.0". */
DML_API const char *dml_version(void);

/* ---- models ---- */

struct dml_model;

/* Opens the model at `path`: a model's folder, its model.safetensors, or a state folder, which
 * means its live model. The weights are mapped and not copied. Both files are checked completely.
 * Do not write to them in place while the model is open; dml itself never does. */
DML_API int dml_model_open(const char *path, struct dml_model **model);

/* Closes the model. It is unmapped when all its scorers are freed as well, in any order and by any
 * threads. NULL is harmless. */
DML_API void dml_model_close(struct dml_model *model);

/* Pointers that these functions return belong to the model. */

/* All of the following as a JSON object: dml-model(3) lists its members. */
DML_API const char *dml_model_description(const struct dml_model *model);

DML_API int dml_model_format_version(const struct dml_model *model);
DML_API const char *dml_model_objective(const struct dml_model *model); /* "logistic" */
DML_API const char *dml_model_sha256(const struct dml_model *model);    /* of the model */

/* How many numbers of each kind a row gets: see struct dml_scores. */
DML_API size_t dml_model_margins(const struct dml_model *model);
DML_API size_t dml_model_values(const struct dml_model *model);
DML_API size_t dml_model_probabilities(const struct dml_model *model); /* 0: not available */
DML_API size_t dml_model_labels(const struct dml_model *model);        /* 0: not available */

/* The number of classes, 0 if the model predicts numbers, and their names. The second of two
 * classes is the positive one. */
DML_API size_t dml_model_classes(const struct dml_model *model);
DML_API const char *dml_model_class(const struct dml_model *model, size_t number);

/* The least probability at which a class is predicted: the positive one, or, where rows have lists
 * of classes, the class `number`. NaN if the likeliest class is predicted, or there are no classes.
 */
DML_API double dml_model_threshold(const struct dml_model *model, size_t number);

/* The columns that rows of a table must have. 0: the model was not trained on a table, and the
 * values of its rows belong to ids of features. A name is NULL if the table had no header line. */
enum dml_kind { DML_NUMBER, DML_CATEGORY, DML_TEXT, DML_DATE, DML_OFFSET, DML_EXPOSURE };
DML_API size_t dml_model_columns(const struct dml_model *model);
DML_API const char *dml_model_column_name(const struct dml_model *model, size_t number);
DML_API enum dml_kind dml_model_column_kind(const struct dml_model *model, size_t number);

/* The features, by rising id. For a table, the number or text of a column becomes features. */
DML_API size_t dml_model_features(const struct dml_model *model);
DML_API const uint64_t *dml_model_feature_ids(const struct dml_model *model);

/* ---- scorers ---- */

/* A model prepared for rows of one form, and the memory that scoring needs. Only one thread at a
 * time may use a scorer. It keeps the model mapped, even after dml_model_close(). */
struct dml_scorer;

/* Columns of the model that are not among `names` are missing in each row. Without this flag they
 * are an error. */
#define DML_MISSING_COLUMNS 1u

/* For rows of a table with `count` columns of these names, in any order; unknown columns and the
 * label are ignored. names == NULL: the columns are those of the training file, in its order; the
 * label may be left out if it was the last column. DML_USAGE if the model was not trained on a
 * table. */
DML_API int dml_scorer_of_columns(const struct dml_model *model, size_t count,
                                  const char *const *names, unsigned flags,
                                  struct dml_scorer **scorer);

/* For rows of `count` numbers: the values of the features with these ids, in any order. Other
 * features are 0, and unknown ones are ignored. ids == NULL: the ids are 1 … count, and the model
 * must not have larger ones. DML_USAGE if the model was trained on a table. */
DML_API int dml_scorer_of_ids(const struct dml_model *model, size_t count, const uint64_t *ids,
                              struct dml_scorer **scorer);

/* For rows that each have their own ids and values. DML_USAGE if the model was trained on a table.
 */
DML_API int dml_scorer_of_sparse(const struct dml_model *model, struct dml_scorer **scorer);

/* NULL is harmless. */
DML_API void dml_scorer_free(struct dml_scorer *scorer);

/* ---- rows ---- */

/* Rows, one after another, in one of three forms. */
struct dml_rows {
    size_t count;

    /* For a scorer of columns: count × columns. A cell is its text, as in a CSV file but without
     * quotes, or, if the text is NULL, its number. For a column of categories, texts or dates the
     * number can only be NaN. A cell is missing if its number is NaN, or its text is empty or a
     * word for a missing value in the training. texts == NULL: all cells are numbers. numbers ==
     * NULL: all cells are texts, and NULL is missing.
     *
     * For a scorer of ids: count × ids numbers, and no texts. */
    const char *const *texts;
    const double *numbers;

    /* For a scorer of sparse rows: row i has ids[start[i]] … ids[start[i + 1] − 1], all different
     * and in any order, and the values at the same positions. `start` has count + 1 elements, none
     * less than the one before. */
    const size_t *start;
    const uint64_t *ids;
    const double *values;

    /* An offset and an exposure for each row, if the model was trained with a file of them beside
     * the data; else NULL. */
    const double *offsets;
    const double *exposures;
};

/* The arrays into which the scores of all rows are written. NULL: not wanted. */
struct dml_scores {
    /* count × dml_model_margins(): the sums of weights. */
    double *margins;

    /* count × dml_model_values(), as `predict` prints them: the probability of the positive class
     * or of each class, or the value; calibrated if the model is. */
    double *values;

    /* count × dml_model_probabilities(): of each class, also if there are two. */
    double *probabilities;

    /* count × dml_model_labels(), by the model's threshold: the number of the predicted class;
     * where rows have lists of classes, 1 for each predicted class and 0 for the others. */
    int32_t *labels;
};

/* Scores rows. The first invalid row ends the call with DML_DATA: the rows before it have their
 * scores, and *scored, unless `scored` is NULL, is the number of these rows. Numbers must be
 * finite. */
DML_API int dml_score(struct dml_scorer *scorer, const struct dml_rows *rows,
                      const struct dml_scores *scores, size_t *scored);

/* Counts for each column, over the rows of the last dml_score(), the texts or words that did not
 * occur in the training, and the other values. Each array has dml_model_columns() elements, or is
 * NULL. Returns the sum of `unseen`. A column with many unseen and no known values is most likely
 * written in another way than in the training. */
DML_API uint64_t dml_scorer_unseen(const struct dml_scorer *scorer, uint64_t *unseen,
                                   uint64_t *known);

/* ---- explanations ---- */

/* What dml_explain() answers with this scorer. All is the scorer's. */
struct dml_explained {
    /* The columns that contribute: of a table those that the model has features of, each with its
     * levels, bins and words, and then crosses; else each feature. A name is never NULL. */
    size_t columns;
    const char *const *names;

    /* dml_model_margins(): the margins of a row that has the mean of each feature over the training
     * rows. */
    const double *base;
};

/* DML_USAGE if the model cannot be explained. */
DML_API int dml_scorer_explained(struct dml_scorer *scorer, struct dml_explained *explained);

/* What each column contributes to the margins, against the means of the training rows:
 * contributions[count × dml_model_margins() × columns]. They and the base add up to the margin less
 * the row's offset, up to rounding. Those of networks are integrated gradients. Rows are refused as
 * in dml_score(). */
DML_API int dml_explain(struct dml_scorer *scorer, const struct dml_rows *rows,
                        double *contributions, size_t *explained);

#ifdef __cplusplus
}
#endif

#endif

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
 * Numbers are those that `dml-coordinator predict` prints, to the bit. A model never changes once
 * it is open: any number of threads may use it at once, each with a scorer of its own. The library
 * has no state but the text of each thread's last error. It starts no threads and no processes,
 * takes no signals, writes nothing anywhere, and never ends the process. */
#ifndef DML_MODEL_H
#define DML_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DML_API __attribute__((visibility("default")))

/* ---- errors ---- */

/* What a function answers that can fail. */
enum dml_status {
    DML_OK = 0,
    DML_USAGE = -64,       /* what was asked for is not to be had of this model */
    DML_DATA = -65,        /* the model, or a row, is not as it must be */
    DML_UNAVAILABLE = -69, /* memory; or a model that only the program scores: of a plug-in */
    DML_INTERNAL = -70,    /* a defect of the library */
    DML_IO = -74,          /* the files cannot be read */
    DML_PERMISSION = -77
};

/* What went wrong in this thread's last call that failed: what, where, and what to do. Valid until
 * the thread's next call. */
DML_API const char *dml_error_text(void);

/* The version of the library, "0.1.0". */
DML_API const char *dml_version(void);

/* ---- models ---- */

struct dml_model;

/* Opens the model at `path`: a model's folder, its model.safetensors, or a state folder, which
 * stands for the model that is live there. The weights are mapped and not copied. Both files are
 * checked as a whole. They must not be changed in place while the model is open; dml itself never
 * does that, but replaces folders. */
DML_API int dml_model_open(const char *path, struct dml_model **model);

/* Closes the model, which is unmapped when the last of its scorers is freed, too: in any order, and
 * by any thread. NULL is harmless. */
DML_API void dml_model_close(struct dml_model *model);

/* All that follows belongs to the model. */

/* What it is, as a JSON object: dml-model(3) lists its members. */
DML_API const char *dml_model_description(const struct dml_model *model);

DML_API int dml_model_format_version(const struct dml_model *model);
DML_API const char *dml_model_objective(const struct dml_model *model); /* "logistic" */
DML_API const char *dml_model_sha256(const struct dml_model *model);    /* its name */

/* How many numbers a row has of each kind: see struct dml_scores. */
DML_API size_t dml_model_margins(const struct dml_model *model);
DML_API size_t dml_model_values(const struct dml_model *model);
DML_API size_t dml_model_probabilities(const struct dml_model *model); /* 0: it has none */
DML_API size_t dml_model_labels(const struct dml_model *model);        /* 0: it has none */

/* Its classes: 0 of a model that predicts numbers. Of two, the second is the positive one. */
DML_API size_t dml_model_classes(const struct dml_model *model);
DML_API const char *dml_model_class(const struct dml_model *model, size_t number);

/* From which probability on a label is predicted: of the positive class, or of that of a list. NaN
 * where the likeliest class is the label, or there is none. */
DML_API double dml_model_threshold(const struct dml_model *model, size_t number);

/* The columns that rows of a table must have; 0: the model is not of a table, and its rows have
 * values by the ids of features. A name is NULL where the table had no header line. */
enum dml_kind { DML_NUMBER, DML_CATEGORY, DML_TEXT, DML_DATE, DML_OFFSET, DML_EXPOSURE };
DML_API size_t dml_model_columns(const struct dml_model *model);
DML_API const char *dml_model_column_name(const struct dml_model *model, size_t number);
DML_API enum dml_kind dml_model_column_kind(const struct dml_model *model, size_t number);

/* Its features, by rising id; of a table a feature is what a column's number or text became. */
DML_API size_t dml_model_features(const struct dml_model *model);
DML_API const uint64_t *dml_model_feature_ids(const struct dml_model *model);

/* ---- scorers ---- */

/* A model made ready for rows of one form, and the memory that scoring takes: for one thread at a
 * time. It keeps the model open, also after dml_model_close(). */
struct dml_scorer;

/* Columns that are not given are missing in each row; else their lack is an error. */
#define DML_MISSING_COLUMNS 1u

/* For rows of a table with `count` columns of these names, in any order; columns that the model
 * does not know are ignored, and so is the label. names == NULL: the columns are those of the file
 * that was trained on, by their places, and the label's may be left out where it was the last.
 * DML_USAGE if the model is not of a table. */
DML_API int dml_scorer_of_columns(const struct dml_model *model, size_t count,
                                  const char *const *names, unsigned flags,
                                  struct dml_scorer **scorer);

/* For rows of `count` numbers, of the features with these ids, in any order; the values of others
 * are 0, and features that the model does not know are ignored. ids == NULL: they are 1 … count,
 * and the model has none beyond. DML_USAGE if the model is of a table. */
DML_API int dml_scorer_of_ids(const struct dml_model *model, size_t count, const uint64_t *ids,
                              struct dml_scorer **scorer);

/* For rows that have ids and values each. DML_USAGE if the model is of a table. */
DML_API int dml_scorer_of_sparse(const struct dml_model *model, struct dml_scorer **scorer);

/* NULL is harmless. */
DML_API void dml_scorer_free(struct dml_scorer *scorer);

/* ---- rows ---- */

/* Rows, row by row one behind the other, in one of three forms. */
struct dml_rows {
    size_t count;

    /* For a scorer of columns: count × columns. A cell is its text, as a CSV file has it but
     * without quotes; or where that is NULL its number, which of a column of categories, texts or
     * dates can only be NaN. It is missing if the number is NaN, or the text is empty or one of the
     * words that training took for missing. texts == NULL: all are numbers. numbers == NULL: all
     * are texts, and NULL is missing.
     *
     * Of a scorer of ids: count × ids numbers, and no texts. */
    const char *const *texts;
    const double *numbers;

    /* Sparse: row i has ids[start[i]] … ids[start[i + 1] − 1], in any order, but all different, and
     * the values at the same places; `start` has count + 1 elements, which do not fall. */
    const size_t *start;
    const uint64_t *ids;
    const double *values;

    /* An offset, and an exposure, of each row, if the model was trained with a file of them beside
     * the data; else NULL. */
    const double *offsets;
    const double *exposures;
};

/* Where what is found for each row goes; what is NULL is not wanted. */
struct dml_scores {
    /* count × dml_model_margins(): the sums of weights. */
    double *margins;

    /* count × dml_model_values(): what `predict` prints: the probability of the positive class, of
     * each class, or the value, calibrated if the model is. */
    double *values;

    /* count × dml_model_probabilities(): of each class, also of two. */
    double *probabilities;

    /* count × dml_model_labels(): the number of the class that is predicted; where rows have lists
     * of classes, 1 for each class that is predicted, else 0. By the model's threshold. */
    int32_t *labels;
};

/* Scores rows. At the first one that is refused (DML_DATA) it ends: those before it have their
 * scores, and *scored, unless it is NULL, is its number. Numbers must be finite. */
DML_API int dml_score(struct dml_scorer *scorer, const struct dml_rows *rows,
                      const struct dml_scores *scores, size_t *scored);

/* Counts for each column, over the rows of the last dml_score(), the texts or words that training
 * did not have, and the values that it had. Each array has dml_model_columns() elements, or is
 * NULL. Answers the sum of `unseen`. A column of which nothing is known in many rows is most likely
 * written in another way than it was in training. */
DML_API uint64_t dml_scorer_unseen(const struct dml_scorer *scorer, uint64_t *unseen,
                                   uint64_t *known);

#ifdef __cplusplus
}
#endif

#endif

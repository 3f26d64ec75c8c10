/* The statistics of a fit, and the errors of its estimates: STATE/models/RUN/summary.json, which a
 * run writes beside its model if the job asks for it. Format: see doc/FORMATS.md.
 *
 * A linear model with its file's F features, R weights a feature and K biases (none without an
 * intercept) has R·F + K parameters here, in the order of the model's file: weight[r·F + j], j by
 * rising original id, then the biases. So features that an earlier model had, and this run has not,
 * have a place, too. */
#ifndef DML_MODEL_SUMMARY_H
#define DML_MODEL_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/set/statistics.h"
#include "model/fit.h"
#include "model/model.h"

/* The name of the file, and the version of its format. It is raised when an older reader would read
 * a newer file wrongly; files of older versions are read for ever. */
#define MODEL_SUMMARY "summary.json"
#define SUMMARY_FORMAT_VERSION 1

/* What second derivatives over all training rows say of the estimates, in the units of the model's
 * file: parameters as the file has them, labels as the data has them. With w the weights of rows as
 * they were given (that of the row times that of its class), ℓ the loss of a row, g and ℓ'' its
 * derivatives by the margin and x the values of a row, a 1 for the intercept:
 *
 *   H = Σ w·ℓ''·xxᵀ     Λ = l2·Σw on what l2 acts on, else 0     M = Σ (w·g)²·xxᵀ
 *
 * These are sums and no means, for a dispersion of 1. Arrays have `parameters` elements and are the
 * caller's. NaN is an element that is not known, or of an aliased parameter. */
struct summary_covariance {
    uint64_t parameters;    /* R·F + K */
    const double *variance; /* the diagonal of (H+Λ)⁻¹; NULL: none was computed */
    const double *sampling; /* with a penalty, that of (H+Λ)⁻¹H(H+Λ)⁻¹; else NULL */
    const double *robust;   /* that of (H+Λ)⁻¹M(H+Λ)⁻¹ (HC0), or NULL */
    const double *clustered; /* that of (H+Λ)⁻¹M(H+Λ)⁻¹ with M = Σ ssᵀ, s the sum of w·g·x over the
                                rows of a cluster, without a factor for small samples; or NULL */
    const bool *aliased;    /* follows from parameters that were taken before it, intercepts first,
                               so that it has no error; NULL: none does */
    const double *estimate; /* the parameters, restated so that those that are aliased are 0, and
                               the margins of all training rows are the same: with r those that are
                               not aliased, b_r + (H_rr)⁻¹·H_ra·b_a. NULL: as in the file */
    const bool *runs_away;  /* no finite estimate is the best one: single_errors_find(); NULL: all
                               are   finite */
    const uint64_t *elements; /* the parameters, rising, that the first three lists are of, and have
                                 one element each for; NULL: of all */
    uint64_t element_count;   /* 0 without */
    bool uncounted;           /* more may be aliased than are */
    double distance;          /* with `elements`: as struct single_totals has it */
    double trace;             /* of (H+Λ)⁻¹H: effective parameters; NaN: not known */
    bool expected;        /* ℓ'' is its expectation, as R and statsmodels have it for gamma and
                             tweedie, whose link is not the canonical one */
    const char *cluster;  /* the column that clusters are of; NULL without */
    uint64_t clusters;    /* 0 without */
    uint64_t single_rows; /* clusters that have one row */
};

/* The statistics of the fit over the training rows of a set, in two passes or more.
 * `parameters` is the run's vector in the units of the set, which the
 * layout describes; `estimated` as fit_new() has it. ERROR_DATA if a chunk is damaged. */
int summary_fit(struct set *set, const struct model_layout *layout, const double *parameters,
                double estimated, struct fit_statistics *statistics);

/* The parameters of the data, as model_spread() leaves them, become those of a set with centres
 * (data/set/set.h), which is what everything takes that reads rows of the set; and back. */
void summary_to_set(const struct set_info *info, const struct model_layout *layout,
                    double *parameters);
void summary_from_set(const struct set_info *info, const struct model_layout *layout,
                      double *parameters);

/* Marks the last feature of each column of texts or bins that has a value in every row: it follows
 * from the others and the intercept. reference[features]. `nonzero` and `rows` as in struct
 * moments. Only for layouts with a table and an intercept. */
void summary_references(const struct model_layout *layout, const uint64_t *nonzero, uint64_t rows,
                        bool *reference);

/* The column of a table that a feature is a text or a bin of; COLUMN_NOWHERE if it is none. */
uint32_t summary_column_of(const struct model_layout *layout, uint64_t feature);

/* Adds `scale` to a summary: for each feature of the file how large its values are, which tells a
 * huge estimate from one of small values. That is the deviation of a column, or of one that is
 * mostly 0 the root mean square of its other values. `moments` are those of the run's columns. */
void summary_add_scales(const struct moments *moments, uint64_t columns,
                        const struct model_writer *writer, json_t *summary);

/* How many parameters are not aliased, and have a variance if one is known of all. */
uint64_t summary_estimated(const struct summary_covariance *covariance);

/* The place in the order above of element `element` of the run's vector. */
uint64_t model_writer_number(const struct model_writer *writer, uint64_t element);

/* How many parameters the model's file has: those of the run, and of features that are kept. */
uint64_t model_writer_parameters(const struct model_writer *writer);

/* How many features that are, and the place of one of the run's columns among them. */
uint64_t model_writer_features(const struct model_writer *writer);
uint64_t model_writer_place(const struct model_writer *writer, uint64_t column);

/* The object that summary.json holds, without its checksum. `fit` are the statistics of the fit, or
 * NULL; a new reference, as the result. `covariance` may be NULL; then `why` says in words why it
 * is not there, as in "the run has l1". */
json_t *summary_json(const json_t *fit, const struct summary_covariance *covariance,
                     const char *why);

/* Puts summary.json beside the model that is written, with the hash of that model and its own.
 * After all slices are in and before model_writer_publish(). ERROR_CREATE, ERROR_IO. */
int model_writer_summary(struct model_writer *writer, const json_t *summary);

/* Reads the summary of a model. *summary is NULL if it has none. ERROR_DATA if the file is damaged,
 * is of another model, or of a version that this program does not know. */
int summary_read(const struct model *model, json_t **summary);

#endif

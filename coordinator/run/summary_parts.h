/* Inside run/ only: what both ways to errors of estimates and the end of a run share. */
#ifndef DML_COORDINATOR_RUN_SUMMARY_PARTS_H
#define DML_COORDINATOR_RUN_SUMMARY_PARTS_H

#include "coordinator/run/training.h"
#include "model/summary.h"

/* The parameters that the run's writer has, by the run's elements and in the units of the set. Free
 * them. ERROR_INTERNAL unless all slices are in. */
int summary_parameters(const struct training *run, double **parameters);

/* Marks the estimates that run away (model/single_errors.h), by the run's elements, for conjugate
 * gradients of at most `steps`, or of SINGLE_STEPS_MAX if that is 0. `ridge` may be NULL. */
int summary_runaways(const struct training *run, const double *ridge, bool *aliased, uint32_t steps,
                     bool *runs_away);

/* Λ by the run's elements; NULL without a penalty. Columns that the run scaled are penalised as
 * those of the scaled model. Free it. */
double *summary_ridge(const struct training *run);

/* From the run's elements to the order of the model's file; NULL stays NULL. Free it. */
double *summary_numbers_in_order(const struct training *run, const double *numbers);
bool *summary_in_order(const struct training *run, const bool *marked);

/* Estimates in the units of the set, which are shown in place of the parameters where some of them
 * follow from others, become those of the data in the order of the model's file; NULL stays NULL.
 * Free it. */
double *summary_estimates_in_order(const struct training *run, const double *shown);

/* Writes what is known beside the model, with the statistics of the fit. `covariance` may be NULL;
 * then `why` says why. The statistics are those of the estimates that are shown, in the units of
 * the set: where parameters follow from others all but for rounding, the model without them fits a
 * little worse. NULL: the parameters are shown. */
int summary_write(struct training *run, const struct summary_covariance *covariance,
                  const double *shown, const char *why);

/* Finds the errors of the columns that the job names, and writes them. ERROR_DATA, ERROR_CREATE or
 * ERROR_IO. */
int summarise_columns(struct training *run);

#endif

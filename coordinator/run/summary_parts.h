/* Inside run/ only: what both ways to errors of estimates share. */
#ifndef DML_COORDINATOR_RUN_SUMMARY_PARTS_H
#define DML_COORDINATOR_RUN_SUMMARY_PARTS_H

#include "coordinator/run/training.h"
#include "model/summary.h"

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

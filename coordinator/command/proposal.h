/* How a table is best trained on, as far as a look at it tells: what `init` writes into a job. */
#ifndef DML_COORDINATOR_COMMAND_PROPOSAL_H
#define DML_COORDINATOR_COMMAND_PROPOSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/command/proposal_cells.h"
#include "data/profile.h"
#include "data/source/source.h"

/* Completes a proposal that has `data` and `reading`. Reads the file, some times if cells or labels
 * are spelt in ways that a job has to know. Errors of source_read(), and ERROR_DATA for labels that
 * teach nothing. Release it in any case. */
int proposal_make(struct proposal *proposal);
void proposal_release(struct proposal *proposal);

/* How column i, from 0, is used: as it is by itself, or as the job says. */
enum use { USE_AS_FOUND, USE_AS_DATE, USE_AS_TEXT, USE_AS_CATEGORY, USE_AS_NUMBER, USE_NOT };
enum use proposal_use(const struct proposal *proposal, uint32_t i);

/* Why column i is left out, as a whole clause. */
const char *proposal_why_not(const struct proposal *proposal, uint32_t i);

/* Whether column i holds dates, all of one format. */
bool proposal_holds_dates(const struct profile *profile, uint32_t i);

/* The first label before label i that is the same text but for capitals; NULL if there is none. */
const char *proposal_other_spelling(const struct profile *profile, uint32_t i);

/* Whether a label is a word for a missing one. */
bool proposal_means_missing(const struct label_profile *label);

/* Another column, from 1, that may be the label; 0: none stands out, or the label has a name that
 * says so. */
uint32_t proposal_other_label(const struct proposal *proposal);

/* The column, from 1, of exposures, as far as its name and numbers tell; 0: there is none. */
uint32_t proposal_exposure(const struct proposal *proposal);

/* Whether labels may count something. */
bool proposal_counts(const struct profile *profile);

#endif

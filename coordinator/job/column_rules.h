/* What a job says of single columns: how much they are penalised, and which weights they may have.
 *
 * A rule is a text "COLUMN = VALUE". COLUMN is a column of a table, by name or by number from 1,
 * and stands for all that is made of it: the number, the texts of a category, bins, missing cells.
 * Where the data is no table it is the id of a feature, or a range of ids as 10-20. */
#ifndef DML_COORDINATOR_JOB_COLUMN_RULES_H
#define DML_COORDINATOR_JOB_COLUMN_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/job/job.h"
#include "data/set/set.h"

#define PENALTY_RULE_ALLOWED                                                                       \
    "\"COLUMN = FACTOR\" or a list of them, with factors from 0 (free) to 1e6; COLUMN is a name, " \
    "or a number from 1, or for LIBSVM data an id or a range of ids such as 10-20"

#define BOUNDS_RULE_ALLOWED                                                                        \
    "\"COLUMN = [LOW, HIGH]\" or a list of them, with LOW up to HIGH, -inf and inf for no bound, " \
    "and COLUMN as for `penalty`"

/* Whether a text is such a rule: for the table of keys. */
bool penalty_rule_fits(const char *text);
bool bounds_rule_fits(const char *text);

/* For each column of a set. */
struct column_rules {
    double *factor;     /* of l2 and l1; owned. NULL: 1 for all */
    double *low, *high; /* of weights, infinite where there is none; owned. NULL: none */
};

/* Whether the job has any. */
bool job_has_penalties(const struct job *job);
bool job_has_bounds(const struct job *job);

/* Whether the job has monotone columns; it has bounds by that. */
bool job_has_monotone(const struct job *job);

/* Whether steps keep to an orthant, or to bounds. */
bool job_has_orthants(const struct job *job);

/* What the rules come to for the columns of a set. ERROR_CONFIG names the key and the column that
 * the data has not, or that is given twice. Release them in any case. */
int column_rules_find(const struct job *job, const struct set_info *data,
                      struct column_rules *rules);
void column_rules_release(struct column_rules *rules); /* harmless on zeroed memory */

/* Checks that they are of columns of a table, each once, before its data is packed: ERROR_CONFIG.
 */
int column_rules_check_columns(const struct job *job, const struct table *table);

/* Checks what other keys have to do with them: ERROR_CONFIG. */
int column_rules_check(const struct job *job);

#endif

/* What a run comes to, as the records of its coordinator tell it. */
#ifndef DML_TESTS_SIM_OUTCOME_H
#define DML_TESTS_SIM_OUTCOME_H

#include "coordinator/dispatch/output.h"
#include "tests/cluster/world.h"

/* Takes a step, an epoch, a slice of the model, or what is only shown or checked. */
void outcome_take(struct process *process, const struct record *record);

/* Forgets the steps and epochs that a roll-back undoes. */
void outcome_undo(struct process *process, const struct record *record);

#endif

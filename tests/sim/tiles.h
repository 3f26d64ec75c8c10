/* Jobs in tiles: their rows cut along columns. */
#ifndef DML_TESTS_SIM_TILES_H
#define DML_TESTS_SIM_TILES_H

#include "tests/sim/job.h"

/* Chooses whether the job's chunks, of rows that are there, are cut into strips, and how wide. */
void tiles_choose(struct job *job);

/* Cuts them, once all else of the data is known. Harmless on other jobs. */
void tiles_make(struct job *job);
void tiles_release(struct job *job);

#endif

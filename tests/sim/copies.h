/* Sets that come by messages, in the simulated world: what the file has, the coordinator that
 * answers from it, and the copy on the host of each replica, which outlives the process. */
#ifndef DML_TESTS_SIM_COPIES_H
#define DML_TESTS_SIM_COPIES_H

#include "replica/replica.h"
#include "tests/sim/cluster.h"

#define COPY_PLACE_BYTES_MAX 48
#define COPY_PLACES_MAX 512

/* Where the rows of the job's set are; the number of places. */
uint32_t copies_places(const struct job *job, struct set_range *places, uint32_t *heads);

/* The copy on the host of this replica, as long as the file of the set. */
uint8_t *copies_of(struct process *replica);

/* A byte of it becomes another, if it is there. */
void copies_damage(struct process *replica);

/* Which bytes the head of the copy lacks next; none: it is complete. */
struct set_range copies_head_lacks(struct process *replica);

/* Whether these are the bytes of the set. */
bool copies_sound(const uint8_t *bytes, struct set_range range);

/* The coordinator answers READ_SET: mostly once, with the right bytes. */
void copies_answer(struct process *coordinator, uint32_t link, const struct message *question);

#endif

/* What "auto" means: how long the history is, how many workers there are, and which preconditioner
 * a run has.
 *
 * Who chooses the preconditioner, in this order: sizing_precondition() by the job and the shape of
 * the data alone; sizing_leading(), once columns are counted, whether a leading block pays; where
 * there is no block, scaling_choose() (coordinator/job/scaling.h) whether a diagonal scales
 * columns; for a network the scaling of its family (coordinator/job/family.c). The result has as
 * `preconditioner` what came of it. */
#ifndef DML_COORDINATOR_JOB_SIZING_H
#define DML_COORDINATOR_JOB_SIZING_H

#include "coordinator/job/job.h"
#include "data/set/statistics.h"
#include "objective/shape.h"
#include "optimizer/preconditioner.h"

struct sizing {
    uint32_t history;               /* curvature pairs */
    enum history_type history_type; /* how they and directions are stored */
    uint32_t directions; /* that a step minimises over at once (optimizer/lbfgs_span.c); 0: a line
                            search along one */
    double row_numbers;  /* numbers of a vector of rows, where shards have any */
    bool upper;          /* replicas have parts of those alone, all threads together */
    double held;         /* parameters that a replica holds at a time: all, or those of a strip */
    uint32_t shards, replicas;
    uint32_t threads; /* per replica; 0: each uses what its machine has */
};

#define READS_OF_A_PAIR 4 /* s and y, in each of the two rounds of a step */

/* The longest history whose passes cost at most half as much as the rest of an evaluation, by the
 * bytes that both move: see bench/NOTES.md. At least 1, `parameters` being at least 1. */
uint32_t sizing_history(const struct set_info *data, uint64_t parameters, enum history_type type);

/* Sets the numbers of workers and threads. They may depend on the machine, which has `cpus` for us,
 * because the model does not depend on them. There are no fewer for more parameters. ERROR_CONFIG
 * if numbers in the job contradict each other. */
int sizing_workers(const struct job *job, uint64_t parameters, uint32_t cpus,
                   struct sizing *sizing);

/* Sets the same for a job whose workers are started on that many hosts: a replica on each, and at
 * most a shard; fewer if the rows of each host have few of the columns. A host says how many
 * threads its replica has, or the replica finds out. */
void sizing_on_hosts(const struct job *job, const struct set_info *data, uint64_t parameters,
                     uint32_t hosts, struct sizing *sizing);

/* How long such replicas add up before they flush: what the job says, or longer if the shards would
 * spend much of their time on taking flushes. */
uint32_t sizing_flush_ms(const struct job *job, uint64_t parameters, const struct sizing *sizing);

/* Sets all. The history may depend only on the shape of the data, because the model depends on
 * it. Errors as of sizing_workers(). */
int sizing_of(const struct job *job, const struct set_info *data, uint64_t parameters,
              uint32_t cpus, struct sizing *sizing);

/* Sets the directions, from the job and the shape of the data alone, and what follows from them:
 * the length of vectors of rows, how long the history is and how it is stored; and how many
 * parameters a replica holds. `form` is that of the preconditioner as far as the shape tells: a
 * leading block may be left out later. */
void sizing_directions(const struct job *job, const struct set_info *data,
                       const struct objective_shape *shape, enum precondition form,
                       struct sizing *sizing);

/* The scale of biases in H₀ (optimizer/pairs.h): a power of two, at most 1, from the data alone.
 *
 * The mean loss has second derivatives h·E[x xᵀ] by the weights and h by the intercept, where x has
 * a 1 for it. The largest of the weights' curvatures is at least h·|E[x]|², and about that where
 * columns have one sign, as in text. Rows of text have length 1 and next to nothing in common, so
 * this is 10⁻² … 10⁻³: were the intercept taken for one of the weights, γ would be that of its
 * curvature, and steps along all others a hundred times too short. */
double sizing_bias_scale(const struct set_info *data);

/* The second derivative of a row's loss by one of its margins at the start, about; by all together
 * where these share their weights; 1 for a loss without. */
double sizing_second_first(const struct set_info *data, const struct objective_shape *shape);

/* Whether the run has a block preconditioner: from the job and the shape of the data alone. With
 * l1, or with minibatches, it has none. A model of at most `precondition_block` parameters has a
 * block of them all, and the settings are complete. A larger one may have a leading block, of as
 * many columns as fit: sizing_leading() then decides. ERROR_CONFIG if the job asks for one into
 * which not one column fits. */
int sizing_precondition(const struct job *job, const struct set_info *data,
                        const struct objective_shape *shape,
                        struct preconditioner_settings *settings);

/* The parameters of the block; 0: there is none. */
uint64_t sizing_block(const struct objective_shape *shape,
                      const struct preconditioner_settings *settings);

/* Decides, for settings with PRECONDITION_LEADING, whether there is a block and how many columns it
 * has. Rows of a table gain from it. They have about as many values each, or, where cells are
 * missing, about as many as chance makes of them. Texts, whose lengths differ more, lose by any
 * diagonal that does not know what its columns have in common. So do images: the columns beyond the
 * block must be rare. Outputs with weights of their own share one where it leaves columns out. It
 * has as many columns as a refresh of two passes pays for, by halves. A job that asks for a block
 * has the largest. doc/OPTIMIZERS.md has the counts. */
void sizing_leading(const struct job *job, const struct set_info *data,
                    const struct objective_shape *shape, const struct prefix_counts *counts,
                    struct preconditioner_settings *settings);

/* How much memory a run needs, about, before it begins. */

/* In bytes, without the data, which is mapped and can be dropped by the system. */
struct memory_need {
    double coordinator, shard, replica; /* of one process, with the memory that it shares */
    double all;                         /* of all processes; shared memory counts once */
    double here; /* of those that the coordinator starts: others may be anywhere */
    uint32_t shards, replicas;
};

/* From figures measured on running workers, which are in doc/MODELS.md. `block`: the parameters of
 * the block, 0 without one. */
struct memory_need memory_need_of(const struct job *job, uint64_t parameters,
                                  const struct sizing *sizing, uint64_t block);

/* NULL if a limit here leaves enough for all. Else says what is needed and which limit allows how
 * much. Free it. */
char *memory_need_exceeds(const struct memory_need *need);

/* Why a process of one of the roles ended for lack of memory: "ended for lack of memory: about 1.4
 * GB are needed, 600 MB allowed (ulimit -v)". Free it. */
char *memory_need_unmet(const struct memory_need *need, bool shard);

#endif

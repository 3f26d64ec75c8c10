/* What the parts of the coordinator's state machine call of one another; for them alone. */
#ifndef DML_COORDINATOR_PARTS_H
#define DML_COORDINATOR_PARTS_H

#include "coordinator/coordinator.h"

typedef int handler(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out);

/* ---- output.c ---- */
struct record *output_add(struct output *out, enum record_kind kind);
void output_event(struct output *out, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void output_worker(struct output *out, uint32_t link, const char *state);

/* Sends to one link, or to all shards or replicas, with the epoch filled in. */
void send_to(const struct coordinator *c, uint32_t link, struct message message,
             struct output *out);
void send_to_shards(const struct coordinator *c, struct message message, struct output *out);
void send_to_replicas(const struct coordinator *c, struct message message, struct output *out);

/* ---- setup.c: greeting workers, setting them up, restoring shards ---- */
handler on_welcome, on_ready, on_restored;

/* Replicas are to be told of the shards anew. */
void setup_forget_replicas(struct coordinator *c);
/* Sets up every worker for this attempt, from durable[0] if c->restoring. */
void setup_begin(struct coordinator *c, struct output *out);
/* Sends every shard its range of the next curvature pair to start with: s into t, y into h. */
void setup_send_pair(const struct coordinator *c, struct output *out);
void setup_replicas(struct coordinator *c, struct output *out);
void setup_start_if_complete(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- recovery.c: what is lost, and going back ---- */
handler on_holding;
/* Whether the process became this incarnation when that was issued. Another process must not go on
 * under it: it would give the same ids to other flushes. */
bool recovery_is_who_it_was(const struct worker *worker, const struct message_welcome *welcome);
/* Greets another process than was expected, under an incarnation of its own. */
void recovery_replace(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out);
uint64_t recovery_incarnation(struct coordinator *c);
void recovery_begin(struct coordinator *c, int64_t now_ns, struct output *out);
void recovery_roll_back(struct coordinator *c, const char *why, struct output *out);

/* ---- durability.c: the journal and durable steps ---- */
handler on_checkpointed;
void durability_take_saved(struct coordinator *c, const struct coordinator_saved *saved);
void durability_journal_program(struct coordinator *c, struct output *out);
void durability_journal_verdict(struct coordinator *c, const struct message_flushed *flushed,
                                uint32_t replica, struct output *out);
/* The same for a verdict that is encoded already. */
void durability_journal_entry(struct coordinator *c, const struct bytes *verdict,
                              struct output *out);
void durability_journal_if_long(struct coordinator *c, int64_t now_ns, struct output *out);
void durability_checkpoint_if_due(struct coordinator *c, int64_t now_ns, struct output *out);
/* Makes the last step durable and then ends as the reason asks for. */
void durability_seal(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- evaluating.c ---- */
handler on_want, on_flushed, on_folded;
/* Hands out the evaluation whose number and bound are set. */
void evaluating_begin(struct coordinator *c, int64_t now_ns, struct output *out);
void evaluating_rejoin(struct coordinator *c, int64_t now_ns, struct output *out);
void evaluating_abandon(struct coordinator *c);
/* A replica has become ready: it joins the evaluation that runs. */
void evaluating_join(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out);
/* A replica is lost: what it was handed goes back. */
void evaluating_lose(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out);
void evaluating_wake_idle(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- handing.c: who has what, and backup copies ---- */
void handing_note(struct worker *replica, struct run run, int64_t now_ns);
void handing_forget_counted(struct worker *replica, const struct plan *plan);
void handing_forget(struct worker *replica, const struct run_list *runs);
void handing_clear(struct worker *replica);
/* A run worth a backup copy by the replica on `link`; false if there is none. */
bool handing_backup(struct coordinator *c, uint32_t link, int64_t now_ns, struct run *run);

/* ---- steering.c: between the optimizer and the shards ---- */
handler on_result;
void steering_send_program(struct coordinator *c, struct output *out);
void steering_start(struct coordinator *c, int64_t now_ns, struct output *out);
void steering_rejoin(struct coordinator *c, int64_t now_ns, struct output *out);
void steering_evaluated(struct coordinator *c, int64_t now_ns, struct output *out);
void steering_finish(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- reading.c ---- */
handler on_slice;
/* What was to be read next is in its register. */
void reading_formed(struct coordinator *c, struct output *out);
void reading_begin(struct coordinator *c, struct output *out);

#endif

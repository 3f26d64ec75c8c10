/* What the parts of the coordinator's state machine call of one another; for them alone. */
#ifndef DML_COORDINATOR_PARTS_H
#define DML_COORDINATOR_PARTS_H

#include "coordinator/coordinator.h"

/* ---- output.c ---- */
struct record *output_add(struct output *out, enum record_kind kind);
void output_event(struct output *out, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sends to one link, or to all shards or replicas, with the epoch filled in. */
void send_to(const struct coordinator *c, uint32_t link, struct message message,
             struct output *out);
void send_to_shards(const struct coordinator *c, struct message message, struct output *out);
void send_to_replicas(const struct coordinator *c, struct message message, struct output *out);

/* ---- evaluating.c ---- */
void evaluating_begin(struct coordinator *c, int derivative_exponent, int64_t now_ns,
                      struct output *out);
void evaluating_abandon(struct coordinator *c);
int on_want(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
            struct output *out);
int on_flushed(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
               struct output *out);
int on_folded(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out);

/* ---- steering.c: between the optimizer and the shards ---- */
void steering_start(struct coordinator *c, int64_t now_ns, struct output *out);
void steering_evaluated(struct coordinator *c, int64_t now_ns, struct output *out);
void steering_finish(struct coordinator *c, struct output *out);
int on_result(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out);

/* ---- reading.c ---- */
void reading_begin(struct coordinator *c, struct output *out);
int on_slice(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
             struct output *out);

#endif

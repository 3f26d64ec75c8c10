/* What messages, sums and programs take, by the model of bench/efficiency.c: bytes and nanoseconds
 * as if the vectors had the parameters of the command line. */
#ifndef DML_BENCH_EFFICIENCY_MODEL_H
#define DML_BENCH_EFFICIENCY_MODEL_H

#include <stdint.h>

#include "wire/message.h"

extern struct model {
    uint32_t replicas, shards, strips;
    double parameters, rows, compute_ns, chunk_ns;
    double column_scale, row_scale; /* of the machines' elements to those that they stand for */
    double point_bytes;             /* fetched, an element of the point */
    double sum_bytes, sum_ns;       /* staged and folded, an element of the sums of a gradient */
    double message_ns, fold_message_ns, id_ns, worker_ns, gather_ns, program_ns;
    double stream_ns, pack_ns, unpack_ns; /* a byte that is sent; one before it is packed */
    double point_left, sums_left, rows_left, row_sums_left; /* of each byte, when it is packed */
} model;

/* What the command line sets, by its name; ends the program with status 64 if there is none. */
double value_of(const char *name);

/* Reads the command line of bench/efficiency.c into the model. */
void model_read(int argc, char **argv);

/* Notes of which kind an evaluation is, by its number. */
void note_kind(const struct message_evaluate *evaluate);

/* How many elements each one of the sums of this evaluation stands for. */
double sums_scale(uint32_t evaluation);

/* What a shard takes to fold the sums that a STAGE brings. */
double stage_fold_ns(const struct message_stage *stage);

/* What the elements that come with a message take from one host to another. */
struct bulk_cost {
    double bytes; /* that are sent */
    double send_ns, receive_ns;
};

struct bulk_cost bulk_of(const struct message *message);

/* What a shard takes for a program. */
double program_ns(const struct message_program *program);

#endif

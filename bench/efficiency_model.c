#include "bench/efficiency_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/compute.h"
#include "wire/evaluation.h"
#include "wire/program.h"

struct model model;

/* What can be set on the command line. Times of processors are as measured: see doc/SCALE.md. */
static struct parameter {
    const char *name;
    double value;
} table[] = {
    {"gigabits", 10},       /* of a host's link, in either direction */
    {"latency_us", 100},    /* one way */
    {"spread", 0.1},        /* (slowest − fastest) / mean of the replicas */
    {"chunks", 1000},       /* a replica's */
    {"flush_ms", 1000},     /* as the job says */
    {"message_us", 10},     /* the coordinator's, to receive or to send one */
    {"fold_us", 1},         /* the same of FOLD or FOLDED: they come together */
    {"id_ns", 100},         /* of the coordinator, for each flush that one of these lists */
    {"lists", 1},           /* flushes of a turn are folded by one message */
    {"worker_us", 10},      /* the same of a worker */
    {"stream_ns", 1.4},     /* a byte through TLS, at either end */
    {"pack_ns", 0.55},      /* a byte of bulk packed, before it is sent */
    {"unpack_ns", 0.45},    /* the same unpacked */
    {"point_left", 1},      /* of the bytes of a point, when packed; .42 where it is a direction */
    {"sums_left", 0.66},    /* the same of the sums of a gradient */
    {"rows_left", .97},     /* of vectors of rows that replicas fetch */
    {"row_sums_left", .61}, /* and of sums by rows */
    {"fold_ns", 2},         /* an element folded */
    {"listed_ns", 4},       /* the same of a sparse slice */
    {"share", 1},           /* of its columns that a flush has anything of */
    {"needs", 1},           /* of its columns that the chunks of a replica use */
    {"strips", 1},          /* of columns: more make a set in tiles, with common directions */
    {"rows", 0},            /* of training, where there are vectors of rows */
    {"gather_ns", 1},       /* an element put together on a replica */
    {"program_ns", 20},     /* an element of a shard, in both programs of a step */
    {"row_ns", 0.3},        /* an element of a vector of rows, in an operation */
    {"loss_ns", 10},        /* a loss of a row there, or a derivative */
    {"backup", 1},          /* backup copies */
    {"own_hosts", 0},       /* shards have hosts of their own */
};

static struct parameter *find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    fprintf(stderr, "efficiency: there is no %s\n", name);
    exit(64);
}

double value_of(const char *name) {
    return find(name)->value;
}

/* Which kind of sums, or of point, evaluations have: they are numbered from 1 on. */
static struct { bool takes_rows, sums_rows; } kinds[4096];

void note_kind(const struct message_evaluate *evaluate) {
    const struct evaluation_parts parts = evaluation_parts_of(&evaluate->parts);
    kinds[evaluate->evaluation % 4096].takes_rows = parts_take_rows(&parts);
    kinds[evaluate->evaluation % 4096].sums_rows = evaluation_sums(&parts) == SUMS_ROWS;
}

double sums_scale(uint32_t evaluation) {
    return kinds[evaluation % 4096].sums_rows ? model.row_scale : model.column_scale;
}

/* Elements of sums that a STAGE brings: all of them are dense, or none. */
static double sums_of(const struct message_stage *stage) {
    return (double)stage->entries * sums_scale(stage->flush.evaluation);
}

double stage_fold_ns(const struct message_stage *stage) {
    bool rows = kinds[stage->flush.evaluation % 4096].sums_rows;
    return sums_of(stage) * (rows ? value_of("fold_ns") : model.sum_ns);
}

struct bulk_cost bulk_of(const struct message *message) {
    const struct message_parameters *parameters = &message->parameters;
    bool point = message->type == MESSAGE_PARAMETERS, sums = message->type == MESSAGE_STAGE;
    if (!point && !sums)
        return (struct bulk_cost){0};
    bool rows = point ? kinds[parameters->evaluation % 4096].takes_rows
                      : kinds[message->stage.flush.evaluation % 4096].sums_rows;
    double of_rows = point ? model.rows_left : model.row_sums_left;
    double left = rows ? of_rows : point ? model.point_left : model.sums_left;
    double bytes = rows ? sizeof(double) : point ? model.point_bytes : model.sum_bytes;
    bytes *= point ? (double)parameters->count * (rows ? model.row_scale : model.column_scale)
                   : sums_of(&message->stage);
    double stream_ns = model.stream_ns * left * bytes;
    return (struct bulk_cost){.bytes = left * bytes,
                              .send_ns = stream_ns + model.pack_ns * bytes,
                              .receive_ns = stream_ns + model.unpack_ns * bytes};
}

/* Of vectors of rows, an element of a row. */
static double row_operation_ns(const struct operation *operation) {
    double wide = value_of("row_ns"), loss = value_of("loss_ns"), count = operation->count;
    switch (operation->code) {
    case OPERATION_ROWS_AT:
    case OPERATION_ROWS_SLOPES:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
        return wide * count;
    case OPERATION_ROWS_SECOND: /* half of a pair's square, of the rows that are drawn */
        return wide / 2 * count * count / 2 * fmin(operation->alpha, 1);
    case OPERATION_ROWS_LOSS:
    case OPERATION_ROWS_DERIVATIVE:
    case OPERATION_ROWS_ADVANCE:
        return loss;
    case OPERATION_ROWS_TAKE:
        return 4 * wide;
    default:
        return 0;
    }
}

/* Of tiles a step has several programs. Half of what programs do with columns in a step is done by
 * each that begins an evaluation. */
double program_ns(const struct message_program *program) {
    struct cursor rest = cursor_over(program->operations.data, program->operations.length);
    struct operation operation;
    double ns = model.strips > 1 ? 0 : model.program_ns * model.parameters / model.shards / 2;
    while (model.strips > 1 && program_next(&rest, &operation)) {
        ns += row_operation_ns(&operation) * model.rows / model.shards;
        if (operation.code == OPERATION_BEGIN)
            ns += model.program_ns * model.parameters / model.shards / 2;
    }
    return ns;
}

/* Of an element, in the shortest encoding: see choose_encoding() in replica/flush.c. */
static void set_bytes(double share, double needs) {
    const double dense = sizeof(int64_t), sparse = 12 * share, bits = 8 * share + 1. / 8;
    model.sum_bytes = fmin(dense, fmin(sparse, bits));
    model.sum_ns = model.sum_bytes < dense ? share * value_of("listed_ns") : value_of("fold_ns");
    model.point_bytes = needs < 1 ? sizeof(double) * needs : sizeof(double);
}

void model_read(int argc, char **argv) {
    for (int i = 5; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (equals)
            *equals = '\0';
        struct parameter *parameter = find(argv[i]);
        if (equals)
            parameter->value = strtod(equals + 1, NULL);
    }
    model.replicas = (uint32_t)strtoul(argv[1], NULL, 10);
    model.shards = (uint32_t)strtoul(argv[2], NULL, 10);
    model.strips = (uint32_t)value_of("strips");
    model.parameters = strtod(argv[3], NULL);
    model.rows = value_of("rows");
    model.compute_ns = strtod(argv[4], NULL) * 1e9;
    model.chunk_ns = model.compute_ns / value_of("chunks") / (model.strips > 1 ? 2 : 1);
    model.message_ns = value_of("message_us") * 1e3;
    model.fold_message_ns = value_of("fold_us") * 1e3;
    model.worker_ns = value_of("worker_us") * 1e3;
    model.stream_ns = value_of("stream_ns");
    model.pack_ns = value_of("pack_ns");
    model.unpack_ns = value_of("unpack_ns");
    model.point_left = value_of("point_left");
    model.sums_left = value_of("sums_left");
    model.rows_left = value_of("rows_left");
    model.row_sums_left = value_of("row_sums_left");
    model.id_ns = value_of("id_ns");
    model.gather_ns = value_of("gather_ns");
    model.program_ns = value_of("program_ns");
    set_bytes(value_of("share"), value_of("needs"));
}

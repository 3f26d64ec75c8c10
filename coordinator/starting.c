/* How steering begins: it loads the curvature pairs that the run starts with, one after the other,
 * and then starts Downpour or the optimizer, or resumes it. */
#include "coordinator/steering_parts.h"
#include "wire/program.h"

static void start_optimizer(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    if (s->downpour.stage != DOWNPOUR_OVER) {
        pouring_begin(c, now_ns, out);
        return;
    }
    bytes_clear(&s->program);
    /* A checkpoint of where Downpour hands over has an optimizer that has evaluated nothing. */
    bool resumes = c->recovery.restoring && s->optimizer.started;
    enum optimizer_want want =
        resumes ? optimizer_resume(&s->optimizer, &c->settings.optimizer, &s->program)
                : optimizer_start(&s->optimizer, &s->program);
    steering_follow(c, want, now_ns, out);
}

/* START puts s into t and y into h; the program forms the pair from them and measures its products.
 * The next pair overwrites t and h, so it is sent when the program has run. */
static void load_pair(struct coordinator *c, struct output *out) {
    struct steering *s = c->steering;
    const double *pair = c->settings.start_pairs + 2 * s->loaded * c->parameters;
    for (uint32_t i = 0; i < c->settings.shards; i++) {
        setup_send_vector(c, i, REGISTER_T, pair, out);
        setup_send_vector(c, i, REGISTER_H, pair + c->parameters, out);
    }
    bytes_clear(&s->program);
    optimizer_load(&s->optimizer, &s->program);
    steering_send_program(c, out);
}

static void load_or_start(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->steering->loading = c->steering->loaded < c->settings.start_pair_count;
    if (c->steering->loading)
        load_pair(c, out);
    else
        start_optimizer(c, now_ns, out);
}

void starting_pair_loaded(struct coordinator *c, int64_t now_ns, struct output *out) {
    static _Thread_local double scalars[SCALARS_MAX];
    round_scalars(&c->steering->round, scalars);
    optimizer_loaded(&c->steering->optimizer, scalars, c->steering->loaded++);
    load_or_start(c, now_ns, out);
}

/* A run that is restored has its pairs from the checkpoint: none is loaded. */
void steering_start(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->steering->loaded = c->recovery.restoring ? c->settings.start_pair_count : 0;
    load_or_start(c, now_ns, out);
}

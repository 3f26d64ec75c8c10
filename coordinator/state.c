#include "coordinator/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mutant.h"

#define STATE_MAGIC 0x53544d44u /* "DMTS", little-endian */

/* One listing of the fields serves both ways: a coder either appends or reads. */
struct coder {
    struct bytes *out; /* appending, or NULL */
    struct cursor in;
};

#define CODE(name, type)                                                                           \
    static void code_##name(struct coder *coder, type *value) {                                    \
        if (coder->out)                                                                            \
            bytes_put_##name(coder->out, *value);                                                  \
        else                                                                                       \
            *value = cursor_##name(&coder->in);                                                    \
    }
CODE(u16, uint16_t)
CODE(u32, uint32_t)
CODE(u64, uint64_t)
CODE(i64, int64_t)
CODE(f64, double)
#undef CODE

static void code_bool(struct coder *coder, bool *value) {
    if (coder->out)
        bytes_put_u8(coder->out, *value);
    else
        *value = cursor_u8(&coder->in) != 0;
}

static void fail_if(struct coder *coder, bool wrong) {
    coder->in.failed |= wrong;
}

static void code_history(struct coder *coder, struct lbfgs *history) {
    code_u32(coder, &history->memory);
    code_u32(coder, &history->pairs);
    code_u16(coder, &history->candidate);
    code_f64(coder, &history->gamma);
    fail_if(coder, history->memory > HISTORY_MAX || history->pairs > history->memory ||
                       history->candidate >= SLOTS_MAX);
    for (uint32_t i = 0; i < history->pairs && !coder->in.failed; i++) {
        code_u16(coder, &history->slot[i]);
        uint16_t slot = history->slot[i];
        fail_if(coder, slot >= SLOTS_MAX);
        if (coder->in.failed)
            return;
        code_u64(coder, &history->serial[slot]);
        code_f64(coder, &history->sg[slot]);
        code_f64(coder, &history->yg[slot]);
        for (uint32_t j = 0; j <= i; j++) {
            uint16_t older = history->slot[j];
            code_f64(coder, &history->sy[older][slot]);
            code_f64(coder, &history->yy[older][slot]);
            history->yy[slot][older] = history->yy[older][slot];
        }
    }
}

static void code_point(struct coder *coder, struct linesearch_point *point) {
    code_f64(coder, &point->step);
    code_f64(coder, &point->value);
    code_f64(coder, &point->slope);
    code_bool(coder, &point->rounded);
}

static void code_search(struct coder *coder, struct linesearch *search) {
    code_f64(coder, &search->step);
    code_f64(coder, &search->value0);
    code_f64(coder, &search->slope0);
    code_f64(coder, &search->noise);
    code_f64(coder, &search->step_max);
    code_point(coder, &search->best);
    code_point(coder, &search->other);
    code_f64(coder, &search->lower);
    code_f64(coder, &search->upper);
    code_f64(coder, &search->width);
    code_f64(coder, &search->width_before);
    code_bool(coder, &search->bracketed);
    code_bool(coder, &search->decreasing);
    code_bool(coder, &search->last_chance);
    code_u32(coder, &search->trials);
}

static void code_optimizer(struct coder *coder, struct optimizer *o) {
    uint32_t reason = o->reason;
    code_history(coder, &o->history);
    code_search(coder, &o->search);
    code_u32(coder, &reason);
    fail_if(coder, reason > REASON_CANCELLED);
    o->reason = reason;
    code_bool(coder, &o->measuring_trial);
    code_bool(coder, &o->started);
    code_bool(coder, &o->accepted);
    code_bool(coder, &o->steepest);
    code_bool(coder, &o->leaves_best);
    code_u64(coder, &o->step);
    code_u64(coder, &o->evaluations);
    code_u64(coder, &o->rounds);
    code_u64(coder, &o->retries);
    code_f64(coder, &o->mean_loss);
    code_f64(coder, &o->trial_holdout);
    code_f64(coder, &o->loss);
    code_f64(coder, &o->gradient_max);
    code_f64(coder, &o->gradient_square);
    code_f64(coder, &o->slope);
    code_f64(coder, &o->last_step_length);
    code_u32(coder, &o->last_trials);
    code_f64(coder, &o->trial_loss);
    code_f64(coder, &o->trial_slope);
    for (unsigned i = 0; i <= LOSSES_KEPT; i++)
        code_f64(coder, &o->losses[i]);
    code_f64(coder, &o->holdout_loss);
    code_u64(coder, &o->best.step);
    code_f64(coder, &o->best.loss);
    code_f64(coder, &o->best.gradient_max);
    code_f64(coder, &o->best.holdout_loss);
    for (unsigned i = 0; i < SAFEGUARDS; i++)
        code_u64(coder, &o->safeguards[i]);
    code_u32(coder, &o->fired);
}

static void code_program(struct coder *coder, struct bytes *program) {
    uint32_t length = (uint32_t)program->length;
    code_u32(coder, &length);
    if (coder->out) {
        bytes_append(coder->out, program->data, length);
        return;
    }
    const void *start = cursor_take(&coder->in, length);
    bytes_clear(program);
    if (start)
        bytes_append(program, start, length);
}

static void code_run(struct coder *coder, struct coordinator *c) {
    uint32_t links = coordinator_links(c), shards = c->settings.shards, want = c->want;
    int64_t exponent = c->evaluation.derivative_exponent;
    code_u32(coder, &shards);
    fail_if(coder, shards != c->settings.shards);
    code_u32(coder, &links);
    for (uint32_t i = 0; i < links && !coder->in.failed; i++) {
        uint64_t incarnation = i < coordinator_links(c) ? c->workers[i].incarnation : 0;
        code_u64(coder, &incarnation);
        if (i < coordinator_links(c))
            c->workers[i].incarnation = incarnation;
    }
    code_u64(coder, &c->incarnations);
    code_u32(coder, &c->attempt);
    code_optimizer(coder, &c->optimizer);
    code_u32(coder, &c->evaluation.number);
    code_i64(coder, &exponent);
    code_bool(coder, &c->evaluation.exceeded);
    code_f64(coder, &c->evaluation.derivative_max);
    code_u64(coder, &c->evaluations);
    if (!mutant(BOUND_FORGOTTEN))
        code_f64(coder, &c->derivative_max_at_x);
    code_u64(coder, &c->round.number);
    code_u32(coder, &want);
    code_bool(coder, &c->finishing);
    code_program(coder, &c->program);
    fail_if(coder, want > OPTIMIZER_FINISH);
    c->want = want;
    c->evaluation.derivative_exponent = (int)exponent;
}

void state_encode(const struct coordinator *c, struct bytes *out) {
    struct coder coder = {.out = out};
    size_t start = out->length;
    bytes_put_u32(out, STATE_MAGIC);
    bytes_put_u32(out, STATE_VERSION);
    code_run(&coder, (struct coordinator *)c); /* appending changes nothing */
    bytes_put_u64(out, hash64(out->data + start, out->length - start));
}

/* Whether the record is whole and of this version; *cursor stands behind its head. */
static bool is_whole(const void *data, size_t length, struct cursor *cursor) {
    uint64_t stored;
    if (length < 16)
        return false;
    memcpy(&stored, (const uint8_t *)data + length - 8, sizeof stored);
    *cursor = cursor_over(data, length - 8);
    return stored == hash64(data, length - 8) && cursor_u32(cursor) == STATE_MAGIC &&
           cursor_u32(cursor) == STATE_VERSION;
}

/* Reads into `c`, which is left in part changed if that fails. */
static bool read_record(struct coordinator *c, struct cursor cursor) {
    struct coder coder = {.in = cursor};
    uint32_t memory = c->settings.optimizer.memory;
    code_run(&coder, c);
    return !coder.in.failed && cursor_left(&coder.in) == 0 && c->optimizer.history.memory == memory;
}

bool state_decode(struct coordinator *c, const void *data, size_t length) {
    struct cursor cursor;
    if (!is_whole(data, length, &cursor))
        return false;
    struct bytes before;
    bytes_init(&before);
    state_encode(c, &before);
    struct optimizer_settings settings = c->optimizer.settings;
    bool good = read_record(c, cursor);
    c->optimizer.settings = settings;
    if (!good && is_whole(before.data, before.length, &cursor))
        read_record(c, cursor);
    bytes_release(&before);
    return good;
}

/* ---- verdicts ---- */

/* Entries lie one behind the other in a log, and their runs are read in place. */
#define ENTRY_ALIGNMENT 4

void verdict_encode(const struct verdict_entry *entry, struct bytes *out) {
    size_t start = out->length;
    bytes_put_u32(out, entry->portions.length);
    bytes_put_u32(out, entry->loss.length);
    bytes_put_u32(out, entry->holdout_loss.length);
    bytes_append(out, entry->portions.items, entry->portions.length * sizeof(struct run));
    flush_id_encode(&entry->flush, out);
    bytes_put_u32(out, entry->replica);
    bytes_put_f64(out, entry->derivative_max);
    bytes_put_u8(out, entry->exceeded);
    bytes_append(out, entry->loss.data, entry->loss.length);
    bytes_append(out, entry->holdout_loss.data, entry->holdout_loss.length);
    while ((out->length - start) % ENTRY_ALIGNMENT)
        bytes_put_u8(out, 0);
}

bool verdict_decode(const void *data, size_t length, struct verdict_entry *entry) {
    struct cursor cursor = cursor_over(data, length);
    entry->portions.length = cursor_u32(&cursor);
    entry->loss.length = cursor_u32(&cursor);
    entry->holdout_loss.length = cursor_u32(&cursor);
    entry->portions.items = cursor_take(&cursor, entry->portions.length * sizeof(struct run));
    entry->flush = flush_id_decode(&cursor);
    entry->replica = cursor_u32(&cursor);
    entry->derivative_max = cursor_f64(&cursor);
    entry->exceeded = cursor_u8(&cursor);
    entry->loss.data = cursor_take(&cursor, entry->loss.length);
    entry->holdout_loss.data = cursor_take(&cursor, entry->holdout_loss.length);
    return !cursor.failed && cursor_left(&cursor) < ENTRY_ALIGNMENT;
}

/* The evaluation that runs: its beginning, replicas that come and go meanwhile, and its end, when
 * every chunk is counted and every shard has confirmed every fold. */
#include "base/mutant.h"
#include "coordinator/steering_parts.h"
#include "wire/program.h"

/* Evaluations shorter than this are cheaper to redo than to journal. */
#define JOURNAL_FROM_NS INT64_C(100000000)
/* After one this short the journal, which costs a commit a program, is left again. */
#define JOURNAL_UNTIL_NS INT64_C(10000000)

void evaluating_tell(struct coordinator *c, uint32_t link, struct output *out) {
    struct message message = {.type = MESSAGE_EVALUATE};
    if (workload_of(c, link)->told)
        return;
    workload_of(c, link)->told = true;
    message.evaluate = (struct message_evaluate){
        .attempt = c->recovery.attempt,
        .evaluation = c->steering->evaluation.number,
        .bounds = c->steering->evaluation.bounds,
        .rate = c->steering->evaluation.drawing.rate,
        .floor = c->steering->evaluation.drawing.floor,
        .dice = c->steering->evaluation.drawing.dice,
        .parts = evaluation_list(&c->steering->evaluation.parts),
    };
    send_to(c, link, message, out);
}

void steering_join(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    if (!c->steering->evaluation.running)
        return;
    evaluating_tell(c, link, out);
    handing_give(c, link, now_ns, out);
}

/* An evaluation starts from nothing counted. */
static void clear_evaluation(struct coordinator *c, int64_t now_ns) {
    struct evaluating *evaluation = &c->steering->evaluation;
    evaluation->running = true;
    evaluation->exceeded = evaluation->shared = false;
    evaluation->maxima = (struct maxima){0};
    evaluation->started_ns = now_ns;
    totals_init(&evaluation->totals, evaluation_totals(&evaluation->parts));
    plan_begin(&c->steering->plan, &evaluation->parts);
    c->steering->expected_ns = 0;
    verdicts_begin(&c->steering->verdicts);
    copying_expect_delivery(c);
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++) {
        handing_clear(workload_of(c, i));
        workload_of(c, i)->told = false;
    }
}

/* EVALUATE goes out without waiting for the shards to run the program that forms the point. A
 * replica that asks for the point too early is answered when the shard's BEGIN is through. */
void evaluating_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    clear_evaluation(c, now_ns);
    if (downpour_runs(&c->steering->downpour)) {
        handing_begin(c, now_ns, out);
        return;
    }
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        if (c->membership.members[i].ready)
            steering_join(c, i, now_ns, out);
}

/* A long evaluation is journalled from now on: a later coordinator can then go on in the middle of
 * it. */
void steering_tick(struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct evaluating *evaluation = &c->steering->evaluation;
    if (evaluation->running && now_ns - evaluation->started_ns >= JOURNAL_FROM_NS &&
        !downpour_runs(&c->steering->downpour))
        durability_journal_from_now(c, out);
    handing_wake_idle(c, now_ns, out);
}

void evaluating_abandon(struct coordinator *c) {
    c->steering->evaluation.running = false;
}

/* What the replica had in hand goes back, also what it may have staged: its flushes are of a dead
 * incarnation now and will be dropped, so nothing is counted twice. */
void steering_lose(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct workload *workload = workload_of(c, link);
    uint32_t waiting = c->steering->plan.waiting;
    workload->idle = workload->told = false;
    copying_forget_rate(workload);
    if (c->steering->evaluation.running && !mutant(CHUNKS_LOST)) {
        for (uint32_t i = 0; i < workload->handed_count; i++) {
            struct run_list one = {.items = &workload->handed[i].run, .length = 1};
            plan_return(&c->steering->plan, &one);
        }
    }
    if (c->steering->plan.waiting > waiting)
        output_event(out, "returned", "%u chunks that replica %u had in hand go to others",
                     c->steering->plan.waiting - waiting, c->membership.members[link].index);
    handing_clear(workload);
    handing_wake_idle(c, now_ns, out);
}

bool evaluating_is_last(const struct coordinator *c, uint32_t attempt, uint32_t evaluation) {
    return attempt == c->recovery.attempt && evaluation == c->steering->evaluation.number;
}

bool evaluating_is_current(const struct coordinator *c, uint32_t attempt, uint32_t evaluation) {
    return c->steering->evaluation.running && evaluating_is_last(c, attempt, evaluation);
}

int on_want(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
            struct output *out) {
    if (evaluating_is_current(c, message->want.attempt, message->want.evaluation))
        handing_give(c, link, now_ns, out);
    else
        c->stale++;
    return 0;
}

/* Whether the next program may go out before every shard has confirmed every fold. A shard gets
 * FOLD before it, on the same connection, and its CHECK finds out if one is missing. So nothing
 * waits for FOLDED, which is a third of what a short evaluation takes. But a program that is
 * journalled must wait: if this process died before it sent FOLD, the next one would send the
 * program alone. */
static bool may_run_ahead(struct coordinator *c, int64_t now_ns) {
    if (now_ns - c->steering->evaluation.started_ns < JOURNAL_UNTIL_NS)
        durability_journal_no_more(c);
    return !c->recovery.journalling || mutant(ROUND_BEFORE_FOLDS);
}

void evaluating_end_if_complete(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (!c->steering->evaluation.running || !plan_complete(&c->steering->plan) ||
        (c->steering->verdicts.unfolded && !may_run_ahead(c, now_ns)))
        return;
    c->steering->evaluation.running = false;
    steering_evaluated(c, now_ns, out);
}

/* The journal's verdicts are in force again before anything else can be counted. */
void evaluating_rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    clear_evaluation(c, now_ns);
    c->steering->evaluation.shared = true; /* replicas bring what the former coordinator gave */
    flushes_rejoin(c, out);
}

/* ---- going on from a journal ----
 *
 * Whether the shards still have what it tells of, and taking that up. */

bool steering_has_program(const struct coordinator *c) {
    return c->steering->program.length > 0;
}

static bool lists(const struct blob *ids, const struct flush_id *id) {
    struct cursor cursor = cursor_over(ids->data, ids->length);
    while (cursor_left(&cursor)) {
        struct flush_id one = flush_id_decode(&cursor);
        if (flush_id_equal(&one, id))
            return true;
    }
    return false;
}

/* folded ⊆ journalled ⊆ folded ∪ staged. If a shard had folded a flush that is not in the journal,
 * its chunks would be counted again. If it had lost a journalled flush, FOLD would find no slice
 * there. */
static bool folds_fit(const struct coordinator *c, const struct message_holding *holding) {
    struct cursor log = cursor_over(c->recovery.rejoined.data, c->recovery.rejoined.length);
    struct bytes encoded;
    struct verdict_entry entry;
    uint32_t journalled_folds = 0;
    while (verdict_next(&log, &encoded, &entry)) {
        bool folded = lists(&holding->folded, &entry.flush);
        if (!folded && !lists(&holding->staged, &entry.flush))
            return false;
        journalled_folds += folded;
    }
    return journalled_folds == holding->folded.length / FLUSH_ID_BYTES ||
           mutant(JOURNAL_NOT_COMPARED);
}

/* Whether a shard that has not run the program has folded what its CHECK asks for. The former
 * coordinator may have sent it behind a FOLD that never came there. */
static bool check_fits(const struct coordinator *c, const struct message_holding *holding) {
    const struct bytes *program = &c->steering->program;
    struct cursor operations = cursor_over(program->data, program->length);
    struct cursor ids = cursor_over(holding->folded.data, holding->folded.length);
    uint64_t folds = holding->folded.length / FLUSH_ID_BYTES, hash = 0;
    struct operation operation;
    while (cursor_left(&ids)) {
        struct flush_id id = flush_id_decode(&ids);
        hash += flush_id_hash(&id);
    }
    while (program_next(&operations, &operation))
        if (operation.code == OPERATION_CHECK &&
            (operation.folds != folds || operation.hash != hash))
            return false;
    return true;
}

/* Whether the program that was sent last began an evaluation. */
static bool begins_evaluation(const struct steering *s) {
    return s->want == OPTIMIZER_EVALUATE || s->want == OPTIMIZER_CURVATURE;
}

bool steering_fits(const struct coordinator *c, const struct message_holding *holding) {
    const struct steering *s = c->steering;
    if (holding->number + 1 == s->round.number) /* not run yet: nothing can have been folded */
        return c->recovery.rejoined.length == 0 && check_fits(c, holding);
    bool evaluating = begins_evaluation(s);
    return holding->number == s->round.number &&
           holding->hash == program_hash(s->program.data, s->program.length) &&
           (!evaluating || (holding->evaluation == s->evaluation.number && folds_fit(c, holding)));
}

/* The journalled program is sent again under its number, as the former coordinator may have died
 * before it sent it. A shard that has run it answers from memory. */
void steering_rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->steering->round.number--;
    steering_send_program(c, out);
    if (begins_evaluation(c->steering))
        evaluating_rejoin(c, now_ns, out);
}

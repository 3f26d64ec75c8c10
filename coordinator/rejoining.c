/* Going on from a journal: whether the shards still have what it tells of, and taking that up. */
#include "base/mutant.h"
#include "coordinator/steering_parts.h"
#include "wire/program.h"

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

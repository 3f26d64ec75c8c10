#include "coordinator/status/tally.h"

#include <string.h>

static void add(uint64_t *total, uint64_t before, uint64_t now) {
    *total += now > before ? now - before : 0;
}

void tally_note(struct tally *tally, const struct coordinator_view *view) {
    if (tally->last.known) {
        add(&tally->evaluations, tally->last.evaluations, view->evaluations);
        add(&tally->minibatches, tally->last.minibatches, view->downpour.done);
        for (unsigned i = 0; i < SAFEGUARDS; i++)
            add(&tally->safeguards[i], tally->last.safeguards[i], view->safeguards[i]);
    }
    tally->last.known = true;
    tally->last.evaluations = view->evaluations;
    tally->last.minibatches = view->downpour.done;
    memcpy(tally->last.safeguards, view->safeguards, sizeof tally->last.safeguards);
}

#include "coordinator/status/tally.h"

#include <string.h>

static void add(uint64_t *total, uint64_t before, uint64_t now) {
    *total += now > before ? now - before : 0;
}

void tally_note(struct tally *tally, const struct coordinator *c) {
    const struct optimizer *o = &c->optimizer;
    if (tally->last.known) {
        add(&tally->evaluations, tally->last.evaluations, c->evaluations);
        for (unsigned i = 0; i < SAFEGUARDS; i++)
            add(&tally->safeguards[i], tally->last.safeguards[i], o->safeguards[i]);
    }
    tally->last.known = true;
    tally->last.evaluations = c->evaluations;
    memcpy(tally->last.safeguards, o->safeguards, sizeof tally->last.safeguards);
}

/* Who was handed which chunks, and backup copies of what takes long: the scheme of MapReduce, with
 * copies only where a fresh one is expected to finish first (Zaharia et al., "Improving MapReduce
 * performance in heterogeneous environments", OSDI 2008). */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/parts.h"

/* A copy must be expected to end earlier by this factor, and to save at least so much. */
#define BACKUP_GAIN 1.5
#define BACKUP_SAVES_NS 20e6

void handing_note(struct worker *replica, struct run run, int64_t now_ns) {
    if (replica->handed_count == replica->handed_capacity) {
        replica->handed_capacity = 2 * replica->handed_capacity + 4;
        replica->handed =
            memory_resize(replica->handed, replica->handed_capacity, sizeof *replica->handed);
    }
    replica->handed[replica->handed_count++] = (struct handed){.run = run, .at_ns = now_ns};
}

void handing_clear(struct worker *replica) {
    replica->handed_count = 0;
}

static void remove_at(struct worker *replica, uint32_t i) {
    replica->handed_count--;
    memmove(replica->handed + i, replica->handed + i + 1,
            (replica->handed_count - i) * sizeof *replica->handed);
}

void handing_forget_counted(struct worker *replica, const struct plan *plan) {
    for (uint32_t i = replica->handed_count; i-- > 0;)
        if (plan_is_counted(plan, replica->handed[i].run))
            remove_at(replica, i);
}

static bool covers(const struct run_list *runs, struct run run) {
    for (uint32_t i = 0; i < runs->length; i++) {
        struct run one = runs->items[i];
        if (one.first <= run.first && run.first + run.count <= one.first + one.count)
            return true;
    }
    return false;
}

void handing_forget(struct worker *replica, const struct run_list *runs) {
    for (uint32_t i = replica->handed_count; i-- > 0;)
        if (covers(runs, replica->handed[i].run))
            remove_at(replica, i);
}

/* How long the owner is expected to need yet. Who is late is expected to be as late again. */
static double remaining_ns(const struct worker *owner, const struct handed *handed,
                           int64_t now_ns) {
    double elapsed = (double)(now_ns - handed->at_ns);
    double total = owner->chunks_per_ns > 0 ? handed->run.count / owner->chunks_per_ns : 0;
    return elapsed < total ? total - elapsed : elapsed;
}

bool handing_backup(struct coordinator *c, uint32_t link, int64_t now_ns, struct run *run) {
    const struct worker *copier = &c->workers[link];
    struct handed *slowest = NULL;
    double longest = BACKUP_SAVES_NS;
    if (copier->handed_count || !(copier->chunks_per_ns > 0))
        return false;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++) {
        struct worker *owner = &c->workers[i];
        for (uint32_t j = 0; j < owner->handed_count && i != link; j++) {
            struct handed *handed = &owner->handed[j];
            double remaining = remaining_ns(owner, handed, now_ns);
            double fresh = handed->run.count / copier->chunks_per_ns;
            if (!handed->backed_up && remaining > longest && remaining > BACKUP_GAIN * fresh) {
                slowest = handed;
                longest = remaining;
            }
        }
    }
    if (!slowest)
        return false;
    slowest->backed_up = true;
    *run = slowest->run;
    return true;
}

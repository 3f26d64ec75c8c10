/* Who was handed which chunks, and backup copies of what takes long: the scheme of MapReduce, with
 * copies only where a fresh one is expected to finish first (Zaharia et al., "Improving MapReduce
 * performance in heterogeneous environments", OSDI 2008). */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/steering_parts.h"

/* A copy must be expected to end earlier by this factor, and to save at least so much. */
#define BACKUP_GAIN 1.5
#define BACKUP_SAVES_NS 20e6

void handing_note(struct workload *workload, struct run run, int64_t now_ns) {
    if (workload->handed_count == workload->handed_capacity) {
        workload->handed_capacity = 2 * workload->handed_capacity + 4;
        workload->handed =
            memory_resize(workload->handed, workload->handed_capacity, sizeof *workload->handed);
    }
    workload->handed[workload->handed_count++] = (struct handed){.run = run, .at_ns = now_ns};
}

void handing_clear(struct workload *workload) {
    workload->handed_count = 0;
}

static void remove_at(struct workload *workload, uint32_t i) {
    workload->handed_count--;
    memmove(workload->handed + i, workload->handed + i + 1,
            (workload->handed_count - i) * sizeof *workload->handed);
}

void handing_forget_counted(struct workload *workload, const struct plan *plan) {
    for (uint32_t i = workload->handed_count; i-- > 0;)
        if (plan_is_counted(plan, workload->handed[i].run))
            remove_at(workload, i);
}

static bool covers(const struct run_list *runs, struct run run) {
    for (uint32_t i = 0; i < runs->length; i++) {
        struct run one = runs->items[i];
        if (one.first <= run.first && run.first + run.count <= one.first + one.count)
            return true;
    }
    return false;
}

void handing_forget(struct workload *workload, const struct run_list *runs) {
    for (uint32_t i = workload->handed_count; i-- > 0;)
        if (covers(runs, workload->handed[i].run))
            remove_at(workload, i);
}

/* How long the owner will still need. One that is late already is taken to need as long again. */
static double remaining_ns(const struct workload *owner, const struct handed *handed,
                           int64_t now_ns) {
    double elapsed = (double)(now_ns - handed->at_ns);
    double total = owner->chunks_per_ns > 0 ? handed->run.count / owner->chunks_per_ns : 0;
    return elapsed < total ? total - elapsed : elapsed;
}

bool handing_backup(struct coordinator *c, uint32_t link, int64_t now_ns, struct run *run) {
    const struct workload *copier = workload_of(c, link);
    struct handed *slowest = NULL;
    double longest = BACKUP_SAVES_NS;
    if (copier->handed_count || !(copier->chunks_per_ns > 0))
        return false;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++) {
        struct workload *owner = workload_of(c, i);
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

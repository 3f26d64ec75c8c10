/* What happens within a run: epochs, steps, evaluations, portions, processes, events. */
#include "base/clock.h"
#include "store/internal.h"

int store_step(struct store *store, int64_t run, const struct store_step *step) {
    return store_collect(
        store, STATEMENT_STEP_INSERT,
        VALUES(integer(run), count(step->step), real(step->loss), real(step->gradient_max),
               real(step->step_length), count(step->trials), count(step->history), text(step->note),
               integer(step->wall_ms), real(step->holdout_loss), real(step->holdout_accuracy)));
}

int store_downpour_epoch(struct store *store, int64_t run, const struct store_epoch *epoch) {
    return store_collect(store, STATEMENT_DOWNPOUR_EPOCH_PUT,
                         VALUES(integer(run), count(epoch->epoch), count(epoch->minibatches),
                                count(epoch->rows), real(epoch->loss), real(epoch->holdout_loss),
                                real(epoch->holdout_accuracy), real(epoch->seconds),
                                integer(epoch->wall_ms)));
}

int store_evaluation(struct store *store, int64_t run, const struct store_evaluation *evaluation) {
    return store_collect(store, STATEMENT_EVALUATION_INSERT,
                         VALUES(integer(run), count(evaluation->attempt),
                                count(evaluation->evaluation), count(evaluation->step),
                                real(evaluation->step_length), real(evaluation->loss),
                                real(evaluation->slope), count(evaluation->examples),
                                real(evaluation->seconds), text(evaluation->outcome)));
}

int store_portion(struct store *store, int64_t run, uint32_t attempt, uint64_t evaluation,
                  uint64_t incarnation, uint32_t sequence, uint32_t first_chunk, uint32_t chunks) {
    return store_collect(store, STATEMENT_PORTION_INSERT,
                         VALUES(integer(run), count(attempt), count(evaluation), count(first_chunk),
                                count(chunks), count(incarnation), count(sequence)));
}

int store_process(struct store *store, int64_t run, const struct store_process_row *process) {
    return store_collect(store, STATEMENT_PROCESS_PUT,
                         VALUES(integer(run), text(process->role), count(process->index),
                                count(process->incarnation), integer(process->pid),
                                text(process->host), text(process->address), text(process->device),
                                text(process->state), integer(clock_wall_ms())));
}

int store_host(struct store *store, int64_t run, const struct store_host *host) {
    return store_collect(store, STATEMENT_HOST_PUT,
                         VALUES(integer(run), count(host->position), text(host->host),
                                count(host->threads), count(host->workers), text(host->state),
                                text(host->why), count(host->failures), integer(clock_wall_ms())));
}

int store_event(struct store *store, int64_t run, const char *kind, const char *words) {
    return store_collect(store, STATEMENT_EVENT_INSERT,
                         VALUES(integer(run), integer(clock_wall_ms()), text(kind), text(words)));
}

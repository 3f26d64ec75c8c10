/* Models, what they were made from, and which of them was live when. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/clock.h"
#include "store/internal.h"

/* ---- models ---- */

int store_model(struct store *store, int64_t run, const char *folder, const char *sha256) {
    return store_collect(
        store, STATEMENT_MODEL_INSERT,
        VALUES(integer(run), integer(clock_wall_ms()), text(folder), text(sha256)));
}

int store_model_figures(struct store *store, int64_t run, const char *figures) {
    return store_collect(store, STATEMENT_MODEL_FIGURES, VALUES(text(figures), integer(run)));
}

int store_model_removed(struct store *store, int64_t run) {
    return store_collect(store, STATEMENT_MODEL_REMOVED,
                         VALUES(integer(clock_wall_ms()), integer(run)));
}

struct each_model {
    int (*each)(void *context, const struct store_model_row *model);
    void *context;
};

static int take_model(void *context, sqlite3_stmt *row) {
    const struct each_model *models = context;
    struct store_model_row model = {
        .run = sqlite3_column_int64(row, 0),
        .wall_ms = sqlite3_column_int64(row, 1),
        .folder = column_text(row, 2),
        .sha256 = column_text(row, 3),
        .removed_ms = sqlite3_column_int64(row, 4),
        .figures = column_text(row, 5),
    };
    return models->each(models->context, &model);
}

int store_models(struct store *store,
                 int (*each)(void *context, const struct store_model_row *model), void *context) {
    return store_run_statement(store, STATEMENT_MODELS, NULL, 0, take_model,
                               &(struct each_model){each, context});
}

int store_models_of_sweep(struct store *store, int64_t sweep,
                          int (*each)(void *context, const struct store_model_row *model),
                          void *context) {
    return store_run_statement(store, STATEMENT_MODELS_OF_SWEEP, VALUES(integer(sweep)), take_model,
                               &(struct each_model){each, context});
}

struct each_kept {
    int (*each)(void *context, int64_t run, int64_t sweep);
    void *context;
};

static int take_kept(void *context, sqlite3_stmt *row) {
    const struct each_kept *kept = context;
    return kept->each(kept->context, sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1));
}

int store_models_kept(struct store *store, int (*each)(void *context, int64_t run, int64_t sweep),
                      void *context) {
    return store_run_statement(store, STATEMENT_MODELS_KEPT, NULL, 0, take_kept,
                               &(struct each_kept){each, context});
}

int store_sweep_run_last(struct store *store, int64_t *sweep) {
    return store_run_statement(store, STATEMENT_SWEEP_RUN_LAST, NULL, 0, store_take_number, sweep);
}

int store_model_run(struct store *store, const char *sha256, int64_t *run) {
    *run = 0;
    return store_run_statement(store, STATEMENT_MODEL_RUN, VALUES(text(sha256)), store_take_number,
                               run);
}

/* ---- what a run was made from ---- */

int store_source(struct store *store, int64_t run, const struct store_source *source) {
    return store_collect(store, STATEMENT_SOURCE_INSERT,
                         VALUES(integer(run), count(source->position), text(source->path),
                                text(source->fingerprint), count(source->bytes),
                                count(source->rows)));
}

struct each_source {
    int (*each)(void *context, const struct store_source *source);
    void *context;
};

static int take_source(void *context, sqlite3_stmt *row) {
    const struct each_source *sources = context;
    struct store_source source = {
        .position = (uint32_t)sqlite3_column_int64(row, 0),
        .path = column_text(row, 1),
        .fingerprint = column_text(row, 2),
        .bytes = (uint64_t)sqlite3_column_int64(row, 3),
        .rows = (uint64_t)sqlite3_column_int64(row, 4),
    };
    return sources->each(sources->context, &source);
}

int store_sources(struct store *store, int64_t run,
                  int (*each)(void *context, const struct store_source *source), void *context) {
    return store_run_statement(store, STATEMENT_SOURCES, VALUES(integer(run)), take_source,
                               &(struct each_source){each, context});
}

/* ---- what is live ---- */

int store_publish(struct store *store, const struct store_publication *publication) {
    return store_run_durably(store, STATEMENT_PUBLICATION_INSERT,
                             VALUES(integer(clock_wall_ms()), text(publication->kind),
                                    integer(publication->run), integer(publication->previous_run),
                                    text(publication->text)));
}

int store_publication_settled(struct store *store, int64_t publication) {
    return store_run_durably(store, STATEMENT_PUBLICATION_SETTLED,
                             VALUES(integer(clock_wall_ms()), integer(publication)));
}

struct each_publication {
    int (*each)(void *context, const struct store_publication *publication);
    void *context;
};

static int take_publication(void *context, sqlite3_stmt *row) {
    const struct each_publication *publications = context;
    struct store_publication publication = {
        .publication = sqlite3_column_int64(row, 0),
        .wall_ms = sqlite3_column_int64(row, 1),
        .kind = column_text(row, 2),
        .run = sqlite3_column_int64(row, 3),
        .previous_run = sqlite3_column_int64(row, 4),
        .text = column_text(row, 5),
        .settled_ms = sqlite3_column_int64(row, 6),
    };
    return publications->each(publications->context, &publication);
}

int store_publications(struct store *store,
                       int (*each)(void *context, const struct store_publication *publication),
                       void *context) {
    return store_run_statement(store, STATEMENT_PUBLICATIONS, NULL, 0, take_publication,
                               &(struct each_publication){each, context});
}

/* ---- sweeps ---- */

/* What a sweep was begun with decides which runs go on, so it has a checksum: over its number, and
 * the texts with their ends. */
static uint64_t checksum_of(const struct store_sweep *sweep) {
    const char *const texts[] = {sweep->identity,     sweep->settings, sweep->data,
                                 sweep->evaluated_on, sweep->sources,  sweep->start_model};
    uint64_t sum = (uint64_t)sweep->sweep;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t pair[2] = {sum, texts[i] ? hash64(texts[i], strlen(texts[i]) + 1) : 0};
        sum = hash64(pair, sizeof pair);
    }
    return sum;
}

int store_sweep_begin(struct store *store, struct store_sweep *sweep) {
    int code = store_begin_durably(store);
    if (!code)
        code = store_run_statement(store, STATEMENT_SWEEP_NEXT, NULL, 0, store_take_number,
                                   &sweep->sweep);
    if (!code)
        code = store_run_statement(
            store, STATEMENT_SWEEP_INSERT,
            VALUES(integer(sweep->sweep), text(sweep->identity), text(sweep->settings),
                   text(sweep->data), text(sweep->evaluated_on), text(sweep->sources),
                   text(sweep->start_model), integer(sweep->started_ms), count(checksum_of(sweep))),
            NULL, NULL);
    code = store_end_durably(store, code);
    assert(code || sweep->sweep > 0);
    if (!code)
        failpoint(FAILPOINT_sweep_begun);
    return code;
}

int store_sweep_end(struct store *store, int64_t sweep, int64_t winner, const char *result) {
    int code = store_run_durably(
        store, STATEMENT_SWEEP_END,
        VALUES(integer(clock_wall_ms()), integer(winner), text(result), integer(sweep)));
    if (!code)
        failpoint(FAILPOINT_sweep_ended);
    return code;
}

struct each_sweep {
    struct store *store;
    int (*each)(void *context, const struct store_sweep *sweep);
    void *context;
};

static int take_sweep(void *context, sqlite3_stmt *row) {
    const struct each_sweep *sweeps = context;
    struct store_sweep sweep = {
        .sweep = sqlite3_column_int64(row, 0),
        .identity = column_text(row, 1),
        .settings = column_text(row, 2),
        .data = column_text(row, 3),
        .evaluated_on = column_text(row, 4),
        .sources = column_text(row, 5),
        .start_model = column_text(row, 6),
        .started_ms = sqlite3_column_int64(row, 7),
        .ended_ms = sqlite3_column_int64(row, 8),
        .winner = sqlite3_column_int64(row, 9),
        .result = column_text(row, 10),
        .decided = sqlite3_column_int64(row, 12),
    };
    if ((uint64_t)sqlite3_column_int64(row, 11) == checksum_of(&sweep))
        return sweeps->each(sweeps->context, &sweep);
    char *how = memory_format("the record of sweep %lld", (long long)sweep.sweep);
    int code = store_damaged(sweeps->store, how);
    free(how);
    return code;
}

int store_sweeps(struct store *store, int (*each)(void *context, const struct store_sweep *sweep),
                 void *context) {
    return store_run_statement(store, STATEMENT_SWEEPS, NULL, 0, take_sweep,
                               &(struct each_sweep){store, each, context});
}

int store_sweep_find(struct store *store, int64_t sweep,
                     int (*each)(void *context, const struct store_sweep *sweep), void *context) {
    return store_run_statement(store, STATEMENT_SWEEP, VALUES(integer(sweep)), take_sweep,
                               &(struct each_sweep){store, each, context});
}

int store_sweep_last_of(struct store *store, const char *identity,
                        int (*each)(void *context, const struct store_sweep *sweep),
                        void *context) {
    return store_run_statement(store, STATEMENT_SWEEP_LAST_OF, VALUES(text(identity)), take_sweep,
                               &(struct each_sweep){store, each, context});
}

int store_sweep_last(struct store *store, int64_t *sweep) {
    return store_run_statement(store, STATEMENT_SWEEP_LAST, NULL, 0, store_take_number, sweep);
}

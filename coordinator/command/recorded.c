#include "coordinator/command/recorded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/record_reader.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/report.h"
#include "model/export.h"

#define WEIGHTS_MOST 20 /* of an output */
#define OUTPUTS_MOST 30
#define PAUSE_NS (NS_PER_S / 2)
#define PAUSE_SHARE 10 /* a coordinator that answers slowly is asked a tenth of the time */

static void note_file(const char *state, const char *name, int64_t stamp[2]) {
    struct stat status = {0};
    char *path = path_join(state, name);
    (void)stat(path, &status);
    free(path);
    stamp[0] = status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec;
    stamp[1] = status.st_size;
}

static void note_files(const char *state, int64_t stamp[4]) {
    note_file(state, "dml.db", stamp);
    note_file(state, "dml.db-wal", stamp + 2);
}

static void take_status(struct recorded *record, json_t *status, json_t *runs) {
    json_decref(record->status);
    json_decref(record->runs);
    json_decref(record->heaviest);
    record->heaviest = NULL;
    record->status = status;
    record->runs = runs;
}

static int ask_coordinator(struct recorded *record) {
    json_t *status = NULL, *runs = NULL;
    int code = ask_live_status(record->state, &status);
    if (!code)
        code = ask_live_runs(record->state, &runs);
    if (code)
        json_decref(status);
    else
        take_status(record, status, runs);
    return code;
}

/* What is recorded, in memory, and the status of its newest run. */
static int read_record(const char *state, struct store **made, json_t **status) {
    struct record_reader reader;
    int code = record_reader_open(state, &reader);
    if (!code)
        code = store_copy(reader.store, made);
    if (!code)
        code = report_status(*made, status);
    if (!code)
        record_reader_mark(&reader, *status);
    record_reader_close(&reader);
    return code;
}

/* Weights of the newest run's model. That there is none, that it is a network, or that it was
 * damaged, shows no weights, and hides nothing else. */
static json_t *find_heaviest(const char *state, const json_t *status) {
    struct model *model;
    if (!json_is_string(json_object_get(status, "model_sha256")))
        return NULL;
    char *path = memory_format("%s/models/%lld", state, member_count(status, "run"));
    int code = model_open(path, &model);
    free(path);
    json_t *heaviest = code ? NULL : export_top_json(model, WEIGHTS_MOST, OUTPUTS_MOST);
    if (!code)
        model_close(model);
    error_clear();
    return heaviest;
}

static int read_store(struct recorded *record) {
    struct store *made = NULL;
    json_t *status = NULL;
    int code = read_record(record->state, &made, &status);
    if (code) {
        store_close(made);
        return code;
    }
    store_close(record->store);
    record->store = made;
    take_status(record, status, NULL);
    record->heaviest = find_heaviest(record->state, status);
    note_files(record->state, record->stamp);
    return 0;
}

static int look(struct recorded *record) {
    int64_t stamp[4];
    note_files(record->state, stamp);
    if (record->status && !record->runs && memcmp(stamp, record->stamp, sizeof stamp) == 0)
        return 0;
    int code = ask_coordinator(record);
    if (code != ERROR_UNAVAILABLE && code != ERROR_PERMISSION)
        return code;
    error_clear();
    return read_store(record);
}

int recorded_refresh(struct recorded *record) {
    int64_t begun_ns = clock_monotonic_ns();
    if (record->status && begun_ns < record->again_ns)
        return 0;
    int code = look(record);
    int64_t now_ns = clock_monotonic_ns(), slow_ns = PAUSE_SHARE * (now_ns - begun_ns);
    record->again_ns = now_ns + (slow_ns > PAUSE_NS ? slow_ns : PAUSE_NS);
    return code;
}

void recorded_release(struct recorded *record) {
    store_close(record->store);
    take_status(record, NULL, NULL);
    record->store = NULL;
}

struct api recorded_api(const struct recorded *record, const struct http_counts *counts) {
    return (struct api){.live = {.run = (int64_t)member_count(record->status, "run"),
                                 .started_ms = (int64_t)member_count(record->status, "started_ms")},
                        .status = record->status,
                        .heaviest = record->heaviest,
                        .runs = record->runs,
                        .store = record->store,
                        .counts = counts};
}

#define _GNU_SOURCE
#include "coordinator/command/recorded.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/ask.h"
#include "coordinator/status/report.h"
#include "coordinator/status/run_folder.h"

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
    assert(status || !runs); /* a live coordinator gives both */
    json_decref(record->status);
    json_decref(record->runs);
    about_model_release(&record->about);
    record->has_about = false;
    record->status = status;
    record->runs = runs;
}

void recorded_read_model(struct recorded *record) {
    assert(!record->has_about || record->status);
    if (record->has_about || record->runs ||
        !json_is_string(json_object_get(record->status, "model_sha256")))
        return;
    char *path = run_model_folder(record->state, member_count(record->status, "run"));
    about_model_read(path, &record->about);
    record->has_about = true;
    free(path);
}

/* Reads what is recorded into memory, the status of its newest run, and the stamp of what was read.
 * Without the lock the files may change as soon as they are read; with it, only as they are closed.
 */
static int read_store(struct recorded *record) {
    struct record_reader reader;
    struct store *made = NULL;
    json_t *status = NULL;
    int64_t stamp[4];
    note_files(record->state, stamp);
    int code = record_reader_open(record->state, &reader);
    if (!code)
        code = store_copy(reader.store, &made);
    if (!code && (code = report_status(made, &status)))
        ask_name_folder(code, record->state);
    if (!code)
        record_reader_mark(&reader, status);
    bool locked = !reader.copy;
    record_reader_close(&reader);
    if (locked)
        note_files(record->state, stamp);
    assert(code || status);
    record->empty = made && code == ERROR_UNAVAILABLE;
    if (code && !record->empty) {
        store_close(made);
        return code;
    }
    store_close(record->store);
    record->store = made;
    take_status(record, status, NULL);
    memcpy(record->stamp, stamp, sizeof stamp);
    return code;
}

static void note_outcome(struct recorded *record, int code) {
    free(record->trouble);
    record->code = code;
    record->trouble = code ? memory_copy_string(error_text()) : NULL;
    error_clear();
}

void recorded_ask(struct recorded *record) {
    int64_t stamp[4];
    json_t *status = NULL, *runs = NULL;
    record->begun_ns = clock_monotonic_ns();
    if (record->asked || record->begun_ns < record->again_ns)
        return;
    note_files(record->state, stamp);
    if (record->status && !record->runs && memcmp(stamp, record->stamp, sizeof stamp) == 0)
        return;
    int code = ask_live(record->state, QUESTION_STATUS, &status);
    if (!code)
        code = ask_live(record->state, QUESTION_RUNS, &runs);
    if (code)
        json_decref(status);
    else
        take_status(record, status, runs);
    note_outcome(record, code);
    record->asked = true;
}

int recorded_refresh(struct recorded *record) {
    recorded_ask(record);
    if (record->asked && (record->code == ERROR_UNAVAILABLE || record->code == ERROR_PERMISSION))
        note_outcome(record, read_store(record));
    if (record->asked) {
        int64_t now_ns = clock_monotonic_ns(), slow_ns = PAUSE_SHARE * (now_ns - record->begun_ns);
        bool pauses = record->status || slow_ns > PAUSE_NS; /* a first run is shown at once */
        record->again_ns = pauses ? now_ns + (slow_ns > PAUSE_NS ? slow_ns : PAUSE_NS) : 0;
        record->asked = false;
    }
    assert(!record->code == !record->trouble && !record->asked);
    return record->code ? error_set(record->code, "%s", record->trouble) : 0;
}

void recorded_release(struct recorded *record) {
    store_close(record->store);
    take_status(record, NULL, NULL);
    record->store = NULL;
    free(record->trouble);
    record->trouble = NULL;
}

struct api recorded_api(const struct recorded *record, const struct http_counts *counts) {
    return (struct api){.live = {.run = (int64_t)member_count(record->status, "run"),
                                 .started_ms = (int64_t)member_count(record->status, "started_ms")},
                        .status = record->status,
                        .heaviest = record->about.heaviest,
                        .summary = record->about.summary,
                        .importance = record->about.importance,
                        .runs = record->runs,
                        .store = record->store,
                        .counts = counts};
}

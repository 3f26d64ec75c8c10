#include "coordinator/dispatch/output.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

void output_init(struct output *output) {
    *output = (struct output){0};
    outbox_init(&output->messages);
}

void output_release(struct output *output) {
    assert(output->record_count <= output->record_capacity);
    outbox_release(&output->messages);
    free(output->records);
    bytes_release(&output->blobs);
    *output = (struct output){0};
}

void output_clear(struct output *output) {
    assert(output->record_count <= output->record_capacity);
    outbox_clear(&output->messages);
    output->record_count = 0;
    output->journals = output->urgent = false;
    bytes_clear(&output->blobs);
}

bool output_may_wait(const struct output *output) {
    return output->journals && !output->urgent;
}

struct record *output_add(struct output *output, enum record_kind kind) {
    assert(kind <= RECORD_SLICE);
    MEMORY_ROOM(output->records, output->record_count, output->record_capacity);
    struct record *record = &output->records[output->record_count++];
    *record = (struct record){.kind = kind};
    output->journals |= kind == RECORD_JOURNAL;
    output->urgent |= kind != RECORD_JOURNAL && kind != RECORD_PORTION;
    return record;
}

void output_journal(struct output *out, const struct bytes *entry, bool begins) {
    assert(entry->length > 0);
    struct record *record = output_add(out, RECORD_JOURNAL);
    record->journal.offset = out->blobs.length;
    record->journal.length = entry->length;
    record->journal.begins = begins;
    bytes_append(&out->blobs, entry->data, entry->length);
    assert(record->journal.offset + entry->length == out->blobs.length);
}

void output_event(struct output *out, const char *kind, const char *format, ...) {
    assert(kind && *kind);
    struct record *record = output_add(out, RECORD_EVENT);
    va_list arguments;
    record->event.kind = kind;
    va_start(arguments, format);
    vsnprintf(record->event.text, sizeof record->event.text, format, arguments);
    va_end(arguments);
}

void output_worker(struct output *out, uint32_t link, const char *state) {
    assert(state && *state);
    struct record *record = output_add(out, RECORD_WORKER);
    record->worker.link = link;
    record->worker.state = state;
}

/* What options are called, and what was found out about files: for reading others alike, and for
 * people. */
#include "data/source/source.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

const char *const source_format_names[] = {
    [FORMAT_AUTO] = "auto",       [FORMAT_LIBSVM] = "libsvm", [FORMAT_CSV] = "csv",
    [FORMAT_IDX] = "idx",         [FORMAT_NPY] = "npy",       [FORMAT_JSONL] = "jsonl",
    [FORMAT_PARQUET] = "parquet", [FORMAT_NPZ] = "npz",       [FORMATS] = NULL,
};

const char *const source_quote_names[] = {
    [CSV_QUOTE_AUTO] = "auto", [CSV_QUOTE_DOUBLE] = "double", [CSV_QUOTE_NONE] = "none", NULL};

const char *const source_folders_names[] = {
    [CSV_FOLDERS_AUTO] = "auto", [CSV_FOLDERS_ALL] = "all", [CSV_FOLDERS_NONE] = "none", NULL};

static uint32_t same_or_0(uint32_t a, uint32_t b, bool first) {
    return first || a == b ? b : 0;
}

void source_shape_release(struct source_shape *shape) {
    table_free(shape->table);
    shape->table = NULL;
}

void source_shape_add(struct source_shape *shape, const struct source_report *report, bool first) {
    enum csv_header header = !source_is_table(report->format) ? CSV_HEADER_AUTO
                             : report->column_names           ? CSV_HEADER_YES
                                                              : CSV_HEADER_NO;
    if (first || shape->format != report->format)
        shape->format = first ? report->format : FORMAT_AUTO;
    if (first || shape->header != header)
        shape->header = first ? header : CSV_HEADER_AUTO;
    shape->columns = same_or_0(shape->columns, report->columns, first);
    shape->label_column = same_or_0(shape->label_column, report->label_column, first);
    if (shape->table && report->table)
        table_add_columns(shape->table, report->table);
    else if (report->table)
        shape->table = table_copy(report->table);
    snprintf(shape->label, sizeof shape->label, "%u", shape->label_column);
}

struct source_options source_options_alike(const struct source_options *options,
                                           const struct source_shape *shape) {
    struct source_options alike = *options;
    if (shape->format != FORMAT_AUTO)
        alike.format = shape->format;
    if (shape->header != CSV_HEADER_AUTO)
        alike.syntax.header = shape->header;
    alike.table.known = shape->table;
    if (shape->table) {
        /* the table tells them */
        alike.label.column = alike.property.column[ROW_WEIGHT] = alike.property.column[ROW_OFFSET] =
            alike.property.column[ROW_EXPOSURE] = NULL;
        return alike;
    }
    if (!alike.label.column && shape->label_column)
        alike.label.column = shape->label;
    alike.table.columns = shape->columns;
    return alike;
}

/* ---- bad lines ---- */

#define REASONS_MAX 100
#define REASONS_SHOWN 10u

static void note_reason(struct source_report *report, char *reason) {
    uint64_t kept = report->rejected < REASONS_MAX ? report->rejected : REASONS_MAX;
    if (kept == REASONS_MAX) {
        free(reason);
        return;
    }
    report->rejected_reasons =
        memory_resize(report->rejected_reasons, kept + 2, sizeof *report->rejected_reasons);
    report->rejected_reasons[kept] = reason;
    report->rejected_reasons[kept + 1] = NULL;
}

int source_reject(struct source_report *report, const char *path, uint64_t limit, uint64_t line,
                  const char *why) {
    assert(report->rejected <= limit);
    char *reason = memory_format("%s:%llu: %s", path, (unsigned long long)line, why);
    if (report->rejected == limit) {
        if (limit)
            error_set(ERROR_DATA,
                      "%s; this is one more malformed line than the %llu that "
                      "bad_lines allows",
                      reason, (unsigned long long)limit);
        else
            error_set(ERROR_DATA, "%s; bad_lines = NUMBER skips up to so many such lines", reason);
        free(reason);
        return ERROR_DATA;
    }
    note_reason(report, reason);
    report->rejected++;
    return 0;
}

void source_warn_rejected(const char *path, uint64_t rejected, const char *const *reason,
                          uint32_t reasons) {
    uint32_t shown = reasons < REASONS_SHOWN ? reasons : REASONS_SHOWN;
    for (uint32_t i = 0; i < shown; i++)
        log_warning("skipped: %s", reason[i]);
    if (rejected > shown)
        log_warning("%s: skipped %llu malformed lines in all, of which the first %u are shown",
                    path, (unsigned long long)rejected, shown);
}

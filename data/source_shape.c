/* What was found out about files: for reading others alike, and for people. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/source.h"

const char *const source_format_names[] = {
    [FORMAT_AUTO] = "auto", [FORMAT_LIBSVM] = "libsvm", [FORMAT_CSV] = "csv",
    [FORMAT_IDX] = "idx",   [FORMAT_NPY] = "npy",       [FORMATS] = NULL,
};

static uint32_t same_or_0(uint32_t a, uint32_t b, bool first) {
    return first || a == b ? b : 0;
}

void source_shape_release(struct source_shape *shape) {
    table_free(shape->table);
    shape->table = NULL;
}

void source_shape_add(struct source_shape *shape, const struct source_report *report, bool first) {
    enum csv_header header = report->format != FORMAT_CSV ? CSV_HEADER_AUTO
                             : report->column_names       ? CSV_HEADER_YES
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
        alike.header = shape->header;
    alike.table = shape->table;
    if (shape->table) {
        alike.label = alike.weight = NULL; /* the table tells them */
        return alike;
    }
    if (!alike.label && shape->label_column)
        alike.label = shape->label;
    alike.columns = shape->columns;
    return alike;
}

/* ---- bad lines ---- */

#define REASONS_MAX 100

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
    char *reason = memory_format("%s:%llu: %s", path, (unsigned long long)line, why);
    if (report->rejected == limit) {
        if (limit)
            error_set(ERROR_DATA,
                      "%s; this is one more malformed line than the %llu that "
                      "bad_lines allows",
                      reason, (unsigned long long)limit);
        else
            error_set(ERROR_DATA, "%s", reason);
        free(reason);
        return ERROR_DATA;
    }
    note_reason(report, reason);
    report->rejected++;
    return 0;
}

void source_warn_rejected(const char *path, uint64_t rejected, const char *const *reason,
                          uint32_t reasons) {
    for (uint32_t i = 0; i < reasons; i++)
        log_warning("skipped: %s", reason[i]);
    if (rejected > reasons)
        log_warning("%s: skipped %llu malformed lines in all", path, (unsigned long long)rejected);
}

#define _GNU_SOURCE

#include "coordinator/command/print.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h> /* defines LOG_INFO and others, as base/log.h does: no file may include both */
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/resources.h"
#include "base/text.h"
#include "coordinator/status/figures.h"

static int write_stream(FILE *stream, const char *path, output_write *write, void *context) {
    int code = write(context, stream);
    if (!code && (fflush(stream) || ferror(stream)))
        code = error_set_stream(stream, path);
    return code;
}

static int write_beside(const struct new_file *file, output_write *write, void *context) {
    int descriptor = dup(file->descriptor);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!stream) {
        if (descriptor >= 0)
            close(descriptor);
        return error_set_errno(ERROR_CREATE, "cannot create %s", file->path);
    }
    int code = write_stream(stream, file->path, write, context);
    if (fclose(stream) && !code)
        code = error_set_errno(ERROR_IO, "cannot write %s", file->path);
    return code;
}

int output_file_write(const char *path, output_write *write, void *context) {
    struct stat status;
    struct new_file file;
    if (!path || strcmp(path, "-") == 0)
        return write_stream(stdout, "standard output", write, context);
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return error_set(ERROR_CREATE, "%s is no regular file; `-o -` is standard output", path);
    int code = new_file_open(&file, path);
    if (code)
        return code;
    code = write_beside(&file, write, context);
    if (code) {
        new_file_discard(&file);
        return code;
    }
    return new_file_publish(&file);
}

/* ---- figures of a model ---- */

#define CLASSES_PRINTED_MAX 100
#define MATRIX_PRINTED_MAX 16 /* classes; so many fit beside each other */
#define NAME_COLUMNS 16
#define CELL_COLUMNS 10

/* How wide a column is that has names of classes: as the longest, if a line has room for that. */
static int columns_for(const json_t *classes, int least, int room) {
    int longest = least;
    size_t i;
    json_t *class;
    json_array_foreach(classes, i, class) {
        const int columns = terminal_text_columns(member_text(class, "class"));
        longest = columns > longest ? columns : longest;
    }
    return longest < room ? longest : room;
}

static void print_name(const char *name, int columns, FILE *out) {
    terminal_put_cell(out, false, STYLE_PLAIN, name, columns);
}

static void print_cell(const json_t *value, int columns, FILE *out) {
    if (json_is_number(value))
        fprintf(out, " %*.5g", columns, json_number_value(value));
    else
        fprintf(out, " %*s", columns, "-");
}

static void print_count(const json_t *value, int columns, FILE *out) {
    if (json_is_integer(value))
        fprintf(out, " %*lld", columns, (long long)json_integer_value(value));
    else
        print_cell(value, columns, out);
}

/* Figures of classes, by their names in JSON. Two classes have no figures of their ranking: those
 * of the one are those of the other. */
static const struct {
    const char *member, *heading;
} columns[] = {{"precision", "precision"},
               {"recall", "recall"},
               {"f1", "f1"},
               {"auc", "auc"},
               {"average_precision", "avg. prec."}};
#define COLUMNS (sizeof columns / sizeof columns[0])

/* A class, and where it stands among all. */
struct class_row {
    const json_t *class;
    long long examples;
    size_t place;
};

static int compare_support(const void *a, const void *b) {
    const struct class_row *x = a, *y = b;
    return x->examples != y->examples ? (x->examples < y->examples) - (x->examples > y->examples)
                                      : (x->place > y->place) - (x->place < y->place);
}

/* From the class that most examples have to that of the fewest. */
static void print_classes(const json_t *classes, FILE *out) {
    const size_t count = json_array_size(classes);
    assert(count > 0);
    struct class_row *rows = memory_new(count, sizeof *rows);
    for (size_t k = 0; k < count; k++) {
        const json_t *class = json_array_get(classes, k);
        rows[k] = (struct class_row){class, member_count(class, "examples"), k};
    }
    qsort(rows, count, sizeof *rows, compare_support);
    const json_t *first = json_array_get(classes, 0);
    const int others = (1 + (int)COLUMNS) * (CELL_COLUMNS + 1);
    const int names =
        columns_for(classes, NAME_COLUMNS, terminal_room(STDOUT_FILENO, NAME_COLUMNS, others));
    putc('\n', out);
    print_name("class", names, out);
    fprintf(out, " %*s", CELL_COLUMNS, "examples");
    for (size_t i = 0; i < COLUMNS; i++)
        if (json_object_get(first, columns[i].member))
            fprintf(out, " %*s", CELL_COLUMNS, columns[i].heading);
    putc('\n', out);
    for (size_t k = 0; k < count; k++) {
        const json_t *class = rows[k].class;
        print_name(member_text(class, "class"), names, out);
        print_count(json_object_get(class, "examples"), CELL_COLUMNS, out);
        for (size_t i = 0; i < COLUMNS; i++)
            if (json_object_get(class, columns[i].member))
                print_cell(json_object_get(class, columns[i].member), CELL_COLUMNS, out);
        putc('\n', out);
    }
    free(rows);
}

static void print_matrix(const json_t *matrix, const json_t *classes, FILE *out) {
    size_t k, i;
    json_t *row, *cell;
    const int count = (int)json_array_size(classes);
    /* The line is shared evenly: a column of names before it, and one for each class. */
    const int share = terminal_room(STDOUT_FILENO, CELL_COLUMNS, 0);
    const int room = share == INT_MAX ? INT_MAX : share / (count + 1) - 1;
    const int cells = columns_for(classes, CELL_COLUMNS, room > CELL_COLUMNS ? room : CELL_COLUMNS);
    const int names = cells > NAME_COLUMNS ? cells : NAME_COLUMNS;
    putc('\n', out);
    print_name("as predicted:", names, out);
    json_array_foreach(classes, k, row) { /* at the right of a column */
        const char *name = member_text(row, "class");
        const int taken = terminal_text_columns(name);
        fprintf(out, " %*s", taken < cells ? cells - taken : 0, "");
        terminal_put_cut(out, false, STYLE_PLAIN, name, cells);
    }
    putc('\n', out);
    json_array_foreach(matrix, k, row) {
        print_name(member_text(json_array_get(classes, k), "class"), names, out);
        json_array_foreach(row, i, cell) print_count(cell, cells, out);
        putc('\n', out);
    }
}

/* A table with a heading over each column: its members of a list of objects. */
static void print_table(const json_t *rows, const char *first, const char *const *members,
                        FILE *out) {
    size_t i;
    json_t *row;
    fprintf(out, "\n%-*s", NAME_COLUMNS, first);
    for (const char *const *member = members; *member; member++)
        fprintf(out, " %*s", CELL_COLUMNS + 1, *member);
    putc('\n', out);
    json_array_foreach(rows, i, row) {
        fprintf(out, "%-*.4g", NAME_COLUMNS, member_number(row, first));
        for (const char *const *member = members; *member; member++)
            fprintf(out, " %*.5g", CELL_COLUMNS + 1, member_number(row, *member));
        putc('\n', out);
    }
}

void curves_print(const json_t *curves, FILE *out) {
    static const char *const of_threshold[] = {"precision", "recall", "f1", "share", NULL};
    static const char *const of_share[] = {"recall", "lift", NULL};
    static const char *const of_tenth[] = {"to", "examples", "probability", "frequency", NULL};
    if (!curves)
        return;
    print_table(json_object_get(curves, "thresholds"), "threshold", of_threshold, out);
    print_table(json_object_get(curves, "gains"), "share", of_share, out);
    if (json_object_get(curves, "reliability"))
        print_table(json_object_get(curves, "reliability"), "from", of_tenth, out);
}

void figures_print(json_t *figures, FILE *out) {
    const char *name;
    json_t *value;
    json_object_foreach(figures, name, value) {
        if (json_is_array(value) || json_is_object(value))
            continue;
        fprintf(out, "%-17s ", name);
        if (json_is_integer(value))
            fprintf(out, "%lld", (long long)json_integer_value(value));
        else if (json_is_real(value))
            fprintf(out, "%.10g", json_real_value(value));
        else
            fputs("not defined", out);
        if (strcmp(name, "weight") == 0)
            fputs(" in all; all figures are weighted", out);
        putc('\n', out);
    }
    const json_t *classes = json_object_get(figures, "classes");
    const json_t *matrix = json_object_get(figures, "confusion");
    size_t count = json_array_size(classes);
    if (count && count <= CLASSES_PRINTED_MAX)
        print_classes(classes, out);
    if (matrix && count <= MATRIX_PRINTED_MAX)
        print_matrix(matrix, classes, out);
}

static void print_role(const char *role, uint32_t count, double bytes) {
    printf(", %u %s%s of %s", count, role, count == 1 ? "" : "s", memory_words(bytes));
}

void need_print(const struct memory_need *need, const char *before) {
    if (!(need->all > 0))
        return;
    assert(need->shards > 0 && need->replicas > 0);
    printf("%sabout %s in all: the coordinator %s", before, memory_words(need->all),
           memory_words(need->coordinator));
    print_role("shard", need->shards, need->shard);
    print_role("replica", need->replicas, need->replica);
    char *why = memory_need_exceeds(need);
    printf("%s%s\n", why ? "; it may not suffice: " : "", why ? why : "");
    free(why);
}

void need_add(const struct memory_need *need, json_t *object) {
    if (need->all > 0)
        json_object_set_new(object, "memory_bytes",
                            json_pack("{s:f, s:f, s:f, s:f}", "all", need->all, "coordinator",
                                      need->coordinator, "shard", need->shard, "replica",
                                      need->replica));
}

void notice_send(const char *job, bool wrong, const char *text) {
    openlog("dml", LOG_PID, LOG_USER);
    syslog(wrong ? LOG_ERR : LOG_INFO, "%s: %s", job, text);
    closelog();
}

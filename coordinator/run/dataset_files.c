/* The files that a job names, and the columns that they have together. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/source/input.h"
#include "coordinator/run/dataset.h"

static int find_by(int (*search)(const char *, const char *const *, char ***),
                   const struct job *job, const char *key, char *const *patterns, char ***paths) {
    if (!patterns[0]) {
        *paths = memory_new(1, sizeof **paths);
        return 0;
    }
    int code = search(job->folder, (const char *const *)patterns, paths);
    return code ? job_refuse_key(job, key, code) : 0;
}

static int find_files(const struct job *job, const char *key, char *const *patterns,
                      char ***paths) {
    return find_by(source_paths, job, key, patterns, paths);
}

/* The files of `what` for the files of `of`. One of them may serve several. */
static int find_all(const struct job *job, const char *what, const char *key, char *const *patterns,
                    const char *of, char *const *files, char ***paths) {
    int code = find_by(source_paths_all, job, key, patterns, paths);
    unsigned count = code ? 0 : names_count(*paths), wanted = names_count(files);
    if (code || !count || count == wanted)
        return code;
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: %u file%s of %s for %u file%s of `%s`; allowed: one for "
                     "each, in the same order",
                     job->file, key, count, count == 1 ? "" : "s", what, wanted,
                     wanted == 1 ? "" : "s", of);
}

static int find_beside(const struct job *job, struct dataset_paths *paths) {
    const struct {
        const char *what, *key;
        char *const *patterns;
        const char *of;
        char *const *files;
        char ***paths;
    } lists[] = {
        {"weights", "weights", job->weights, "data", paths->data,
         &paths->beside_data.property[ROW_WEIGHT]},
        {"weights", "test_weights", job->test_weights, "test", paths->test,
         &paths->beside_test.property[ROW_WEIGHT]},
        {"weights", "holdout_weights", job->holdout_weights, "holdout", paths->holdout,
         &paths->beside_holdout.property[ROW_WEIGHT]},
        {"offsets", "offsets", job->offsets, "data", paths->data,
         &paths->beside_data.property[ROW_OFFSET]},
        {"offsets", "test_offsets", job->test_offsets, "test", paths->test,
         &paths->beside_test.property[ROW_OFFSET]},
        {"offsets", "holdout_offsets", job->holdout_offsets, "holdout", paths->holdout,
         &paths->beside_holdout.property[ROW_OFFSET]},
        {"exposures", "exposures", job->exposures, "data", paths->data,
         &paths->beside_data.property[ROW_EXPOSURE]},
        {"exposures", "test_exposures", job->test_exposures, "test", paths->test,
         &paths->beside_test.property[ROW_EXPOSURE]},
        {"exposures", "holdout_exposures", job->holdout_exposures, "holdout", paths->holdout,
         &paths->beside_holdout.property[ROW_EXPOSURE]},
        {"labels", "labels", job->labels, "data", paths->data, &paths->beside_data.labels},
        {"labels", "test_labels", job->test_labels, "test", paths->test,
         &paths->beside_test.labels},
        {"labels", "holdout_labels", job->holdout_labels, "holdout", paths->holdout,
         &paths->beside_holdout.labels},
    };
    int code = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !code; i++)
        code = find_all(job, lists[i].what, lists[i].key, lists[i].patterns, lists[i].of,
                        lists[i].files, lists[i].paths);
    return code;
}

/* A model cannot be evaluated on a file that it is trained on, so it is refused as holdout. As test
 * data it is only warned of: its figures decide nothing. */
static int check_apart(const struct job *job, const struct dataset_paths *paths) {
    const char *trained;
    const char *both = source_paths_shared(paths->holdout, paths->data, &trained);
    if (both)
        return error_set(ERROR_CONFIG,
                         "%s: key `holdout`: %s is one of the files of `data`, too%s%s; allowed: "
                         "files that are not trained on",
                         job->file, both, strcmp(both, trained) ? ", as " : "",
                         strcmp(both, trained) ? trained : "");
    both = source_paths_shared(paths->test, paths->data, &trained);
    if (both)
        log_warning("%s: key `test`: %s is one of the files of `data`, too: figures on rows that "
                    "were trained on say little about others",
                    job->file, both);
    return 0;
}

/* Standard input can be read once. */
static int check_input(const struct job *job, const struct dataset_paths *paths) {
    char *const *lists[] = {paths->data, paths->test, paths->holdout};
    unsigned inputs = 0;
    for (int i = 0; i < 3; i++)
        for (char *const *path = lists[i]; path && *path; path++)
            inputs += source_is_input(*path);
    if (inputs < 2)
        return 0;
    return error_set(ERROR_CONFIG,
                     "%s: `-`, standard input, stands %u times in `data`, `test` and `holdout`; "
                     "allowed: once",
                     job->file, inputs);
}

int dataset_find(const struct job *job, const struct table *order, struct dataset_paths *paths) {
    struct source_options options = job->source;
    options.table.order = order;
    *paths = (struct dataset_paths){0};
    int code = find_files(job, "data", job->data, &paths->data);
    if (!code)
        code = find_files(job, "test", job->test, &paths->test);
    if (!code)
        code = find_files(job, "holdout", job_holdout_paths(job), &paths->holdout);
    if (!code)
        code = find_beside(job, paths);
    if (!code)
        code = check_input(job, paths);
    if (!code)
        code = check_apart(job, paths);
    if (code)
        return code;
    source_find_folders(job->folder, paths->data, &options, true, &paths->beside_data);
    source_find_folders(job->folder, paths->test, &options, false, &paths->beside_test);
    source_find_folders(job->folder, paths->holdout, &options, false, &paths->beside_holdout);
    return 0;
}

void dataset_paths_release(struct dataset_paths *paths) {
    names_free(paths->data);
    names_free(paths->test);
    names_free(paths->holdout);
    source_beside_release(&paths->beside_data);
    source_beside_release(&paths->beside_test);
    source_beside_release(&paths->beside_holdout);
    *paths = (struct dataset_paths){0};
}

void dataset_choose_missing(struct source_options *options, unsigned files) {
    if (options->table.missing_columns == MISSING_COLUMNS_AUTO && files > 1)
        options->table.missing_columns = MISSING_COLUMNS_MISSING;
    options->table.adds_columns =
        options->table.missing_columns == MISSING_COLUMNS_MISSING && files > 1;
}

/* The number of the last column of that name, from 1; 0: there is none. */
static uint32_t last_named(const struct table *table, const char *name) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < table->columns; i++)
        if (table->column[i].name && !strcmp(table->column[i].name, name))
            last = i + 1;
    return last;
}

/* How many columns of the table a file with these columns needs. */
static uint32_t columns_needed(const struct table *table, const struct table *file, bool adds) {
    uint32_t needed = 0;
    for (uint32_t i = 0; i < table->columns; i++)
        if (table->column[i].kind == COLUMN_LABEL || table->column[i].kind == COLUMN_WEIGHT)
            needed = i + 1;
    assert(table_is_named(file));
    for (uint32_t i = 0; i < file->columns; i++) {
        uint32_t number = last_named(table, file->column[i].name);
        if (!number && adds) /* it becomes the next */
            return table->columns;
        needed = number > needed ? number : needed;
        for (uint32_t part = number; number && part < table->columns; part++)
            if (table->column[part].is_part && table->column[part].date == number - 1)
                needed = part + 1 > needed ? part + 1 : needed;
    }
    return needed;
}

struct table *dataset_table_for(const struct source_options *options, const char *path) {
    const struct table *table = options->table.known;
    struct table *file = NULL, *shorter = NULL;
    if (options->table.missing_columns != MISSING_COLUMNS_MISSING || !table || options->streams)
        return NULL;
    bool any_added = false; /* columns that the first file lacks come and go at the end */
    for (uint32_t i = 0; table_is_named(table) && i < table->columns; i++)
        any_added |= table->column[i].place == COLUMN_NOWHERE;
    if (!any_added)
        return NULL;
    struct source_options names = *options;
    names.table.known = NULL;
    if (source_columns(path, &names, false, &file, NULL))
        error_clear(); /* it is left to whoever packs the file */
    if (file && table_is_named(file)) {
        uint32_t needed = columns_needed(table, file, options->table.adds_columns);
        shorter = needed < table->columns ? table_copy_first(table, needed) : NULL;
    }
    table_free(file);
    return shorter;
}

/* The first of a list that is no column; NULL if there is none. */
static const char *unknown_of(const char *const *list, const struct table *table) {
    for (; list && *list; list++) {
        struct table_column column = {0};
        table_set_name(&column, *list);
        bool number = **list && (*list)[strspn(*list, "0123456789")] == '\0';
        bool known = number || last_named(table, column.name);
        free(column.name);
        if (!known)
            return *list;
    }
    return NULL;
}

int dataset_check_lists(const struct job *job, const struct table *table) {
    const struct {
        const char *key, *const *list;
    } lists[] = {{"csv.skip", job->source.table.skip},
                 {"csv.numbers", job->source.table.numbers},
                 {"csv.categories", job->source.table.categories},
                 {"csv.text", job->source.table.text},
                 {"csv.dates", job->source.table.dates},
                 {"csv.amounts", job->source.table.amounts}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists && table_is_named(table); i++) {
        const char *unknown = unknown_of(lists[i].list, table);
        struct nearest nearest = {.text = unknown};
        for (uint32_t c = 0; unknown && c < table->columns; c++)
            nearest_offer(&nearest, table->column[c].name);
        if (unknown)
            return error_set(ERROR_DATA, "%s: key `%s`: no file of the data has a column \"%s\"%s",
                             job->file, lists[i].key, unknown, nearest_suggestion(&nearest, ""));
    }
    return 0;
}

int dataset_check_crosses(const struct job *job, const struct table *table,
                          struct crosses_outlook *outlook) {
    struct table *crossed = table_copy(table); /* packs know nothing of crosses */
    int code = table_find_monotone(crossed, (const char *const *)job->monotone, job->bins > 0);
    if (code) {
        table_free(crossed);
        return job_refuse_key(job, "monotone", code);
    }
    code = table_find_crosses(crossed, (const char *const *)job->cross, job->bins > 0);
    if (!code && outlook)
        *outlook = (struct crosses_outlook){crossed->crosses, crossed->cross_value, 0};
    for (uint32_t i = 0; !code && outlook && i < table->columns; i++)
        outlook->row_values += (table->column[i].kind == COLUMN_CATEGORY) +
                               (table->column[i].kind == COLUMN_NUMBER) * (job->bins ? 2u : 1u);
    table_free(crossed);
    return code ? job_refuse_key(job, "cross", code) : 0;
}

void dataset_warn_of_lacking(const struct table *table, struct pack *const *packs, uint32_t count) {
    uint32_t files = 0, first = 0;
    char *names = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct source_report report;
        char *here = NULL, name[COLUMN_TEXT]; /* the columns that the pack lacks */
        pack_report(packs[i], &report);
        for (uint32_t c = 0; report.table && c < table->columns; c++) {
            if (!table_uses(&table->column[c]) || !table_lacks(report.table, c))
                continue;
            char *before = here;
            table_describe(table, c, name);
            here = memory_format("%s%s%s", before ? before : "", before ? ", " : "", name);
            free(before);
        }
        source_report_release(&report);
        if (!here)
            continue;
        if (files++) {
            free(here);
        } else {
            names = here;
            first = i;
        }
    }
    if (files)
        log_warning("columns that other files have are not in %u of %u files, and count as missing "
                    "there: in %s %.1000s%s",
                    files, count, pack_source(packs[first]), names, files > 1 ? "; …" : "");
    free(names);
}

int dataset_check_kind(const char *first, bool first_is_table, const char *path, bool is_table) {
    if (first_is_table == is_table)
        return 0;
    return error_set(ERROR_DATA,
                     "%s is a table (CSV, JSON Lines or Parquet), and %s is LIBSVM or an array: "
                     "they have no columns in common, so no model can be trained on both; give "
                     "the key `data` files of one kind, or, if one of these is taken for what it "
                     "is not, say what they are by the key `format`",
                     is_table ? path : first, is_table ? first : path);
}

int dataset_refuse_empty(char *const *paths) {
    const unsigned files = names_count(paths);
    assert(files > 0);
    if (files == 1)
        return error_set(ERROR_DATA, "%s has no rows: leave it out until it has some", *paths);
    return error_set(ERROR_DATA, "none of the %u files has rows, from %s to %s", files, paths[0],
                     paths[files - 1]);
}

/* The columns of some files, which add to the table or are those of it. Files without rows say
 * nothing of either, but one file at least has rows, if each can be read twice. */
static int check_files(const struct source_options *options, char *const *paths,
                       const struct source_beside *beside, bool kinds, struct table **table) {
    const char *first = NULL;
    bool all_empty = *paths != NULL;
    int code = 0;
    for (char *const *path = paths; *path && !code; path++) {
        struct source_options reading = *options;
        struct table *file = NULL;
        bool empty = false;
        if (!source_is_stream(*path)) {
            source_beside_name(beside, (uint32_t)(path - paths), &reading);
            reading.may_be_empty = true;
            reading.table.known = *table;
            if (*table)
                reading.label.column = NULL; /* the table tells it */
            code = source_columns(*path, &reading, kinds, &file, &empty);
        }
        all_empty &= empty;
        if (code || empty || source_is_stream(*path))
            continue;
        if (kinds && first)
            code = dataset_check_kind(first, *table != NULL, *path, file != NULL);
        first = first ? first : *path;
        if (file && *table)
            table_add_columns(*table, file);
        else if (file)
            *table = table_copy(file);
        table_free(file);
    }
    return !code && all_empty ? dataset_refuse_empty(paths) : code;
}

int dataset_check_columns(const struct job *job, const struct dataset_paths *paths,
                          struct table **table) {
    struct source_options options = job->source;
    *table = NULL;
    dataset_choose_missing(&options, names_count(paths->data));
    int code = check_files(&options, paths->data, &paths->beside_data, true, table);
    if (!code && *table && options.table.adds_columns)
        code = dataset_check_lists(job, *table);
    options.table.adds_columns = false;
    if (*table && table_is_named(*table) && options.syntax.header == CSV_HEADER_AUTO)
        options.syntax.header = CSV_HEADER_YES;
    if (!code && *table)
        code = check_files(&options, paths->holdout, &paths->beside_holdout, false, table);
    if (!code && *table)
        code = check_files(&options, paths->test, &paths->beside_test, false, table);
    return code;
}

/* `init`: a job file for a table, with remarks that say what is in it and what to type next. What
 * it proposes is a beginning; it decides nothing that the file does not say. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/resources.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/job/job.h"
#include "data/address.h"
#include "data/date.h"
#include "data/profile.h"
#include "model/score.h"

/* What is proposed. */
struct proposal {
    const char *data;
    struct source_options reading;
    struct profile profile;
    const char *objective;
};

/* ---- how columns are taken ---- */

/* Names that labels often have. */
static const char *const label_names[] = {"label",   "target", "class",   "y",
                                          "outcome", "churn",  "default", "response"};

/* The last column is the label unless one has such a name, or the user said which. */
static int find_label(struct proposal *proposal) {
    struct table *table = NULL;
    if (proposal->reading.label)
        return 0;
    int code = source_columns(proposal->data, &proposal->reading, false, &table);
    for (size_t k = 0; table && k < sizeof label_names / sizeof *label_names; k++)
        for (uint32_t i = 0; i < table->columns && !proposal->reading.label; i++)
            if (table->column[i].name && !strcasecmp(table->column[i].name, label_names[k]))
                proposal->reading.label = memory_copy_string(table->column[i].name);
    table_free(table);
    return code;
}

/* From so many words on, in the mean, texts that differ are sentences and no names. */
#define SENTENCE_WORDS 3.0

enum use { USE_AS_FOUND, USE_AS_DATE, USE_AS_TEXT, USE_NOT };

static enum use use_of(const struct profile *profile, uint32_t i) {
    const struct table_column *column = &profile->report.table->column[i];
    const struct column_profile *seen = &profile->column[i];
    if (column->kind == COLUMN_SKIPPED || (table_uses(column) && !seen->cells))
        return USE_NOT;
    if (column->kind == COLUMN_CATEGORY && seen->cells && date_formats_first(seen->dates))
        return USE_AS_DATE;
    bool all_differ =
        seen->different > 20 &&
        (double)seen->different > 0.5 * fmin((double)seen->cells, PROFILE_DIFFERENT_MAX);
    if (column->kind == COLUMN_CATEGORY && all_differ)
        return seen->words >= SENTENCE_WORDS ? USE_AS_TEXT : USE_NOT;
    return USE_AS_FOUND;
}

/* ---- the objective ---- */

static const char *objective_for(const struct profile *profile) {
    const struct column_profile *labels = &profile->labels;
    if (labels->different == 2)
        return "logistic";
    return profile->texts || (labels->whole && labels->different <= 10) ? "softmax" : "squared";
}

/* ---- writing ---- */

/* A text in quotes, as job files have it. */
static void put_quoted(const char *text, FILE *file) {
    putc('"', file);
    for (; *text; text++) {
        if (strchr("\"\\$", *text))
            putc('\\', file);
        putc(*text, file);
    }
    putc('"', file);
}

/* A column by its name, or by its number if it has none that is fit for a job file. */
static void put_column(const struct profile *profile, uint32_t i, FILE *file) {
    char number[16];
    const char *name = profile->report.table->column[i].name, *at = name ? name : "";
    while ((unsigned char)*at >= ' ')
        at++;
    snprintf(number, sizeof number, "%u", i + 1);
    put_quoted(name && *name && !*at ? name : number, file);
}

/* A key with the columns that are used so, if there are any. */
static void put_columns(const struct profile *profile, const char *key, enum use use, FILE *file) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->columns; i++) {
        if (use_of(profile, i) != use)
            continue;
        fprintf(file, count++ ? ", " : "    %s = { ", key);
        put_column(profile, i, file);
    }
    if (count)
        fputs(" }\n", file);
}

/* A key with a text, if there is one. */
static void put_text(const char *key, const char *text, FILE *file) {
    if (!text)
        return;
    fprintf(file, "    %s = ", key);
    put_quoted(text, file);
    putc('\n', file);
}

static void put_label(const struct label_profile *label, FILE *file) {
    if (label->text)
        escape_put(label->text, file);
    else
        fprintf(file, "%.10g", label->number);
    fprintf(file, " (%llu rows)", (unsigned long long)label->rows);
}

enum { LABELS_SHOWN = 5 };

static void put_labels(const struct profile *profile, FILE *file) {
    const struct column_profile *labels = &profile->labels;
    if (profile->texts || labels->different <= 10) {
        for (uint32_t i = 0; i < profile->label_count && i < LABELS_SHOWN; i++) {
            fputs(i ? ", " : "# Labels: ", file);
            put_label(&profile->label[i], file);
        }
        if (profile->label_count > LABELS_SHOWN)
            fprintf(file, ", and %u others", profile->label_count - LABELS_SHOWN);
    } else {
        fprintf(file, "# Labels: numbers from %.6g to %.6g", labels->least, labels->most);
    }
    fputs(".\n", file);
    if (!profile->texts && labels->different > 2 && labels->whole)
        fputs("# Other objectives for such labels: ordinal if their order counts, poisson if they "
              "count events,\n# squared if they are quantities.\n",
              file);
}

static void put_seen(const struct column_profile *seen, enum column_kind kind, uint64_t rows,
                     FILE *file) {
    bool many = seen->different >= PROFILE_DIFFERENT_MAX;
    if (!seen->cells) {
        fputs(", empty", file);
        return;
    }
    if (kind == COLUMN_NUMBER)
        fprintf(file, ", %.6g to %.6g", seen->least, seen->most);
    fprintf(file, ", %s%llu different", many ? "at least " : "",
            (unsigned long long)seen->different);
    if (seen->cells < rows)
        fprintf(file, ", %llu missing", (unsigned long long)(rows - seen->cells));
    if (kind == COLUMN_NUMBER && seen->whole && seen->different > 2 && seen->different <= 20)
        fputs("; if these are codes: csv { categories }", file);
    if (kind == COLUMN_NUMBER && seen->whole && rows > 20 && seen->different >= rows)
        fputs("; if it only numbers the rows: csv { skip }", file);
}

static void put_remarks(const struct profile *profile, FILE *file) {
    static const char *const as[] = {[USE_AS_DATE] = ": dates",
                                     [USE_AS_TEXT] = ": sentences, whose words are features",
                                     [USE_NOT] = ": left out"};
    static const char *const kinds[] = {[COLUMN_NUMBER] = "number",
                                        [COLUMN_CATEGORY] = "category",
                                        [COLUMN_LABEL] = "the label",
                                        [COLUMN_SKIPPED] = "left out"};
    fputs("\n# Columns:\n", file);
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct table_column *column = &profile->report.table->column[i];
        enum use use = use_of(profile, i);
        fprintf(file, "#   %u ", i + 1);
        if (column->name)
            escape_put(column->name, file);
        fprintf(file, "%s%s", column->name ? ", " : "",
                column->kind <= COLUMN_SKIPPED ? kinds[column->kind] : "of its own use");
        if (table_uses(column))
            put_seen(&profile->column[i], column->kind, profile->report.rows, file);
        fprintf(file, "%s\n", table_uses(column) && as[use] ? as[use] : "");
    }
}

static void put_table(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    bool named = table_is_named(profile->report.table);
    fputs("\ncsv {\n", file);
    if (!named)
        fputs("    header = no\n", file);
    if (profile->report.label_column) {
        fputs("    label = ", file);
        put_column(profile, profile->report.label_column - 1, file);
        fputs("\n", file);
    }
    put_text("delimiter", proposal->reading.delimiter, file);
    put_text("decimal", proposal->reading.decimal, file);
    put_columns(profile, "dates", USE_AS_DATE, file);
    put_columns(profile, "text", USE_AS_TEXT, file);
    put_columns(profile, "skip", USE_NOT, file);
    fputs("    # bins = 50   # lets numbers follow curves\n}\n", file);
    fputs("# cross = pairs   # what columns say together; needs bins for numbers\n", file);
    put_remarks(profile, file);
}

static int write_job(void *context, FILE *file) {
    const struct proposal *proposal = context;
    const struct profile *profile = &proposal->profile;
    fprintf(file, "# %llu rows", (unsigned long long)profile->report.rows);
    if (profile->columns)
        fprintf(file, ", %u columns", profile->columns);
    fputs(". Words behind # are remarks; dml.conf(5) has all keys.\n\ndata      = { ", file);
    put_quoted(proposal->data, file);
    fprintf(file,
            " }\nholdout   = 0.2   # of the rows: for figures on rows that were not trained on\n"
            "objective = %s\n",
            proposal->objective);
    put_labels(profile, file);
    fputs("# summary = model   # standard errors and tests of the estimates\n", file);
    if (profile->report.table)
        put_table(proposal, file);
    return 0;
}

/* ---- the command ---- */

/* NAME.conf in the folder that the command is called in, for data NAME.csv.gz. */
static char *job_path(const char *data) {
    const char *slash = strrchr(data, '/'), *name = slash ? slash + 1 : data;
    size_t length = strcspn(name, ".");
    return memory_format("%.*s.conf", (int)length, name);
}

static int check_labels(const struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    const char *how =
        profile->columns ? ": say which column has them, with --set csv.label=COLUMN" : "";
    if (!profile->label_count)
        return error_set(ERROR_DATA, "%s has no labels%s", proposal->data, how);
    if (profile->labels.different < 2)
        return error_set(ERROR_DATA, "%s has the same label in all rows%s", proposal->data, how);
    return 0;
}

static int write_proposal(struct proposal *proposal, const char *path) {
    bool standard = strcmp(path, "-") == 0;
    if (!standard && access(path, F_OK) == 0)
        return error_set(ERROR_CREATE, "%s is there already: name another with -o, or remove it",
                         path);
    int code = output_file_write(path, write_job, proposal);
    if (!code && !standard)
        printf("wrote %s; read it, and train with: dml-coordinator run %s\n", path, path);
    return code;
}

int command_init(const struct options *options) {
    char *data = address_shown(options->operands[0]);
    struct proposal proposal = {.data = data,
                                .reading = {.trim = true, .ngrams = 1, .lowercase = true}};
    struct source_beside none = {0};
    char *path = options->output ? memory_copy_string(options->output) : job_path(proposal.data);
    int code = job_set_reading(options->settings, options->settings_count, false, &proposal.reading,
                               &none);
    if (!code)
        code = find_label(&proposal);
    if (!code)
        code = profile_read(proposal.data, &proposal.reading, cpus_usable(), &proposal.profile);
    if (!code)
        code = check_labels(&proposal);
    if (!code) {
        proposal.objective = objective_for(&proposal.profile);
        code = write_proposal(&proposal, path);
    }
    profile_release(&proposal.profile);
    score_options_release(&proposal.reading);
    source_beside_release(&none);
    free(path);
    free(data);
    return code;
}

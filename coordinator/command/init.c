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
#include "base/log.h"
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
    uint32_t dates; /* the bit of the format that most columns of dates have; 0: there is none */
};

/* ---- how columns are taken ---- */

/* Names that labels often have. */
static const char *const label_names[] = {
    "label", "target",   "class",     "y",    "outcome", "churn",    "default", "response",
    "click", "survived", "diagnosis", "diag", "fraud",   "is_fraud", "spam",    "bought"};

/* One that has such a name is the label, unless the user said which. Columns of one name are warned
 * of here, and one that is not there is refused. */
static int find_label(struct proposal *proposal) {
    struct table *table = NULL;
    int code = source_columns(proposal->data, &proposal->reading, false, &table);
    for (size_t k = 0; table && k < sizeof label_names / sizeof *label_names; k++)
        for (uint32_t i = 0; i < table->columns && !proposal->reading.label; i++)
            if (table->column[i].name && !strcasecmp(table->column[i].name, label_names[k]))
                proposal->reading.label = memory_copy_string(table->column[i].name);
    table_free(table);
    return code;
}

/* Reads the file. What is told of it meanwhile is for those who have no remarks to read. */
static int look(struct proposal *proposal) {
    enum log_level level = log_level_now;
    profile_release(&proposal->profile);
    log_level_now = level == LOG_DEBUG ? level : LOG_ERROR;
    int code = profile_read(proposal->data, &proposal->reading, cpus_usable(), &proposal->profile);
    log_level_now = level;
    return code;
}

/* What exports of databases, spreadsheets and programs write for a cell without a value, besides
 * the words that a job takes by itself. */
static const char *const exported_missing_words[] = {"?",    "NA",   "N/A",  "NaN",  "nan", "null",
                                                     "NULL", "none", "None", "<NA>", "n/a", "#N/A",
                                                     "\\N",  "-",    "--",   ".",    NULL};

/* If a cell of a column of numbers is refused, it may be such a word. */
static int look_past_words(struct proposal *proposal) {
    int code = look(proposal);
    if (code != ERROR_DATA || proposal->reading.missing)
        return code;
    char *why = memory_copy_string(error_text());
    error_clear();
    proposal->reading.missing = exported_missing_words;
    if (look(proposal)) { /* it is something else, which was told better before */
        error_clear();
        proposal->reading.missing = NULL;
        error_set(code, "%s", why);
    } else {
        code = 0;
    }
    free(why);
    return code;
}

/* A first line above texts alone holds names if none of its texts occurs again: a job would take it
 * for a row, in doubt. */
static int look_for_names(struct proposal *proposal) {
    int code = look_past_words(proposal);
    if (code || !proposal->profile.report.names_doubtful)
        return code;
    proposal->reading.header = CSV_HEADER_YES;
    code = find_label(proposal);
    return code ? code : look(proposal);
}

/* Whether the texts of a column are nearly all different, as names and sentences are. */
static bool all_differ(const struct column_profile *seen) {
    return seen->different > 20 &&
           (double)seen->different > 0.5 * fmin((double)seen->cells, PROFILE_DIFFERENT_MAX);
}

/* Whether numbers count the rows, as an index or an id does: each is the next one of another. */
static bool numbers_rows(const struct profile *profile, const struct column_profile *seen) {
    double rows = (double)profile->report.rows;
    return seen->whole && rows > 20 && seen->most - seen->least + 1 == rows &&
           (double)seen->different >= fmin(rows, PROFILE_DIFFERENT_MAX);
}

static bool may_be_labels(const struct profile *profile) {
    const struct column_profile *labels = &profile->labels;
    return profile->label_count && !(profile->texts && all_differ(labels)) &&
           !(!profile->texts && numbers_rows(profile, labels));
}

/* The last column is the label, of those that are neither empty, as where a delimiter ends each
 * line, nor sentences or names, nor count the rows, as the index that pandas puts last. */
static int look_for_labels(struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    const bool told = proposal->reading.label;
    int code = look_for_names(proposal);
    const bool table = source_is_table(profile->report.format); /* others have no such choice */
    while (!code && !told && table && profile->report.label_column > 1 && !may_be_labels(profile)) {
        free((void *)proposal->reading.label);
        proposal->reading.label = memory_format("%u", profile->report.label_column - 1);
        code = look(proposal);
    }
    return code;
}

static bool stands_for_missing(const struct label_profile *label) {
    const char *const *word = table_missing_words;
    while (*word && (!label->text || strcmp(*word, label->text) != 0))
        word++;
    return *word;
}

/* Where all other labels are numbers, a word for a missing one is no class. */
static int look_at_labels(struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    int code = look_for_labels(proposal);
    uint32_t texts = 0, words = 0;
    for (uint32_t i = 0; i < profile->label_count; i++) {
        texts += profile->label[i].text != NULL;
        words += stands_for_missing(&profile->label[i]);
    }
    if (code || !texts || texts > words || texts == profile->label_count)
        return code;
    proposal->reading.missing = table_missing_words;
    return look(proposal);
}

/* From so many words on, in the mean, texts that differ are sentences and no names. */
#define SENTENCE_WORDS 3.0

enum use { USE_AS_FOUND, USE_AS_DATE, USE_AS_TEXT, USE_AS_CATEGORY, USE_AS_NUMBER, USE_NOT };

static bool holds_dates(const struct profile *profile, uint32_t i) {
    const struct column_profile *seen = &profile->column[i];
    return profile->report.table->column[i].kind == COLUMN_CATEGORY && seen->cells &&
           date_formats_first(seen->dates);
}

/* A job has one format of dates: that of most columns. Of a column that fits several it is the
 * first. */
static uint32_t find_dates(const struct profile *profile) {
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < profile->columns; i++) {
        uint32_t bit = holds_dates(profile, i) ? profile->column[i].dates : 0, count = 0;
        bit &= ~bit + 1;
        for (uint32_t k = 0; bit && k < profile->columns; k++)
            count += holds_dates(profile, k) && profile->column[k].dates & bit;
        best = count > most ? bit : best;
        most = count > most ? count : most;
    }
    return best;
}

static enum use use_of(const struct proposal *proposal, uint32_t i) {
    const struct profile *profile = &proposal->profile;
    const struct table_column *column = &profile->report.table->column[i];
    const struct column_profile *seen = &profile->column[i];
    if (column->is_part)
        return USE_AS_FOUND;
    if (column->kind == COLUMN_DATE || column->kind == COLUMN_WORDS)
        return column->kind == COLUMN_DATE ? USE_AS_DATE : USE_AS_TEXT;
    if (table_uses(column) && !column->found) /* as --set says */
        return column->kind == COLUMN_NUMBER ? USE_AS_NUMBER : USE_AS_CATEGORY;
    if (column->kind == COLUMN_SKIPPED || (table_uses(column) && !seen->cells))
        return USE_NOT;
    if (column->kind == COLUMN_NUMBER && numbers_rows(profile, seen))
        return USE_NOT;
    if (column->kind == COLUMN_NUMBER && column->padded)
        return all_differ(seen) ? USE_NOT : USE_AS_CATEGORY;
    if (holds_dates(profile, i))
        return seen->dates & proposal->dates ? USE_AS_DATE : USE_NOT;
    if (column->kind == COLUMN_CATEGORY && all_differ(seen))
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
static void put_columns(const struct proposal *proposal, const char *key, enum use use,
                        FILE *file) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < proposal->profile.columns; i++) {
        if (use_of(proposal, i) != use)
            continue;
        fprintf(file, count++ ? ", " : "    %s = { ", key);
        put_column(&proposal->profile, i, file);
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

enum { LABELS_SHOWN = 5, LABEL_SHOWN = 40 };

static void put_label(const struct label_profile *label, FILE *file) {
    if (label->text)
        terminal_put_cut(file, false, STYLE_PLAIN, label->text, LABEL_SHOWN);
    else
        fprintf(file, "%.10g", label->number);
    fprintf(file, " (%llu rows)", (unsigned long long)label->rows);
}

/* A label that stands for a missing cell elsewhere may be one of those that nobody knows. */
static void put_doubtful_labels(const struct profile *profile, FILE *file) {
    for (uint32_t i = 0; i < profile->label_count; i++)
        if (stands_for_missing(&profile->label[i]))
            fprintf(file,
                    "# %s is a class here. If it says that the label is not known: list it in "
                    "csv { missing },\n# and set bad_lines to %llu, to leave such rows out.\n",
                    profile->label[i].text, (unsigned long long)profile->label[i].rows);
}

/* Texts that people wrote by hand may be one class in two spellings. */
static void put_spellings(const struct profile *profile, FILE *file) {
    for (uint32_t i = 0; i < profile->label_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const char *one = profile->label[k].text, *other = profile->label[i].text;
            if (!one || !other || strcasecmp(one, other) != 0)
                continue;
            fputs("# ", file);
            terminal_put_cut(file, false, STYLE_PLAIN, one, LABEL_SHOWN);
            fputs(" and ", file);
            terminal_put_cut(file, false, STYLE_PLAIN, other, LABEL_SHOWN);
            fputs(" are two classes here: if they mean the same, write them alike in the data.\n",
                  file);
        }
}

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
    put_doubtful_labels(profile, file);
    put_spellings(profile, file);
    if (!profile->texts && labels->different > 2 && labels->whole)
        fputs("# Other objectives for such labels: ordinal if their order counts, poisson if they "
              "count events,\n# squared if they are quantities.\n",
              file);
}

static void put_seen(const struct column_profile *seen, const struct table_column *column,
                     uint64_t rows, FILE *file) {
    const enum column_kind kind = column->kind;
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
    if (kind == COLUMN_NUMBER && seen->whole && seen->different > 2 && seen->different <= 20 &&
        !column->padded)
        fputs("; if these are codes: csv { categories }", file);
    if (kind == COLUMN_NUMBER && !column->padded && seen->whole && rows > 20 &&
        seen->most - seen->least >= (double)rows &&
        (double)seen->different >= fmin((double)rows, PROFILE_DIFFERENT_MAX))
        fputs("; if it only names the rows: csv { skip }", file);
    if (kind == COLUMN_CATEGORY && (double)seen->dressed > 0.9 * (double)seen->cells) {
        fputs("; numbers such as ", file);
        escape_put(seen->example, file);
        fputs(" are texts until all but digits and a point is taken out", file);
    }
}

/* How a column is used that is not used as it was found, and why. */
static void put_use(const struct proposal *proposal, uint32_t i, FILE *file) {
    const struct column_profile *seen = &proposal->profile.column[i];
    const struct table_column *column = &proposal->profile.report.table->column[i];
    enum use use = use_of(proposal, i);
    const bool counts = numbers_rows(&proposal->profile, seen);
    const char *why = !seen->cells                              ? ""
                      : column->kind == COLUMN_NUMBER && counts ? ", as it only numbers the rows"
                      : column->kind == COLUMN_NUMBER      ? ", as nearly all of these codes differ"
                      : holds_dates(&proposal->profile, i) ? ", as a job has one date_format"
                                                           : ", as nearly all texts differ";
    if (holds_dates(&proposal->profile, i))
        fprintf(file, ": dates, %s", date_formats_first(seen->dates));
    if (use == USE_AS_TEXT)
        fputs(": sentences, whose words are features", file);
    if (use == USE_AS_CATEGORY && column->padded)
        fputs(": codes, as some begin with a zero", file);
    if (use == USE_NOT)
        fprintf(file, ": left out%s", why);
}

static void put_remarks(const struct proposal *proposal, FILE *file) {
    static const char *const kinds[] = {[COLUMN_NUMBER] = "number",
                                        [COLUMN_CATEGORY] = "category",
                                        [COLUMN_LABEL] = "the label",
                                        [COLUMN_SKIPPED] = "left out"};
    const struct profile *profile = &proposal->profile;
    fputs("\n# Columns:\n", file);
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct table_column *column = &profile->report.table->column[i];
        if (column->is_part)
            continue;
        fprintf(file, "#   %u ", i + 1);
        if (column->name)
            escape_put(column->name, file);
        fprintf(file, "%s%s", column->name ? ", " : "",
                column->kind <= COLUMN_SKIPPED ? kinds[column->kind] : "of its own use");
        if (table_uses(column)) {
            put_seen(&profile->column[i], column, profile->report.rows, file);
            put_use(proposal, i, file);
        }
        putc('\n', file);
    }
}

static void put_dates(const struct proposal *proposal, FILE *file) {
    const char *format = proposal->reading.date_format ? proposal->reading.date_format
                                                       : date_formats_first(proposal->dates);
    put_columns(proposal, "dates", USE_AS_DATE, file);
    put_text("date_format", format && strcmp(format, DATE_FORMAT_ISO) != 0 ? format : NULL, file);
}

static void put_table(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    bool named = table_is_named(profile->report.table);
    fputs("\ncsv {\n", file);
    if (!named)
        fputs("    header = no\n", file);
    if (proposal->reading.header == CSV_HEADER_YES)
        fputs("    header = yes\n", file);
    if (profile->report.label_column) {
        fputs("    label = ", file);
        put_column(profile, profile->report.label_column - 1, file);
        fputs("\n", file);
    }
    put_text("delimiter", proposal->reading.delimiter, file);
    put_text("decimal", proposal->reading.decimal, file);
    if (proposal->reading.missing) {
        fputs("    missing = { ", file);
        for (const char *const *word = proposal->reading.missing; *word; word++) {
            fputs(word > proposal->reading.missing ? ", " : "", file);
            put_quoted(*word, file);
        }
        fputs(" }\n", file);
    }
    put_columns(proposal, "numbers", USE_AS_NUMBER, file);
    put_columns(proposal, "categories", USE_AS_CATEGORY, file);
    put_dates(proposal, file);
    put_columns(proposal, "text", USE_AS_TEXT, file);
    put_columns(proposal, "skip", USE_NOT, file);
    fputs("    # bins = 50   # lets numbers follow curves\n}\n", file);
    fputs("# cross = pairs   # what columns say together; needs bins for numbers\n", file);
    put_remarks(proposal, file);
}

/* Fewer rows may leave none on one of the sides. */
#define HOLDOUT_ROWS 50

static void put_rows(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    bool few = profile->report.rows < HOLDOUT_ROWS;
    uint64_t bad = profile->unlabelled + profile->report.rejected;
    if (proposal->reading.format)
        fprintf(file, "format    = %s\n", source_format_names[proposal->reading.format]);
    fprintf(file,
            "%sholdout   = 0.2   # of the rows: for figures on rows that were not trained on%s\n",
            few ? "# " : "", few ? "; there are too few" : "");
    if (bad)
        fprintf(file, "bad_lines = %llu   # so many may be skipped: %llu rows have no label\n",
                (unsigned long long)bad, (unsigned long long)profile->unlabelled);
}

static int write_job(void *context, FILE *file) {
    const struct proposal *proposal = context;
    const struct profile *profile = &proposal->profile;
    fprintf(file, "# %llu rows", (unsigned long long)profile->report.rows);
    uint32_t columns = 0;
    for (uint32_t i = 0; i < profile->columns; i++)
        columns += !profile->report.table->column[i].is_part;
    if (columns)
        fprintf(file, ", %u columns", columns);
    fputs(". Words behind # are remarks; dml.conf(5) has all keys.\n\ndata      = { ", file);
    put_quoted(proposal->data, file);
    fputs(" }\n", file);
    put_rows(proposal, file);
    fprintf(file, "objective = %s\n", proposal->objective);
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
    const bool array = profile->report.columns && !source_is_table(profile->report.format);
    const char *how =
        array
            ? " in its rows: `labels` in a job file names the file that has them; dml-tasks(7) has "
              "such a job, under Images"
        : profile->columns ? ": say which column has them, with --set csv.label=COLUMN"
                           : "";
    if (!profile->label_count)
        return error_set(ERROR_DATA, "%s has no labels%s", proposal->data, how);
    if (profile->labels.different < 2)
        return error_set(ERROR_DATA, "%s has the same label in all rows%s", proposal->data, how);
    return 0;
}

/* What to look at, and what to type next. */
static void tell(const struct proposal *proposal, const char *path) {
    const struct profile *profile = &proposal->profile;
    char *word = shell_word(path);
    uint32_t left_out = 0;
    printf("wrote %s: ", path);
    for (uint32_t i = 0; i < profile->columns; i++)
        left_out += use_of(proposal, i) == USE_NOT;
    if (profile->report.label_column) {
        char name[COLUMN_TEXT];
        printf("the label is %s (--set csv.label=COLUMN takes another), ",
               table_describe(profile->report.table, profile->report.label_column - 1, name));
    }
    printf("the objective %s", proposal->objective);
    if (left_out)
        printf(", %u column%s left out", left_out, left_out == 1 ? " is" : "s are");
    printf(". Read it, and train with: dml-coordinator run %s\n", word);
    free(word);
}

/* Paths in a job are relative to its folder. */
static char *path_from_job(const char *data, const char *job) {
    char *folder = path_folder(job);
    bool here = !strcmp(folder, ".") || address_is(data);
    free(folder);
    return here ? memory_copy_string(data) : path_absolute(data);
}

static int write_proposal(struct proposal *proposal, const char *path) {
    bool standard = strcmp(path, "-") == 0;
    if (!standard && access(path, F_OK) == 0)
        return error_set(ERROR_CREATE, "%s is there already: name another with -o, or remove it",
                         path);
    const char *data = proposal->data;
    char *from_job = path_from_job(data, path);
    proposal->data = from_job;
    int code = output_file_write(path, write_job, proposal);
    proposal->data = data;
    free(from_job);
    if (!code && !standard)
        tell(proposal, path);
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
    proposal.reading.label_optional = true; /* rows without one are counted */
    if (!code)
        code = look_at_labels(&proposal);
    if (!code)
        code = check_labels(&proposal);
    if (!code) {
        proposal.objective = objective_for(&proposal.profile);
        proposal.dates = find_dates(&proposal.profile);
        code = write_proposal(&proposal, path);
    }
    profile_release(&proposal.profile);
    score_options_release(&proposal.reading);
    source_beside_release(&none);
    free(path);
    free(data);
    return code;
}

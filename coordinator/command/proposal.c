/* What `init` proposes: how columns are taken, which one is the label, and the objective. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/command/proposal.h"
#include "data/date.h"
#include "data/number.h"
#include "model/score.h"

/* ---- how columns are taken ---- */

/* Names that labels often have. */
static const char *const label_names[] = {
    "label",    "target", "class",    "y",         "outcome",   "churn",    "default",
    "response", "click",  "survived", "diagnosis", "diag",      "fraud",    "is_fraud",
    "spam",     "bought", "churned",  "clicked",   "converted", "purchased"};

/* Whether a column is the y of a place, behind an x and before what is found there. */
static bool is_coordinate(const struct table *table, uint32_t i) {
    const char *x = i ? table->column[i - 1].name : NULL;
    return x && i + 1 < table->columns && !strcasecmp(x, "x") &&
           !strcasecmp(table->column[i].name, "y");
}

/* One that has such a name is the label, unless the user said which. Columns of one name are warned
 * of here, and one that is not there is refused. */
static int find_label(struct proposal *proposal) {
    struct table *table = NULL;
    int code = source_columns(proposal->data, &proposal->reading, false, &table);
    for (size_t k = 0; table && k < sizeof label_names / sizeof *label_names; k++)
        for (uint32_t i = 0; i < table->columns && !proposal->reading.label; i++)
            if (table->column[i].name && !strcasecmp(table->column[i].name, label_names[k]) &&
                !is_coordinate(table, i))
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
 * the words that a job takes by itself. A number that is not finite is none to learn from. */
static const char *const exported_missing_words[] = {
    "?",     "NA",      "N/A",     "NaN",      "nan",       "null",     "NULL",      "none", "None",
    "<NA>",  "n/a",     "#N/A",    "\\N",      "-",         "--",       ".",         "nil",  "NaT",
    "#NUM!", "#DIV/0!", "#VALUE!", "#REF!",    "#NAME?",    "#NULL!",   "inf",       "-inf", "Inf",
    "-Inf",  "+inf",    "+Inf",    "infinity", "-infinity", "Infinity", "-Infinity", "na",   "n.a.",
    "N.A.",  "Null",    "missing", "Missing",  "unknown",   "Unknown",  NULL};

/* Whether the file is read so. If not, what is wrong with it is not told. */
static bool is_read_with(struct proposal *proposal, const char *const *missing, bool commas) {
    struct source_options *reading = &proposal->reading;
    reading->missing = missing;
    reading->decimal = commas ? "," : reading->decimal;
    const char *delimiter = reading->delimiter;
    reading->delimiter = commas ? ";" : delimiter; /* where commas part cells, they are no points */
    bool read = !look(proposal);
    reading->delimiter = delimiter;
    error_clear();
    return read;
}

/* Whether some column's texts are, most of them, numbers with decimal commas. "$1,200" rather has
 * a thousand. */
static bool has_commas(const struct profile *profile) {
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct column_profile *seen = &profile->column[i];
        if (seen->dressed > seen->cells / 2 &&
            (number_has_decimal_comma(seen->example) ||
             strchr(number_bare_form(seen->example, false), ',')))
            return true;
    }
    return false;
}

/* If a cell of a column of numbers is refused, it may be such a word, or a number as spreadsheets
 * of many countries write it, with semicolons between the cells. */
static int look_past_words(struct proposal *proposal) {
    const struct source_options given = proposal->reading;
    const char *const *words = given.missing ? given.missing : exported_missing_words;
    bool may_have_commas = !given.decimal && (!given.delimiter || *given.delimiter == ';');
    int code = look(proposal);
    if (code ? code != ERROR_DATA : !may_have_commas || !has_commas(&proposal->profile))
        return code;
    char *why = memory_copy_string(error_text());
    bool read = (code && is_read_with(proposal, words, false)) ||
                (may_have_commas && (is_read_with(proposal, given.missing, true) ||
                                     is_read_with(proposal, words, true)));
    if (read) {
        if (proposal->reading.decimal && !given.decimal)
            proposal->reading.decimal = memory_copy_string(","); /* owned, as if it was given */
        code = 0;
    } else { /* it is something else, which was told better before */
        proposal->reading = given;
        code = code ? error_set(code, "%s", why) : look(proposal);
    }
    free(why);
    return code;
}

bool proposal_has_commas(const struct proposal *proposal) {
    return proposal->reading.decimal && *proposal->reading.decimal == ',';
}

/* ---- columns of numbers in which some cells are texts ---- */

bool proposal_is_mixed(const struct proposal *proposal, uint32_t i) {
    return proposal->mixed && proposal->mixed[i];
}

/* Whether many different texts stand among the numbers: no word for a missing one, as of few. */
static bool holds_others(const struct column_profile *seen) {
    return seen->numbers && seen->odd_count == PROFILE_ODD_MAX;
}

/* The columns of a list and others of a table, in place of those that the options have. */
static const char **with_columns(const char *const *given, const struct table *table,
                                 const bool *others) {
    size_t count = 0;
    while (given && given[count])
        count++;
    const char **list = memory_new(count + table->columns + 1, sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = memory_copy_string(given[i]);
    for (uint32_t i = 0; i < table->columns; i++) {
        const char *name = table->column[i].name;
        if (others[i])
            list[count++] = name && *name ? memory_copy_string(name) : memory_format("%u", i + 1);
    }
    return list;
}

/* Takes columns of numbers for texts, of which all are read: so those that hold both are found. */
static bool find_mixed(struct proposal *proposal, const struct table *table) {
    const char *const *given = proposal->reading.categories;
    bool *numbers = memory_new(table->columns, sizeof *numbers), found = false;
    for (uint32_t i = 0; i < table->columns; i++)
        numbers[i] = table->column[i].kind == COLUMN_NUMBER && table->column[i].found;
    const char **all = with_columns(given, table, numbers);
    proposal->reading.categories = all;
    const bool read = !look(proposal);
    for (uint32_t i = 0; i < table->columns; i++) {
        numbers[i] &=
            read && i < proposal->profile.columns && holds_others(&proposal->profile.column[i]);
        found |= numbers[i];
    }
    names_free((char **)(void *)all);
    proposal->reading.categories = given;
    proposal->mixed = numbers;
    return found;
}

/* If a cell of a column of numbers is refused, the column may hold texts as well. */
static int look_past_mixed(struct proposal *proposal) {
    const char *const *given = proposal->reading.categories;
    int code = look_past_words(proposal);
    if (code != ERROR_DATA)
        return code;
    char *why = memory_copy_string(error_text());
    struct table *table = NULL;
    const enum log_level level = log_level_now;
    log_level_now = LOG_ERROR;
    bool read = !source_columns(proposal->data, &proposal->reading, true, &table) && table;
    log_level_now = level;
    read = read && find_mixed(proposal, table);
    if (read)
        proposal->reading.categories = with_columns(given, table, proposal->mixed);
    if (read && look_past_words(proposal)) {
        names_free((char **)(void *)proposal->reading.categories);
        proposal->reading.categories = given;
        read = false;
    }
    if (!read) {
        free(proposal->mixed);
        proposal->mixed = NULL;
    }
    table_free(table);
    code = read ? 0 : error_set(ERROR_DATA, "%s", why);
    free(why);
    return code;
}

/* A first line above texts alone holds names if none of its texts occurs again: a job would take it
 * for a row, in doubt. */
static int look_for_names(struct proposal *proposal) {
    int code = look_past_mixed(proposal);
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

/* Each is the next one of another. */
static bool numbers_rows(const struct profile *profile, const struct column_profile *seen) {
    double rows = (double)profile->report.rows;
    return seen->whole && rows > 20 && seen->most - seen->least + 1 == rows &&
           (double)seen->different >= fmin(rows, PROFILE_DIFFERENT_MAX);
}

/* Hardly a row has one. In JSON Lines a key may lack in most rows, and the last one is any. */
static bool is_rare(const struct profile *profile, uint64_t cells) {
    return (profile->report.format == FORMAT_JSONL ? 2 : 20) * cells < profile->report.rows;
}

static bool may_be_labels(const struct profile *profile) {
    const struct column_profile *labels = &profile->labels;
    const uint64_t rows = profile->report.rows, labelled = rows - profile->unlabelled;
    return profile->label_count && !is_rare(profile, labelled) &&
           !(profile->texts && all_differ(labels)) &&
           !(!profile->texts && numbers_rows(profile, labels));
}

/* The last column is the label, of those that are neither empty, or nearly so, as where delimiters
 * end the lines, nor sentences or names, nor count the rows, as the index that pandas puts last. */
static int look_for_labels(struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    const bool told = proposal->reading.label;
    int code = look_for_names(proposal);
    const bool table = source_is_table(profile->report.format); /* others have no such choice */
    while (!code && !told && table && profile->report.label_column > 1 && !may_be_labels(profile)) {
        uint32_t label = profile->report.label_column - 1;
        while (label > 1 && is_rare(profile, profile->column[label - 1].cells))
            label--;
        if (profile->report.table->column[label - 1].kind == COLUMN_SKIPPED) /* as an index is */
            break;
        free((void *)proposal->reading.label);
        proposal->reading.label = memory_format("%u", label);
        code = look(proposal);
    }
    return code;
}

bool proposal_means_missing(const struct label_profile *label) {
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
        words += proposal_means_missing(&profile->label[i]);
    }
    if (code || !texts || texts > words || texts == profile->label_count)
        return code;
    proposal->reading.missing = table_missing_words;
    return look(proposal);
}

/* From so many words on, in the mean, texts that differ are sentences and no names. */
#define SENTENCE_WORDS 3.0

bool proposal_holds_dates(const struct profile *profile, uint32_t i) {
    const struct column_profile *seen = &profile->column[i];
    return profile->report.table->column[i].kind == COLUMN_CATEGORY && seen->cells &&
           date_formats_first(seen->dates);
}

/* A job has one format of dates: that of most columns. Of a column that fits several it is the
 * first. */
static uint32_t find_dates(const struct profile *profile) {
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < profile->columns; i++) {
        uint32_t bit = proposal_holds_dates(profile, i) ? profile->column[i].dates : 0, count = 0;
        bit &= ~bit + 1;
        for (uint32_t k = 0; bit && k < profile->columns; k++)
            count += proposal_holds_dates(profile, k) && profile->column[k].dates & bit;
        best = count > most ? bit : best;
        most = count > most ? count : most;
    }
    return best;
}

enum use proposal_use(const struct proposal *proposal, uint32_t i) {
    const struct profile *profile = &proposal->profile;
    const struct table_column *column = &profile->report.table->column[i];
    const struct column_profile *seen = &profile->column[i];
    if (column->is_part)
        return USE_AS_FOUND;
    if (column->kind == COLUMN_DATE || column->kind == COLUMN_WORDS)
        return column->kind == COLUMN_DATE ? USE_AS_DATE : USE_AS_TEXT;
    if (proposal_is_mixed(proposal, i))
        return all_differ(seen) ? USE_NOT : USE_AS_CATEGORY;
    if (table_uses(column) && !column->found) /* as --set says */
        return column->kind == COLUMN_NUMBER ? USE_AS_NUMBER : USE_AS_CATEGORY;
    if (column->kind == COLUMN_SKIPPED || (table_uses(column) && !seen->cells))
        return USE_NOT;
    if (column->kind == COLUMN_NUMBER && numbers_rows(profile, seen))
        return USE_NOT;
    if (column->kind == COLUMN_NUMBER && column->padded)
        return all_differ(seen) ? USE_NOT : USE_AS_CATEGORY;
    if (proposal_holds_dates(profile, i))
        return seen->dates & proposal->dates ? USE_AS_DATE : USE_NOT;
    if (column->kind == COLUMN_CATEGORY && all_differ(seen))
        return seen->words >= SENTENCE_WORDS ? USE_AS_TEXT : USE_NOT;
    return USE_AS_FOUND;
}

const char *proposal_why_not(const struct proposal *proposal, uint32_t i) {
    const struct profile *profile = &proposal->profile;
    const bool number = profile->report.table->column[i].kind == COLUMN_NUMBER;
    if (!profile->column[i].cells)
        return "it is empty";
    if (number && numbers_rows(profile, &profile->column[i]))
        return "it only numbers the rows";
    if (number)
        return "nearly all of these codes differ";
    return proposal_holds_dates(profile, i) ? "a job has one date_format"
                                            : "nearly all texts differ";
}

const char *proposal_other_spelling(const struct profile *profile, uint32_t i) {
    const char *text = profile->label[i].text;
    for (uint32_t k = 0; text && k < i; k++)
        if (profile->label[k].text && !strcasecmp(profile->label[k].text, text))
            return profile->label[k].text;
    return NULL;
}

/* ---- the objective ---- */

static const char *objective_for(const struct profile *profile) {
    const struct column_profile *labels = &profile->labels;
    if (labels->different == 2)
        return "logistic";
    return profile->texts || (labels->whole && labels->different <= 10) ? "softmax" : "squared";
}

/* ---- all of it ---- */

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

/* It tells no rows apart. */
static bool is_constant(const struct profile *profile, uint32_t i) {
    return profile->column[i].different == 1 && profile->column[i].cells == profile->report.rows;
}

/* A job that leaves out every column but the label, and those that are the same in all rows, can
 * train nothing. */
static int check_columns(const struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    const struct table *table = profile->report.table;
    char name[COLUMN_TEXT], *why = memory_copy_string("");
    uint32_t used = 0, left_out = 0, constant = 0;
    for (uint32_t i = 0; i < profile->columns && !used; i++) {
        if (!table_uses(&table->column[i]))
            continue;
        const bool use = proposal_use(proposal, i) != USE_NOT;
        constant += use && is_constant(profile, i);
        used += use && !is_constant(profile, i);
        if (use || left_out++ >= 3)
            continue;
        char *longer = memory_format("%s%s%s: %s", why, left_out > 1 ? "; " : "",
                                     table_describe(table, i, name), proposal_why_not(proposal, i));
        free(why);
        why = longer;
    }
    int code = 0;
    if (constant && !used)
        code = error_set(ERROR_DATA,
                         "%s: nothing can be learnt from its columns: all that are used beside the "
                         "label, %s, are the same in all rows",
                         proposal->data,
                         table_describe(table, profile->report.label_column - 1, name));
    else if (left_out && !used)
        code =
            error_set(ERROR_DATA,
                      "%s: no column is left beside the label, %s (%s%s): take one nonetheless "
                      "with --set csv.categories=COLUMN or --set csv.numbers=COLUMN, or another "
                      "label with --set csv.label=COLUMN",
                      proposal->data, table_describe(table, profile->report.label_column - 1, name),
                      why, left_out > 3 ? "; and others" : "");
    free(why);
    return code;
}

/* Whether texts are numbers with a sign, such as $4.50 or 12%; not those with blanks, as telephones
 * have. */
static bool are_amounts(const struct column_profile *seen) {
    static const char *const signs[] = {"$", "%", ",", "\u20ac", "\u00a3"};
    bool has_sign = false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        has_sign |= strstr(seen->example, signs[i]) != NULL;
    return has_sign && (double)seen->dressed > 0.9 * (double)seen->cells;
}

/* As texts amounts are classes, or so many that their column is taken for names and not for the
 * label, although they may be what is to be predicted. */
static void warn_of_amounts(const struct proposal *proposal, bool told) {
    const struct profile *profile = &proposal->profile;
    const uint32_t label = profile->report.label_column - 1;
    char name[COLUMN_TEXT];
    for (uint32_t i = label; i < profile->columns; i++) {
        const struct column_profile *seen = i == label ? &profile->labels : &profile->column[i];
        if (!are_amounts(seen) || (told && i > label))
            continue;
        table_describe(profile->report.table, i, name);
        const char *bare = number_bare_form(seen->example, proposal_has_commas(proposal));
        if (i == label)
            log_warning("%s: the labels in %s are texts such as %s, and so classes: take all but "
                        "%s out of the data if they are numbers",
                        proposal->data, name, seen->example, bare);
        else
            log_warning("%s: %s is not taken for the label: its numbers, such as %s, are texts "
                        "until all but %s is taken out of the data",
                        proposal->data, name, seen->example, bare);
    }
}

/* Who runs a job without reading its remarks would have two classes of what is one. */
static void warn_of_spellings(const struct profile *profile, const char *data) {
    for (uint32_t i = 1; i < profile->label_count; i++) {
        const char *other = proposal_other_spelling(profile, i);
        if (!other)
            continue;
        log_warning("%s: the labels \"%.40s\" and \"%.40s\" are two classes: if they mean the "
                    "same, write them alike in the data; the job file lists all such labels",
                    data, other, profile->label[i].text);
        return;
    }
}

static void warn_of_texts(const struct proposal *proposal, uint32_t i) {
    char name[COLUMN_TEXT];
    log_warning("%s: %s holds numbers, and others such as \"%s\": it is %s; if all of them are "
                "numbers, write them as such in the data",
                proposal->data, table_describe(proposal->profile.report.table, i, name),
                proposal->profile.column[i].odd_example,
                proposal_use(proposal, i) == USE_NOT ? "left out, as nearly all differ"
                                                     : "taken for a category");
}

int proposal_make(struct proposal *proposal) {
    int code = find_label(proposal);
    const bool told = proposal->reading.label; /* or it has such a name */
    proposal->reading.label_optional = true;   /* rows without one are counted */
    if (!code)
        code = look_at_labels(proposal);
    if (!code)
        code = check_labels(proposal);
    if (code)
        return code;
    proposal->objective = objective_for(&proposal->profile);
    proposal->dates = find_dates(&proposal->profile);
    code = check_columns(proposal);
    if (!code && proposal->profile.columns && proposal->profile.report.label_column)
        warn_of_amounts(proposal, told);
    if (!code)
        warn_of_spellings(&proposal->profile, proposal->data);
    for (uint32_t i = 0; !code && i < proposal->profile.columns; i++)
        if (proposal_is_mixed(proposal, i))
            warn_of_texts(proposal, i);
    return code;
}

void proposal_release(struct proposal *proposal) {
    if (proposal->mixed)
        names_free((char **)(void *)proposal->reading.categories);
    free(proposal->mixed);
    profile_release(&proposal->profile);
    score_options_release(&proposal->reading);
}

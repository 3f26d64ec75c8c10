/* What `init` makes of the cells of a table: numbers, amounts, texts, and words for missing ones.
 */
#include "coordinator/command/proposal_cells.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/resources.h"
#include "base/text.h"
#include "data/text/number.h"

/* ---- reading the file ---- */

/* Names that labels often have. */
static const char *const label_names[] = {
    "label",    "target", "class",    "y",         "outcome",   "churn",    "default",
    "response", "click",  "survived", "diagnosis", "diag",      "fraud",    "is_fraud",
    "spam",     "bought", "churned",  "clicked",   "converted", "purchased"};

/* Whether a column is the y of a place, after an x and before what is found there. */
static bool is_coordinate(const struct table *table, uint32_t i) {
    const char *x = i ? table->column[i - 1].name : NULL;
    return x && i + 1 < table->columns && !strcasecmp(x, "x") &&
           !strcasecmp(table->column[i].name, "y");
}

/* One that has such a name is the label, unless the user said which. Columns of one name are warned
 * of here, and one that is not there is refused. */
int proposal_find_label(struct proposal *proposal) {
    struct table *table = NULL;
    int code = source_columns(proposal->data, &proposal->reading, false, &table, NULL);
    for (size_t k = 0; table && k < sizeof label_names / sizeof *label_names; k++)
        for (uint32_t i = 0; i < table->columns && !proposal->reading.label.column; i++)
            if (table->column[i].name && !strcasecmp(table->column[i].name, label_names[k]) &&
                !is_coordinate(table, i) &&
                !source_has_folder(&proposal->reading.folders, table->column[i].name))
                proposal->reading.label.column = memory_copy_string(table->column[i].name);
    table_free(table);
    return code;
}

/* Reads the file. What is told of it meanwhile is for those who have no remarks to read. */
int proposal_look(struct proposal *proposal) {
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
    "<NA>",  "n/a",     "#N/A",    "\\N",      "-",         "--",       ".",         "nil",  "NaT",
    "#NUM!", "#DIV/0!", "#VALUE!", "#REF!",    "#NAME?",    "#NULL!",   "inf",       "-inf", "Inf",
    "-Inf",  "+inf",    "+Inf",    "infinity", "-infinity", "Infinity", "-Infinity", "na",   "n.a.",
    "N.A.",  "Null",    "None",    "missing",  "Missing",   "unknown",  "Unknown",   NULL};

static bool is_exported_word(const char *text) {
    const char *const *word = exported_missing_words;
    while (*word && strcmp(*word, text) != 0)
        word++;
    return *word;
}

bool proposal_has_commas(const struct proposal *proposal) {
    return proposal->reading.syntax.decimal && *proposal->reading.syntax.decimal == ',';
}

/* ---- lists of columns and words ---- */

/* Adds what is told of a text that is taken for a missing number. */
static void proposal_note_stray(struct proposal *proposal, uint32_t i, const struct odd_text *odd) {
    char name[COLUMN_TEXT];
    char *before = proposal->strays;
    proposal->strays =
        memory_format("%s%s\"%s\" in %s (%llu row%s)", before ? before : "", before ? ", " : "",
                      odd->text, table_describe(proposal->profile.report.table, i, name),
                      (unsigned long long)odd->cells, odd->cells == 1 ? "" : "s");
    free(before);
}

static size_t list_count(const char *const *list) {
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

/* A copy of a list with room for `more`. */
static const char **list_copy(const char *const *list, size_t more) {
    const size_t count = list_count(list);
    const char **copy = memory_new(count + more + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = memory_copy_string(list[i]);
    return copy;
}

/* The columns of a list and others of a table, in place of those that the options have. */
static const char **with_columns(const char *const *given, const struct table *table,
                                 const bool *others) {
    size_t count = list_count(given);
    const char **list = list_copy(given, table->columns);
    for (uint32_t i = 0; i < table->columns; i++) {
        const char *name = table->column[i].name;
        if (others[i])
            list[count++] = name && *name ? memory_copy_string(name) : memory_format("%u", i + 1);
    }
    assert(count <= list_count(given) + table->columns && !list[count]);
    return list;
}

static void replace_list(const char ***own, const char **list, const char *const **used) {
    names_free((char **)(void *)*own);
    *used = *own = list;
}

/* ---- columns of numbers that are written as amounts, or in which some cells are texts ---- */

bool proposal_is_mixed(const struct proposal *proposal, uint32_t i) {
    return proposal->mixed && proposal->mixed[i];
}

/* So small a share of the cells of a column may be strays, which are proposed to be missing. */
#define STRAYS_SHARE 0.05

/* What the texts of a column are. */
enum texts { TEXTS_OTHER, TEXTS_NUMBERS, TEXTS_AMOUNTS, TEXTS_MIXED };

/* Whether all odd texts of a column can be listed as missing: they are words for that, or few. */
static bool are_strays(const struct column_profile *seen) {
    bool words = true;
    if (seen->odd_count == PROFILE_ODD_MAX)
        return false;
    for (uint32_t i = 0; i < seen->odd_count; i++) {
        words &= is_exported_word(seen->odd[i].text);
        if (!*seen->odd[i].text)
            return false;
    }
    return words || seen->odd_cells == 1 ||
           (double)seen->odd_cells <= STRAYS_SHARE * (double)seen->cells;
}

/* `numbers`: most of the first cells are, so that as a category it would not be found. */
static enum texts texts_of(const struct column_profile *seen, bool commas, bool numbers) {
    const uint64_t amounts = commas ? seen->commas : seen->points;
    const uint64_t others = seen->cells - amounts;
    if (!amounts || (others > seen->odd_cells && !numbers))
        return TEXTS_OTHER; /* or they are amounts with the other point */
    if (others > seen->odd_cells)
        return TEXTS_MIXED;
    if (others && !are_strays(seen))
        return numbers ? TEXTS_MIXED : TEXTS_OTHER;
    if (commas ? seen->formatted_commas : seen->formatted_points)
        return TEXTS_AMOUNTS;
    return numbers ? TEXTS_NUMBERS : TEXTS_OTHER;
}

/* Whether many texts among the numbers are neither strays nor of a column of few values: then what
 * to do is for people to say. */
static bool is_unclear(const struct column_profile *seen) {
    return seen->odd_count < PROFILE_ODD_MAX && seen->different > 20;
}

/* A look that took columns of numbers for texts, so that all of their cells were read. */
struct survey {
    bool *numbers;   /* of each column: it was taken so */
    bool *amounts;   /* of each column: what is proposed */
    bool unclear;    /* cells of a column are an obstacle that the first message names */
    uint32_t number; /* of that column */
};

/* The words that stand for missing cells: those of a job without csv.missing, and what was found in
 * columns of numbers; but no label, which would be lost. */
static void propose_words(struct proposal *proposal, const struct survey *survey) {
    const struct profile *profile = &proposal->profile;
    const char *const *base =
        proposal->reading.table.missing ? proposal->reading.table.missing : table_missing_words;
    uint32_t found = 0;
    for (uint32_t i = 0; i < profile->columns; i++)
        found += profile->column[i].odd_count;
    const char **list = memory_new(list_count(base) + found + 1, sizeof *list);
    size_t count = 0;
    bool more = false;
    for (; *base; base++) {
        bool is_label = false;
        for (uint32_t i = 0; i < profile->label_count && !proposal->reading.table.missing; i++)
            is_label |= profile->label[i].text && !strcmp(profile->label[i].text, *base);
        if (!is_label)
            list[count++] = memory_copy_string(*base);
    }
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct column_profile *seen = &profile->column[i];
        const bool taken = (survey->numbers[i] && !proposal->mixed[i]) || survey->amounts[i];
        for (uint32_t k = 0; taken && k < seen->odd_count; k++) {
            size_t at = 0;
            while (at < count && strcmp(list[at], seen->odd[k].text) != 0)
                at++;
            if (at < count)
                continue;
            list[count++] = memory_copy_string(seen->odd[k].text);
            more = true;
            if (!is_exported_word(seen->odd[k].text))
                proposal_note_stray(proposal, i, &seen->odd[k]);
        }
    }
    if (more)
        replace_list(&proposal->own_missing, list, &proposal->reading.table.missing);
    else
        names_free((char **)(void *)list);
}

/* Adds a remark that says how a column of amounts is read. */
static void note_amounts(struct proposal *proposal, uint32_t i, const struct column_profile *seen) {
    const bool commas = proposal_has_commas(proposal);
    const uint64_t other = commas ? seen->points : seen->commas;
    char name[COLUMN_TEXT], *before = proposal->amounts;
    double value = 0;
    number_of_amount(seen->amount, commas ? ',' : '.', &value);
    char *shown = escape_copy(table_describe(proposal->profile.report.table, i, name));
    proposal->amounts = memory_format(
        "%s    # %s: %s is read as %.10g%s\n", before ? before : "", shown, seen->amount, value,
        other == seen->cells && strpbrk(seen->amount, ".,")
            ? commas ? "; or as csv.decimal = \".\" has it" : "; or as csv.decimal = \",\" has it"
            : "");
    free(before);
    free(shown);
}

/* Decides what columns are, of which all cells were read as texts. */
static void decide_columns(struct proposal *proposal, struct survey *survey) {
    const struct profile *profile = &proposal->profile;
    const struct table *table = profile->report.table;
    const bool commas = proposal_has_commas(proposal);
    assert(survey->numbers && survey->amounts && proposal->mixed && !survey->unclear);
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct table_column *column = &table->column[i];
        const bool label = column->kind == COLUMN_LABEL;
        const struct column_profile *seen = label ? &profile->labels : &profile->column[i];
        const bool found =
            label || survey->numbers[i] || (column->kind == COLUMN_CATEGORY && column->found);
        if (!found || column->is_part || !seen->cells || (label && !profile->texts))
            continue;
        const enum texts texts = texts_of(seen, commas, survey->numbers[i]);
        survey->amounts[i] = texts == TEXTS_AMOUNTS;
        if (survey->amounts[i])
            note_amounts(proposal, i, seen);
        proposal->mixed[i] = texts == TEXTS_MIXED;
        if (texts == TEXTS_MIXED && is_unclear(seen) && !survey->unclear) {
            survey->unclear = true;
            survey->number = i;
        }
    }
}

/* Names what stands in the way among the cells of a column. */
static int refuse_unclear(const struct proposal *proposal, uint32_t i) {
    const struct column_profile *seen = &proposal->profile.column[i];
    char name[COLUMN_TEXT], texts[256] = "";
    assert(i < proposal->profile.columns);
    for (uint32_t k = 0; k < seen->odd_count; k++) {
        const size_t length = strlen(texts);
        snprintf(texts + length, sizeof texts - length, "%s\"%s\" (%llu rows)", k ? ", " : "",
                 *seen->odd[k].text ? seen->odd[k].text : "a longer text",
                 (unsigned long long)seen->odd[k].cells);
    }
    return error_set(ERROR_DATA,
                     "%s: %s holds \"%s\" and other strings among its numbers: %s; if they stand "
                     "for missing numbers, list them: --set 'csv.missing={\"%s\"}' (then others "
                     "such as NA must be listed, too); if the column holds strings: --set "
                     "csv.categories=COLUMN; or leave it out: --set csv.skip=COLUMN",
                     proposal->data, table_describe(proposal->profile.report.table, i, name),
                     seen->odd[0].text, texts, seen->odd[0].text);
}

void proposal_forget(struct proposal *proposal) {
    free(proposal->mixed);
    proposal->mixed = NULL;
    free(proposal->strays);
    free(proposal->amounts);
    proposal->strays = proposal->amounts = NULL;
}

/* Takes the columns of numbers for texts, of which all are read, and settles what columns are. */
static int settle_columns(struct proposal *proposal, struct survey *survey) {
    struct table *table = NULL;
    const char *const *given = proposal->reading.table.categories;
    const enum log_level level = log_level_now;
    log_level_now = LOG_ERROR;
    int code = source_columns(proposal->data, &proposal->reading, true, &table, NULL);
    log_level_now = level;
    if (code || !table)
        return code ? code : error_set(ERROR_DATA, "%s is not a table", proposal->data);
    survey->numbers = memory_new(table->columns, sizeof *survey->numbers);
    survey->amounts = memory_new(table->columns, sizeof *survey->amounts);
    proposal->mixed = memory_new(table->columns, sizeof *proposal->mixed);
    for (uint32_t i = 0; i < table->columns; i++)
        survey->numbers[i] = table->column[i].kind == COLUMN_NUMBER && table->column[i].found &&
                             !table->column[i].is_part;
    const char **all = with_columns(given, table, survey->numbers);
    proposal->reading.table.categories = all;
    code = proposal_look(proposal);
    proposal->reading.table.categories = given;
    names_free((char **)(void *)all);
    if (!code && proposal->profile.report.names_doubtful &&
        proposal->reading.syntax.header == CSV_HEADER_AUTO) { /* so it was no row with odd texts */
        table_free(table);
        free(survey->numbers);
        free(survey->amounts);
        *survey = (struct survey){0}; /* the caller releases it, whatever comes next */
        proposal_forget(proposal);
        proposal->reading.syntax.header = CSV_HEADER_YES;
        code = proposal_find_label(proposal);
        return code ? code : settle_columns(proposal, survey);
    }
    if (!code && proposal->profile.columns == table->columns) {
        decide_columns(proposal, survey);
        if (survey->unclear)
            code = refuse_unclear(proposal, survey->number);
        else
            propose_words(proposal, survey);
    }
    if (!code) {
        replace_list(&proposal->own_categories, with_columns(given, table, proposal->mixed),
                     &proposal->reading.table.categories);
        replace_list(&proposal->own_amounts,
                     with_columns(proposal->reading.table.amounts, table, survey->amounts),
                     &proposal->reading.table.amounts);
    }
    table_free(table);
    return code;
}

/* Whether something is to be settled: cells are refused, or texts are amounts. */
static bool is_unsettled(const struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    const bool commas = proposal_has_commas(proposal);
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct table_column *column = &profile->report.table->column[i];
        const bool label = column->kind == COLUMN_LABEL && profile->texts;
        const struct column_profile *seen = label ? &profile->labels : &profile->column[i];
        if ((label || (column->kind == COLUMN_CATEGORY && column->found)) &&
            texts_of(seen, commas, false) == TEXTS_AMOUNTS)
            return true;
    }
    return false;
}

/* Reads the cells with the decimal point that is set, and settles what they are. */
static int read_cells(struct proposal *proposal) {
    struct survey survey = {0};
    int code = proposal_look(proposal);
    if (code ? code != ERROR_DATA : !is_unsettled(proposal))
        return code;
    char *why = memory_copy_string(error_text());
    error_clear();
    int again = settle_columns(proposal, &survey);
    if (!again)
        again = proposal_look(proposal);
    if (again && code && !survey.unclear) { /* what was told first is nearer to the file */
        error_clear();
        again = error_set(ERROR_DATA, "%s", why);
    }
    free(survey.numbers);
    free(survey.amounts);
    free(why);
    return again;
}

/* Whether the texts of some column are numbers only with a decimal comma, and those of none only
 * with a point. 1,285 tells nothing: most people part thousands so. */
static bool has_commas(const struct profile *profile) {
    bool commas = false;
    for (uint32_t i = 0; i < profile->columns; i++) {
        const bool label = profile->report.table->column[i].kind == COLUMN_LABEL;
        const struct column_profile *seen = label ? &profile->labels : &profile->column[i];
        commas |= seen->only_commas && seen->commas + seen->odd_cells == seen->cells &&
                  (!seen->odd_cells || are_strays(seen));
        if (seen->only_points && seen->points == seen->cells && seen->formatted_points)
            return false;
    }
    return commas;
}

/* A column of texts such as 4,5 and 3,25 that cannot be read as numbers: a job refuses it. */
static int refuse_commas(const struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    char name[COLUMN_TEXT];
    for (uint32_t i = 0; i < profile->columns && !proposal->reading.syntax.decimal; i++) {
        const struct table_column *column = &profile->report.table->column[i];
        const struct column_profile *seen = &profile->column[i];
        if (column->kind == COLUMN_CATEGORY && column->found && seen->cells &&
            seen->plain_commas == seen->cells)
            return error_set(
                ERROR_DATA,
                "%s: %s holds strings such as \"%s\": if the comma is a decimal point, set "
                "csv.decimal = \",\"; if strings are meant, list the column in csv.categories",
                proposal->data, table_describe(profile->report.table, i, name), seen->example);
    }
    return 0;
}

/* Reads the cells with decimal commas if some column needs them, as spreadsheets of many countries
 * write numbers, with semicolons or tabs between the cells: where commas part cells, they are no
 * points. */
static int look_at_cells(struct proposal *proposal) {
    const struct source_options given = proposal->reading;
    const bool may_have_commas = !given.syntax.decimal && (!given.syntax.delimiter ||
                                                           strchr(";t|", *given.syntax.delimiter));
    int code = read_cells(proposal);
    const bool tried = !code && proposal->profile.columns && may_have_commas;
    if (!tried || !has_commas(&proposal->profile))
        return code ? code : refuse_commas(proposal);
    static const char *const delimiters[] = {";", "tab", "|"};
    for (size_t i = 0; i < sizeof delimiters / sizeof *delimiters; i++) {
        if (given.syntax.delimiter && strcmp(given.syntax.delimiter, delimiters[i]) != 0)
            continue;
        proposal_forget(proposal);
        proposal->reading = given;
        proposal->reading.syntax.decimal = ",";
        proposal->reading.syntax.delimiter = delimiters[i];
        code = read_cells(proposal);
        proposal->reading.syntax.delimiter = given.syntax.delimiter;
        if (!code) {
            proposal->reading.syntax.decimal =
                memory_copy_string(","); /* owned, as if it was given */
            return 0;
        }
        error_clear();
    }
    proposal_forget(proposal);
    proposal->reading = given; /* it is something else */
    code = read_cells(proposal);
    return code ? code : refuse_commas(proposal);
}

/* ---- lines that are no rows ---- */

#define REPEATS_TEXT "the header line is repeated here"
#define REPEATS_MOST 1000u

/* Lines that repeat the header are counted, so that a job may skip them; if nothing else is wrong
 * with the file. */
static int look_past_repeats(struct proposal *proposal) {
    const uint64_t given = proposal->reading.bad_lines_max;
    int code = look_at_cells(proposal);
    if (code != ERROR_DATA || given || !strstr(error_text(), REPEATS_TEXT))
        return code;
    char *why = memory_copy_string(error_text());
    error_clear();
    proposal_forget(proposal);
    proposal->reading.bad_lines_max = REPEATS_MOST;
    code = look_at_cells(proposal);
    char **reason = proposal->profile.report.rejected_reasons;
    bool all = !code;
    for (; all && reason && *reason; reason++)
        all = strstr(*reason, REPEATS_TEXT);
    proposal->reading.bad_lines_max = given;
    if (!code && !all)
        code = error_set(ERROR_DATA, "%s", why);
    free(why);
    if (!code) {
        proposal->reading.bad_lines_max = proposal->profile.report.rejected;
        log_warning("%s: %llu lines repeat the names of the columns, as in concatenated files; "
                    "bad_lines lets the job skip them",
                    proposal->data, (unsigned long long)proposal->profile.report.rejected);
    }
    return code;
}

/* A first line above texts alone holds names if none of its texts occurs again: a job would take it
 * for a row, in doubt. */
int proposal_read_names(struct proposal *proposal) {
    int code = look_past_repeats(proposal);
    if (code || !proposal->profile.report.names_doubtful)
        return code;
    proposal->reading.syntax.header = CSV_HEADER_YES;
    proposal_forget(proposal);
    code = proposal_find_label(proposal);
    return code ? code : look_past_repeats(proposal);
}

/* What `init` proposes: how columns are taken, which one is the label, and the objective. */
#define _GNU_SOURCE
#include <assert.h>
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
#include "base/text.h"
#include "coordinator/command/proposal.h"
#include "coordinator/command/proposal_cells.h"
#include "data/text/date.h"
#include "data/text/number.h"
#include "model/score.h"

/* ---- how columns are taken ---- */

/* Whether the texts of a column are nearly all different, as names and sentences are. */
static bool all_differ(const struct profile *profile, const struct column_profile *seen) {
    return seen->different > 20 &&
           (double)seen->different > 0.5 * fmin((double)seen->cells, profile->different_max);
}

/* Each is the next one of another. */
static bool numbers_rows(const struct profile *profile, const struct column_profile *seen) {
    double rows = (double)profile->report.rows;
    return seen->whole && rows > 20 && seen->most - seen->least + 1 == rows &&
           (double)seen->different >= fmin(rows, profile->different_max);
}

/* Hardly a row has one. In JSON Lines a key may lack in most rows, and the last one is any. */
static bool is_rare(const struct profile *profile, uint64_t cells) {
    return (profile->report.format == FORMAT_JSONL ? 2 : 20) * cells < profile->report.rows;
}

static bool may_be_labels(const struct profile *profile) {
    const struct column_profile *labels = &profile->labels;
    const uint64_t rows = profile->report.rows, labelled = rows - profile->unlabelled;
    return profile->label_count && !is_rare(profile, labelled) &&
           !(profile->texts && all_differ(profile, labels)) &&
           !(!profile->texts && numbers_rows(profile, labels));
}

/* The last column is the label, of those that are neither empty, or nearly so, as where delimiters
 * end the lines, nor sentences or names, nor count the rows, as the index that pandas puts last. */
static int look_for_labels(struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    const bool told = proposal->reading.label.column;
    int code = proposal_read_names(proposal);
    const bool table = source_is_table(profile->report.format); /* others have no such choice */
    while (!code && !told && table && profile->report.label_column > 1 && !may_be_labels(profile)) {
        uint32_t label = profile->report.label_column - 1;
        while (label > 1 && is_rare(profile, profile->column[label - 1].cells))
            label--;
        if (profile->report.table->column[label - 1].kind == COLUMN_SKIPPED) /* as an index is */
            break;
        free((void *)proposal->reading.label.column);
        proposal->reading.label.column = memory_format("%u", label);
        code = proposal_look(proposal);
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
    proposal->reading.table.missing = table_missing_words;
    return proposal_look(proposal);
}

/* From so many blanks on, in the mean, texts that differ are sentences and no names. */
#define SENTENCE_BLANKS 3.0

/* Whether a name ends with a word of codes, as "store_id" or "zip" do; an index that
 * was written as a column has none, or a number. */
static bool is_named_for_codes(const char *name) {
    static const char *const endings[] = {"id",      "code",     "zip",
                                          "zipcode", "postcode", "postal_code"};
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t own = strlen(endings[i]);
        if (length < own || strcasecmp(name + length - own, endings[i]) != 0)
            continue;
        const char before = length == own ? '_' : name[length - own - 1];
        const char first = name[length - own];
        const bool capital = first >= 'A' && first <= 'Z' && before >= 'a' && before <= 'z';
        if (strchr("_ .-", before) || capital)
            return true;
    }
    return false;
}

static const char *name_of(const struct profile *profile, uint32_t i) {
    const char *name = profile->report.table->column[i].name;
    return name ? name : "x"; /* without a header all have none */
}

/* Whole numbers that all differ, under such a name. */
static bool is_index(const struct profile *profile, uint32_t i) {
    const struct column_profile *seen = &profile->column[i];
    const char *name = name_of(profile, i);
    const bool named = !*name || !strncasecmp(name, "Unnamed: ", 9) || !strcasecmp(name, "index") ||
                       !strcasecmp(name, "id") || !strcasecmp(name, "rownames") ||
                       !strcasecmp(name, "rowid");
    return named && profile->report.table->column[i].kind == COLUMN_NUMBER && seen->whole &&
           profile->report.rows > 20 &&
           (double)seen->different >= fmin((double)profile->report.rows, profile->different_max);
}

/* Whole numbers that recur although few of the numbers between them are there, as those of
 * quantities would be; or under a name of codes. */
static bool are_codes(const struct profile *profile, uint32_t i) {
    const struct column_profile *seen = &profile->column[i];
    const double different = (double)seen->different, cells = (double)seen->cells;
    if (profile->report.table->column[i].kind != COLUMN_NUMBER || !seen->whole || different <= 2 ||
        cells < 2 * different)
        return false;
    if (is_named_for_codes(name_of(profile, i)))
        return true;
    return seen->least > 0 && seen->most >= 1000 && different >= 20 && cells >= 3 * different &&
           seen->most - seen->least >= 50 * different && 4 * (double)seen->near < cells;
}

bool proposal_holds_dates(const struct profile *profile, uint32_t i) {
    const struct column_profile *seen = &profile->column[i];
    return profile->report.table->column[i].kind == COLUMN_CATEGORY && seen->cells &&
           date_formats_first(seen->dates);
}

/* A job has one format of dates: that of most columns. Of a column that fits several it is the
 * first. */
static uint32_t find_dates(const struct profile *profile) {
    uint32_t count[32] = {0}, best = 0, most = 0;
    for (uint32_t i = 0; i < profile->columns; i++)
        for (uint32_t k = 0; k < 32 && proposal_holds_dates(profile, i); k++)
            count[k] += profile->column[i].dates >> k & 1;
    for (uint32_t i = 0; i < profile->columns; i++) {
        if (!proposal_holds_dates(profile, i))
            continue;
        const uint32_t first = (uint32_t)__builtin_ctz(profile->column[i].dates);
        best = count[first] > most ? UINT32_C(1) << first : best;
        most = count[first] > most ? count[first] : most;
    }
    return best;
}

enum use proposal_use(const struct proposal *proposal, uint32_t i) {
    const struct profile *profile = &proposal->profile;
    assert(i < profile->columns);
    const struct table_column *column = &profile->report.table->column[i];
    const struct column_profile *seen = &profile->column[i];
    if (column->is_part)
        return USE_AS_FOUND;
    if (column->kind == COLUMN_DATE || column->kind == COLUMN_WORDS)
        return column->kind == COLUMN_DATE ? USE_AS_DATE : USE_AS_TEXT;
    if (proposal_is_mixed(proposal, i))
        return all_differ(profile, seen) ? USE_NOT : USE_AS_CATEGORY;
    if (column->amounts)
        return USE_AS_FOUND;
    if (table_uses(column) && !column->found) /* as --set says */
        return column->kind == COLUMN_NUMBER ? USE_AS_NUMBER : USE_AS_CATEGORY;
    if (column->kind == COLUMN_SKIPPED || (table_uses(column) && !seen->cells))
        return USE_NOT;
    if (column->kind == COLUMN_NUMBER && numbers_rows(profile, seen))
        return USE_NOT;
    if (column->kind == COLUMN_NUMBER && column->padded)
        return all_differ(profile, seen) ? USE_NOT : USE_AS_CATEGORY;
    if (proposal_holds_dates(profile, i))
        return seen->dates & proposal->dates ? USE_AS_DATE : USE_NOT;
    if (column->kind == COLUMN_CATEGORY && all_differ(profile, seen))
        return seen->words >= SENTENCE_BLANKS && !seen->foreign ? USE_AS_TEXT : USE_NOT;
    if (column->kind == COLUMN_CATEGORY && seen->longest >= CATEGORY_BYTES_MAX)
        return seen->foreign ? USE_NOT : USE_AS_TEXT;
    if (is_index(profile, i))
        return USE_NOT;
    if (are_codes(profile, i))
        return USE_AS_CATEGORY;
    return USE_AS_FOUND;
}

const char *proposal_why_not(const struct proposal *proposal, uint32_t i) {
    const struct profile *profile = &proposal->profile;
    assert(proposal_use(proposal, i) == USE_NOT);
    const bool number = profile->report.table->column[i].kind == COLUMN_NUMBER;
    if (!profile->column[i].cells)
        return "it is empty";
    if (number && numbers_rows(profile, &profile->column[i]))
        return "it only numbers the rows";
    if (number && is_index(profile, i))
        return "it only names the rows";
    if (number)
        return "nearly all of these codes differ";
    if (profile->column[i].foreign && profile->column[i].words >= SENTENCE_BLANKS)
        return "its texts are not UTF-8: iconv -f WINDOWS-1252 -t UTF-8 converts them";
    return proposal_holds_dates(profile, i) ? "a job has one date_format"
                                            : "nearly all strings differ";
}

const char *proposal_other_spelling(const struct profile *profile, uint32_t i) {
    assert(i < profile->label_count);
    const char *text = profile->label[i].text;
    for (uint32_t k = 0; text && k < i; k++)
        if (profile->label[k].text && !strcasecmp(profile->label[k].text, text))
            return profile->label[k].text;
    return NULL;
}

/* ---- which other column may be the label ---- */

static bool has_word(const char *name, const char *const *words) {
    for (; *words; words++)
        if (strcasestr(name, *words))
            return true;
    return false;
}

/* Names that say what is measured or decided. */
static const char *const outcome_words[] = {
    "target",  "label",  "class",  "outcome", "price",   "amount",   "sales",
    "revenue", "score",  "rating", "quality", "result",  "status",   "risk",
    "charges", "cost",   "claims", "claimnb", "deaths",  "survived", "default",
    "churn",   "income", "salary", "count",   "species", "type",     NULL};

/* How well column i would do as the label in place of the one that was taken; 0: not. */
static uint32_t fit_as_label(const struct proposal *proposal, uint32_t i) {
    const struct profile *profile = &proposal->profile;
    const struct column_profile *seen = &profile->column[i];
    const enum column_kind kind = profile->report.table->column[i].kind;
    const uint32_t label = profile->report.label_column - 1;
    if (i == label || (kind != COLUMN_NUMBER && kind != COLUMN_CATEGORY) ||
        proposal_use(proposal, i) == USE_NOT || proposal_use(proposal, i) == USE_AS_TEXT ||
        proposal_use(proposal, i) == USE_AS_DATE || 2 * seen->cells < profile->report.rows)
        return 0;
    const bool named = has_word(name_of(profile, i), outcome_words);
    const bool classes =
        seen->different >= 2 && seen->different <= 20 && (kind == COLUMN_CATEGORY || seen->whole);
    const bool first = i == 0 || (i == 1 && proposal_use(proposal, 0) == USE_NOT);
    return 4u * named + (first && classes ? 2u : 0u);
}

uint32_t proposal_other_label(const struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < profile->columns && i < 1000; i++) {
        const uint32_t fit = fit_as_label(proposal, i);
        best = fit > most ? i + 1 : best;
        most = fit > most ? fit : most;
    }
    return proposal->named_label ? 0 : best;
}

static const char *const exposure_words[] = {"exposure",     "person_years", "personyears",
                                             "person-years", "policy_years", NULL};

uint32_t proposal_exposure(const struct proposal *proposal) {
    const struct profile *profile = &proposal->profile;
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct column_profile *seen = &profile->column[i];
        if (profile->report.table->column[i].kind == COLUMN_NUMBER && seen->least > 0 &&
            seen->cells == profile->report.rows && has_word(name_of(profile, i), exposure_words))
            return i + 1;
    }
    return 0;
}

bool proposal_counts(const struct profile *profile) {
    return !profile->texts && profile->labels.whole && profile->labels.least >= 0;
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
        return error_set(ERROR_DATA, "%s has the same label in all rows%s", proposal->data,
                         proposal->only
                             ? ", and init reads only the first of several files: name a file that "
                               "has several labels, and then set data in the job file to all files"
                             : how);
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
                         "%s: nothing can be learnt from its columns: each column that is used "
                         "beside the label, %s, has one value in all rows",
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
    const struct column_profile *seen = &proposal->profile.column[i];
    char name[COLUMN_TEXT];
    log_warning("%s: %s holds numbers, and strings such as \"%s\": it is %s; if they are all "
                "numbers, write them as numbers in the data",
                proposal->data, table_describe(proposal->profile.report.table, i, name),
                seen->odd_count ? seen->odd[0].text : seen->example,
                proposal_use(proposal, i) == USE_NOT ? "left out, as nearly all differ"
                                                     : "taken for a category");
}

int proposal_make(struct proposal *proposal) {
    int code = proposal_find_label(proposal);
    proposal->named_label = proposal->reading.label.column;
    proposal->reading.label.optional = true; /* rows without one are counted */
    proposal->reading.table.surveys = true;
    if (!code)
        code = look_at_labels(proposal);
    if (!code)
        code = check_labels(proposal);
    if (code)
        return code;
    proposal->objective = proposal_exposure(proposal) && proposal_counts(&proposal->profile)
                              ? "poisson"
                              : objective_for(&proposal->profile);
    proposal->dates = find_dates(&proposal->profile);
    code = check_columns(proposal);
    if (!code && proposal->strays)
        log_warning("%s: %s: taken for missing numbers, by csv.missing", proposal->data,
                    proposal->strays);
    if (!code)
        warn_of_spellings(&proposal->profile, proposal->data);
    for (uint32_t i = 0; !code && i < proposal->profile.columns; i++)
        if (proposal_is_mixed(proposal, i))
            warn_of_texts(proposal, i);
    return code;
}

void proposal_release(struct proposal *proposal) {
    proposal_forget(proposal);
    names_free((char **)(void *)proposal->own_missing);
    names_free((char **)(void *)proposal->own_categories);
    names_free((char **)(void *)proposal->own_amounts);
    profile_release(&proposal->profile);
    score_options_release(&proposal->reading);
}

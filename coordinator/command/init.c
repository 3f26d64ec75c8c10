/* `init`: a job file for a table, with remarks that say what is in it and what to type next. What
 * it proposes is a beginning; it decides nothing that the file does not say. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/command/proposal.h"
#include "coordinator/job/job.h"
#include "coordinator/job/key.h"
#include "data/remote/address.h"
#include "data/text/date.h"
#include "data/text/number.h"

/* ---- writing ---- */

/* A column by its name, or by its number if it has none that is fit for a job file. */
static void put_column(const struct profile *profile, uint32_t i, FILE *file) {
    char number[16];
    assert(i < profile->columns);
    const char *name = profile->report.table->column[i].name, *at = name ? name : "";
    while ((unsigned char)*at >= ' ')
        at++;
    snprintf(number, sizeof number, "%u", i + 1);
    key_print_text(name && *name && !*at ? name : number, file);
}

/* A key with the columns that are used so, if there are any. */
static void put_columns(const struct proposal *proposal, const char *key, enum use use,
                        FILE *file) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < proposal->profile.columns; i++) {
        if (proposal_use(proposal, i) != use)
            continue;
        fprintf(file, count++ ? ", " : "    %s = { ", key);
        put_column(&proposal->profile, i, file);
    }
    if (count)
        fputs(" }\n", file);
}

/* A key with a text, if there is one. */
static void put_text_key(const char *key, const char *text, FILE *file) {
    if (!text)
        return;
    fprintf(file, "    %s = ", key);
    key_print_text(text, file);
    putc('\n', file);
}

enum { LABELS_SHOWN = 5, LABEL_SHOWN = 40 };

/* A label that stands for a missing cell elsewhere may be one of those that nobody knows. */
static void put_doubtful_labels(const struct profile *profile, FILE *file) {
    for (uint32_t i = 0; i < profile->label_count; i++)
        if (proposal_means_missing(&profile->label[i]))
            fprintf(file,
                    "# %s is a class here. If it says that the label is not known: list it in "
                    "csv { missing },\n# and set bad_lines to %llu, to leave such rows out.\n",
                    profile->label[i].text, (unsigned long long)profile->label[i].rows);
}

/* Texts that people wrote by hand may be one class in two spellings. */
static void put_spellings(const struct profile *profile, FILE *file) {
    for (uint32_t i = 0; i < profile->label_count; i++) {
        const char *other = proposal_other_spelling(profile, i);
        if (!other)
            continue;
        fputs("# ", file);
        terminal_put_cut(file, false, STYLE_PLAIN, other, LABEL_SHOWN);
        fputs(" and ", file);
        terminal_put_cut(file, false, STYLE_PLAIN, profile->label[i].text, LABEL_SHOWN);
        fputs(" are two classes here: if they mean the same, write them alike in the data.\n",
              file);
    }
}

/* Whether a text with this separator has an entry, without the blanks before it. */
static bool has_entry(const char *list, char separator, const char *entry) {
    const size_t length = strlen(entry);
    assert(separator && length > 0);
    for (const char *at = list; at; at = strchr(at, separator)) {
        at += *at == separator;
        at += strspn(at, " ");
        if (!strncmp(at, entry, length) && (!at[length] || at[length] == separator))
            return true;
    }
    return false;
}

/* What parts a label into several, one of which is a label of other rows; 0: nothing does. */
static char separator_of(const struct profile *profile, const char *list) {
    for (const char *separator = ",;|"; *separator; separator++)
        for (uint32_t i = 0; strchr(list, *separator) && i < profile->label_count; i++) {
            const char *other = profile->label[i].text;
            if (other && *other && strcmp(other, list) != 0 && has_entry(list, *separator, other))
                return *separator;
        }
    return 0;
}

/* Labels of which one is a part of another may be lists. */
static void put_lists(const struct profile *profile, FILE *file) {
    for (uint32_t i = 0; i < profile->label_count; i++) {
        const char *list = profile->label[i].text;
        const char separator = list ? separator_of(profile, list) : 0;
        if (!separator)
            continue;
        fputs("# If labels such as ", file);
        terminal_put_cut(file, false, STYLE_PLAIN, list, LABEL_SHOWN);
        fprintf(file,
                " are lists, so that a row can have several classes, or none:\n"
                "# objective = multilabel, with multilabel { separator = \"%c\" }\n",
                separator);
        if (profile->unlabelled)
            fputs("# Rows without a label then have no class, and need no bad_lines.\n", file);
        return;
    }
}

/* Larger whole numbers are rather amounts. */
#define COUNTS_MOST 10000

/* What else suits such labels. */
static void put_objectives(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    const struct column_profile *labels = &profile->labels;
    const bool squared = !strcmp(proposal->objective, "squared");
    uint64_t rarest = profile->report.rows, zeros = 0; /* rows of a label */
    for (uint32_t i = 0; i < profile->label_count; i++) {
        const struct label_profile *label = &profile->label[i];
        rarest = label->rows < rarest ? label->rows : rarest;
        zeros = !zeros && label->number == 0 ? label->rows : zeros;
    }
    if (!profile->texts && labels->different > 2 && labels->whole && !squared)
        fprintf(file,
                "# Other objectives for such labels: ordinal if their order counts, %s\n# squared "
                "if they are quantities.\n",
                labels->least < 0 ? "or" : "poisson if they count events,");
    else if (squared && labels->whole && labels->least >= 0 && labels->most < COUNTS_MOST)
        fputs("# If such labels count events: objective = poisson\n", file);
    else if (squared && labels->least == 0 && 4 * zeros > profile->report.rows)
        fputs("# For amounts of which many are 0: objective = tweedie\n", file);
    if (profile->texts && labels->different > 2 && labels->different <= 10)
        fputs("# If their order counts: objective = ordinal, with ordinal { order = { ... } }, "
              "from low to high\n",
              file);
    if (labels->different == 2 && 50 * rarest < profile->report.rows)
        fputs("# threshold = f1   # a rare class seldom reaches a probability of 0.5\n", file);
}

static void put_labels(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    const struct column_profile *labels = &profile->labels;
    if (profile->texts || labels->different <= 10) {
        for (uint32_t i = 0; i < profile->label_count && i < LABELS_SHOWN; i++) {
            const struct label_profile *label = &profile->label[i];
            fputs(i ? ", " : "# Labels: ", file);
            if (label->text)
                terminal_put_cut(file, false, STYLE_PLAIN, label->text, LABEL_SHOWN);
            else
                fprintf(file, "%.10g", label->number);
            fprintf(file, " (%llu row%s)", (unsigned long long)label->rows,
                    label->rows == 1 ? "" : "s");
        }
        if (profile->label_count > LABELS_SHOWN)
            fprintf(file, ", and %u others", profile->label_count - LABELS_SHOWN);
    } else {
        fprintf(file, "# Labels: numbers from %.6g to %.6g", labels->least, labels->most);
    }
    fputs(".\n", file);
    const uint32_t other = profile->report.table ? proposal_other_label(proposal) : 0;
    if (other) {
        char name[COLUMN_TEXT];
        fputs("# Another column that may be meant: ", file);
        escape_put(table_describe(profile->report.table, other - 1, name), file);
        fprintf(file, ", by --set csv.label=%u\n", other);
    }
    put_doubtful_labels(profile, file);
    put_spellings(profile, file);
    put_lists(profile, file);
    put_objectives(proposal, file);
}

/* The seconds since 1970 of the years 2000 and 2037: what computers note as times. */
#define EPOCH_LEAST 946684800.0
#define EPOCH_MOST 2145916800.0

/* A column whose texts are dates, but not all, or not of one format, is taken for a category. */
static void put_mixed_dates(const struct column_profile *seen, FILE *file) {
    if (date_formats_first(seen->dates) || (double)seen->dated <= 0.5 * (double)seen->cells)
        return;
    if (*seen->undated) {
        fputs("; most are dates, but not ", file);
        escape_put(seen->undated, file);
        fputs(": csv { dates } reads them if csv { missing } lists what stands for a missing date",
              file);
    } else {
        fputs("; dates of several formats, of which csv { dates } reads one", file);
    }
}

static void put_seen(const struct proposal *proposal, uint32_t i, FILE *file) {
    const struct column_profile *seen = &proposal->profile.column[i];
    const struct table_column *column = &proposal->profile.report.table->column[i];
    const uint64_t rows = proposal->profile.report.rows;
    const enum column_kind kind = column->kind;
    bool many = seen->different >= proposal->profile.different_max;
    if (!seen->cells) {
        fputs(", empty", file);
        return;
    }
    if (column->name && source_has_folder(&proposal->reading.folders, column->name)) {
        fputs(", the value of each file's folder", file);
        return;
    }
    if (kind == COLUMN_NUMBER) { /* whole numbers, as ids are, with all of their digits */
        bool whole = seen->whole && fmax(fabs(seen->least), fabs(seen->most)) < 1e15;
        fprintf(file, ", %.*g to %.*g", whole ? 15 : 6, seen->least, whole ? 15 : 6, seen->most);
    }
    fprintf(file, ", %s%llu different", many ? "at least " : "",
            (unsigned long long)seen->different);
    if (seen->cells < rows)
        fprintf(file, ", %llu missing", (unsigned long long)(rows - seen->cells));
    if (kind == COLUMN_NUMBER && seen->whole && seen->different > 2 && seen->different <= 20 &&
        !column->padded)
        fputs("; if these are codes: csv { categories }", file);
    if (kind == COLUMN_NUMBER && !column->padded && seen->whole && rows > 20 &&
        seen->most - seen->least >= (double)rows &&
        (double)seen->different >= fmin((double)rows, proposal->profile.different_max))
        fputs("; if it only names the rows: csv { skip }", file);
    if (kind == COLUMN_NUMBER && seen->whole && seen->least >= EPOCH_LEAST &&
        seen->most <= EPOCH_MOST)
        fputs("; if these are seconds since 1970: csv { dates }, with date_format = epoch", file);
    if (kind == COLUMN_CATEGORY && (double)seen->formatted > 0.9 * (double)seen->cells) {
        fputs("; numbers such as ", file);
        escape_put(seen->example, file);
        fprintf(file, " are strings here; as numbers they must have only %s",
                number_bare_form(seen->example, proposal_has_commas(proposal)));
    }
    if (kind == COLUMN_NUMBER && seen->whole && seen->least >= 1000 * EPOCH_LEAST &&
        seen->most <= 1000 * EPOCH_MOST)
        fputs("; if these are milliseconds since 1970: csv { dates }, with date_format = "
              "epoch_ms",
              file);
    if (kind == COLUMN_NUMBER && seen->compact == seen->cells)
        fputs("; if these are dates as 20240506: csv { dates }, with date_format = \"%Y%m%d\"",
              file);
    if (kind == COLUMN_CATEGORY && seen->times_of_day == seen->cells)
        fputs("; times of the day are strings here; minutes, as a number, would say more", file);
    if (kind == COLUMN_CATEGORY)
        put_mixed_dates(seen, file);
}

/* How a column is used that is not used as it was found, and why. */
static void put_use(const struct proposal *proposal, uint32_t i, FILE *file) {
    const struct column_profile *seen = &proposal->profile.column[i];
    const struct table_column *column = &proposal->profile.report.table->column[i];
    enum use use = proposal_use(proposal, i);
    if (proposal_holds_dates(&proposal->profile, i))
        fprintf(file, ": dates, %s%s", date_formats_first(seen->dates),
                date_formats_are_ambiguous(seen->dates)
                    ? ", or with the day first: no row shows which; set csv { date_format }"
                    : "");
    if (use == USE_AS_TEXT)
        fputs(": sentences, whose words are features", file);
    if (proposal_is_mixed(proposal, i)) {
        fprintf(file, "; %llu are numbers, but not ", (unsigned long long)seen->numbers);
        escape_put(seen->odd_count ? seen->odd[0].text : seen->example, file);
    }
    if (use == USE_AS_CATEGORY && column->padded)
        fputs(": codes, as some begin with a zero", file);
    else if (use == USE_AS_CATEGORY && column->kind == COLUMN_NUMBER && column->found)
        fputs(": taken for codes; if it is a quantity: csv { numbers }", file);
    if (use == USE_NOT && column->kind == COLUMN_CATEGORY && seen->words >= 0.5)
        fputs("; if its words say something: csv { text }", file);
    if (use == USE_NOT)
        fprintf(file, ": left out%s%s", seen->cells ? ", as " : "",
                seen->cells ? proposal_why_not(proposal, i) : "");
}

/* A job file has a limit of its length, and nobody reads more of them. */
#define REMARKS_MOST 1000u

static void put_remarks(const struct proposal *proposal, FILE *file) {
    static const char *const kinds[] = {[COLUMN_NUMBER] = "number",
                                        [COLUMN_CATEGORY] = "category",
                                        [COLUMN_LABEL] = "the label",
                                        [COLUMN_SKIPPED] = "left out"};
    const struct profile *profile = &proposal->profile;
    uint32_t shown = 0, others = 0;
    fputs("\n# Columns:\n", file);
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct table_column *column = &profile->report.table->column[i];
        if (column->is_part)
            continue;
        if (shown++ >= REMARKS_MOST && column->kind != COLUMN_LABEL) {
            others++;
            continue;
        }
        fprintf(file, "#   %u ", i + 1);
        if (column->name)
            escape_put(column->name, file);
        fprintf(file, "%s%s", column->name ? ", " : "",
                column->kind <= COLUMN_SKIPPED ? kinds[column->kind] : "of its own use");
        if (table_uses(column)) {
            put_seen(proposal, i, file);
            put_use(proposal, i, file);
        }
        putc('\n', file);
    }
    if (others)
        fprintf(file, "#   and %u others, which are not listed here\n", others);
}

/* The columns that are read as amounts, whatever they are used for. */
static void put_amounts(const struct proposal *proposal, FILE *file) {
    const struct table *table = proposal->profile.report.table;
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->columns; i++) {
        if (!table->column[i].amounts)
            continue;
        fputs(count++ ? ", " : "    amounts = { ", file);
        put_column(&proposal->profile, i, file);
    }
    if (count)
        fputs(" }   # read as numbers, without their signs\n", file);
    if (count && proposal->amounts)
        fputs(proposal->amounts, file);
}

/* What --set says of reading beside what a proposal says in any case. */
static void put_settings(const struct proposal *proposal, const char *section, FILE *file) {
    static const char *const proposed[] = {
        "format",      "bad_lines",      "csv.header",  "csv.label",       "csv.delimiter",
        "csv.decimal", "csv.skip",       "csv.numbers", "csv.amounts",     "csv.text",
        "csv.missing", "csv.categories", "csv.dates",   "csv.date_format", NULL};
    job_print_reading(proposal->settings, proposal->settings_count, &proposal->reading, section,
                      proposed, file);
}

static void put_table(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    bool named = table_is_named(profile->report.table);
    fputs("\ncsv {\n", file);
    if (!named)
        fputs("    header = no\n", file);
    if (proposal->reading.syntax.header == CSV_HEADER_YES)
        fputs("    header = yes\n", file);
    if (profile->report.label_column) {
        fputs("    label = ", file);
        put_column(profile, profile->report.label_column - 1, file);
        fputs("\n", file);
    }
    put_text_key("delimiter", proposal->reading.syntax.delimiter, file);
    put_text_key("decimal", proposal->reading.syntax.decimal, file);
    if (proposal->reading.table.missing) {
        fputs("    missing = { ", file);
        for (const char *const *word = proposal->reading.table.missing; *word; word++) {
            fputs(word > proposal->reading.table.missing ? ", " : "", file);
            key_print_text(*word, file);
        }
        fputs(" }\n", file);
    }
    put_amounts(proposal, file);
    put_columns(proposal, "numbers", USE_AS_NUMBER, file);
    put_columns(proposal, "categories", USE_AS_CATEGORY, file);
    const char *format = proposal->reading.table.date_format ? proposal->reading.table.date_format
                                                             : date_formats_first(proposal->dates);
    put_columns(proposal, "dates", USE_AS_DATE, file);
    put_text_key("date_format", format && strcmp(format, DATE_FORMAT_ISO) != 0 ? format : NULL,
                 file);
    put_columns(proposal, "text", USE_AS_TEXT, file);
    put_columns(proposal, "skip", USE_NOT, file);
    put_settings(proposal, "csv", file);
    fputs("    # bins = 50   # lets numbers follow curves\n}\n", file);
    fputs("# cross = pairs   # interactions of columns; numbers need bins\n", file);
    put_remarks(proposal, file);
}

/* Fewer rows may leave none on one of the sides. */
#define HOLDOUT_ROWS 50

static void put_row_keys(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    bool few = profile->report.rows < HOLDOUT_ROWS;
    uint64_t bad = profile->unlabelled + profile->report.rejected;
    if (proposal->reading.format)
        fprintf(file, "format    = %s\n", source_format_names[proposal->reading.format]);
    fprintf(file,
            "%sholdout   = 0.2   # of the rows: for figures on rows that were not trained on%s\n",
            few ? "# " : "", few ? "; there are too few" : "");
    uint64_t most = proposal->reading.bad_lines_max > bad ? proposal->reading.bad_lines_max : bad;
    if (most)
        fprintf(file, "bad_lines = %llu   # so many may be skipped: %llu rows have no label%s\n",
                (unsigned long long)most, (unsigned long long)profile->unlabelled,
                profile->report.rejected ? ", and others are no rows" : "");
}

/* Counts are of what was exposed to them: twice as long, twice as many. */
static void put_exposure(const struct proposal *proposal, FILE *file) {
    const uint32_t exposure = proposal->profile.report.table ? proposal_exposure(proposal) : 0;
    if (!exposure || proposal->reading.property.column[ROW_EXPOSURE])
        return;
    const bool counts = !strcmp(proposal->objective, "poisson");
    fputs(counts ? "exposure  = "
                 : "# If labels are amounts a time: objective = tweedie, with "
                   "exposure = ",
          file);
    put_column(&proposal->profile, exposure - 1, file);
    fputs(counts ? "   # labels count what happened in it\n" : "\n", file);
}

/* Rows at random of the same time as others are known too well. */
static void put_times(const struct proposal *proposal, FILE *file) {
    const struct profile *profile = &proposal->profile;
    for (uint32_t i = 0; i < profile->columns; i++) {
        const struct column_profile *seen = &profile->column[i];
        const bool epoch = profile->report.table->column[i].kind == COLUMN_NUMBER && seen->whole &&
                           seen->least >= EPOCH_LEAST && seen->most <= EPOCH_MOST;
        if (proposal_use(proposal, i) != USE_AS_DATE && !epoch)
            continue;
        fputs("# Rows have times (", file);
        put_column(profile, i, file);
        fputs("): to predict later ones, hold out the last rows, in a file of their own:\n"
              "# holdout = { \"LAST.csv\" }; a share takes rows of all times.\n",
              file);
        return;
    }
}

static int write_job(void *context, FILE *file) {
    const struct proposal *proposal = context;
    const struct profile *profile = &proposal->profile;
    fprintf(file, "# %llu rows", (unsigned long long)profile->report.rows);
    if (proposal->only) {
        fputs(" in ", file);
        escape_put(proposal->only, file);
        fputs(", one of several files", file);
    }
    uint32_t columns = 0;
    for (uint32_t i = 0; i < profile->columns; i++)
        columns += !profile->report.table->column[i].is_part;
    if (columns)
        fprintf(file, ", %u columns", columns);
    fputs(". Text after # is a comment; dml.conf(5) has all keys.\n\ndata      = { ", file);
    key_print_text(proposal->data, file);
    fputs(" }\n", file);
    put_row_keys(proposal, file);
    if (profile->report.table)
        put_times(proposal, file);
    put_exposure(proposal, file);
    put_settings(proposal, "", file);
    fprintf(file, "objective = %s\n", proposal->objective);
    put_labels(proposal, file);
    fputs("# summary = model   # standard errors and tests of the estimates\n", file);
    if (profile->report.table)
        put_table(proposal, file);
    return 0;
}

/* ---- the command ---- */

/* NAME.conf in the folder that the command is called in, for data NAME.csv.gz, or in a folder NAME.
 */
static char *job_path(const char *data) {
    char *whole = memory_copy_string(data);
    for (size_t end = strlen(whole); end && whole[end - 1] == '/';)
        whole[--end] = '\0';
    const char *slash = strrchr(whole, '/'), *name = slash ? slash + 1 : whole;
    if (!name[strspn(name, ".")])
        name = "data";
    size_t length = name_plain_length(name);
    for (size_t i = length; i-- > 1;)
        if (name[i] == '.') {
            length = i;
            break;
        }
    /* so that no command takes it for an option */
    char *path = memory_format("%s%.*s.conf", *name == '-' ? "./" : "", (int)length, name);
    free(whole);
    return path;
}

/* What to look at, and what to type next. */
static void print_proposal(const struct proposal *proposal, const char *path) {
    const struct profile *profile = &proposal->profile;
    char *word = shell_word(path);
    uint32_t left_out = 0;
    fputs("wrote ", stdout);
    escape_put(path, stdout);
    fputs(": ", stdout);
    for (uint32_t i = 0; i < profile->columns; i++)
        left_out += proposal_use(proposal, i) == USE_NOT;
    if (profile->report.label_column) {
        char name[COLUMN_TEXT];
        fputs("the label is ", stdout);
        escape_put(table_describe(profile->report.table, profile->report.label_column - 1, name),
                   stdout);
        fputs(" (--set csv.label=COLUMN takes another), ", stdout);
    }
    printf("the objective %s", proposal->objective);
    if (left_out)
        printf(", %u column%s left out", left_out, left_out == 1 ? " is" : "s are");
    fputs(". Read it, and train with: dml-coordinator run ", stdout);
    escape_put(word, stdout);
    putchar('\n');
    free(word);
}

static json_t *column_json(const struct profile *profile, uint32_t i) {
    const char *name = profile->report.table->column[i].name;
    return name && *name ? text_to_json(name) : json_integer(i + 1);
}

/* Prints the proposal as JSON, for programs. */
static void print_json(const struct proposal *proposal, const char *path) {
    const struct profile *profile = &proposal->profile;
    const uint32_t label = profile->report.label_column;
    json_t *left_out = json_array();
    for (uint32_t i = 0; i < profile->columns; i++)
        if (proposal_use(proposal, i) == USE_NOT)
            json_array_append_new(left_out, column_json(profile, i));
    json_t *object = json_pack("{s:o, s:o, s:s, s:o}", "job_file", text_to_json(path), "label",
                               label ? column_json(profile, label - 1) : json_null(), "objective",
                               proposal->objective, "left_out", left_out);
    report_print_json(object);
    json_decref(object);
}

/* `entry`: what the job names as its data, of which the proposal's may be one file. */
static int write_proposal(struct proposal *proposal, const char *entry, const char *path,
                          bool as_json) {
    bool standard = strcmp(path, "-") == 0;
    assert(proposal->objective && proposal->profile.label_count > 0);
    if (!standard && access(path, F_OK) == 0)
        return error_set(ERROR_CREATE, "%s already exists: name another file with -o, or remove it",
                         path);
    /* Paths in a job are relative to its folder. */
    const char *data = proposal->data;
    char *folder = path_folder(path);
    bool here = !strcmp(folder, ".") || address_is(entry);
    char *from_job = here ? memory_copy_string(entry) : path_absolute(entry);
    free(folder);
    proposal->data = from_job;
    int code = output_file_write(path, write_job, proposal);
    proposal->data = data;
    free(from_job);
    if (!code && !standard)
        (as_json ? print_json : print_proposal)(proposal, path);
    return code;
}

/* There is no job file yet in which a key that a message names could be set. A file's name may have
 * "csv." in it, too. */
static int say_how_to_set(int code) {
    char *why = memory_copy_string(error_text());
    bool names_key = false;
    for (size_t i = 0; i < keys_count; i++)
        names_key |= !strncmp(keys[i].name, "csv.", 4) && strstr(why, keys[i].name);
    const bool lacks = code == ERROR_DATA && names_key && !strstr(why, "--set");
    if (lacks)
        error_clear(); /* the first text wins otherwise */
    if (lacks)
        error_set(code, "%s; here such a key is set by --set csv.KEY=VALUE", why);
    free(why);
    return code;
}

/* Finds the file that is looked at: the first, in a folder, but one whose own folders have values.
 */
static int find_file(struct proposal *proposal, const char *entry, char ***paths,
                     struct source_beside *beside) {
    uint32_t number = 0;
    int code = source_paths_given(&entry, 1, paths);
    if (code)
        return code;
    source_find_folders(NULL, *paths, &proposal->reading, true, beside);
    for (bool lacks = true; lacks && (*paths)[number]; number += lacks) {
        lacks = false;
        source_beside_name(beside, number, &proposal->reading);
        for (const struct source_folder *of = proposal->reading.folders.column; of && of->name;
             of++)
            lacks |= !*of->value;
    }
    number = (*paths)[number] ? number : 0;
    source_beside_name(beside, number, &proposal->reading);
    proposal->data = (*paths)[number];
    proposal->only = (*paths)[0] && (*paths)[1] ? proposal->data : NULL;
    return 0;
}

int command_init(const struct options *options) {
    char *entry = address_shown(options->operands[0]), **paths = NULL;
    struct proposal proposal = {
        .data = entry,
        .reading = {.table.trim = true, .words.ngrams = 1, .words.lowercase = true},
        .settings = options->settings,
        .settings_count = options->settings_count};
    struct source_beside beside = {0};
    char *path = options->output ? memory_copy_string(options->output) : job_path(entry);
    int code = job_set_reading(options->settings, options->settings_count, READING_FOR_JOB,
                               &proposal.reading, &beside);
    if (!code)
        code = find_file(&proposal, entry, &paths, &beside);
    if (!code)
        code = say_how_to_set(proposal_make(&proposal));
    if (!code)
        code = write_proposal(&proposal, entry, path, options->json);
    proposal_release(&proposal);
    source_beside_release(&beside);
    names_free(paths);
    free(path);
    free(entry);
    return code;
}

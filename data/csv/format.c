#include "data/csv/table_row.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/text/number.h"

/* The length of a line; with a rule, that of a record. */
static size_t line_length(const struct record_rule *rule, char *line, size_t left) {
    return (size_t)(record_end(rule, line, line + left) - line);
}

static uint64_t count_line_ends(const char *at, const char *end) {
    uint64_t count = 0;
    while ((at = memchr(at, '\n', (size_t)(end - at))))
        count++, at++;
    return count;
}

/* Without the \r that some systems put before the line end. */
static size_t trimmed(const char *line, size_t length) {
    return length && line[length - 1] == '\r' ? length - 1 : length;
}

static bool is_empty(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!is_blank(line[i]) && line[i] != '\r')
            return false;
    return true;
}

/* The index of a word INDEX:VALUE; 0 for any other. No number begins with 0 there, as times do. */
static uint64_t index_of(const char *word, const char *end) {
    uint64_t index = 0;
    const char *p = word;
    for (; p < end && digits_is(*p) && index <= FEATURE_ID_MAX; p++)
        index = 10 * index + (uint64_t)(*p - '0');
    if (p == word || *word == '0' || p + 1 >= end || *p != ':' || index > FEATURE_ID_MAX)
        return 0;
    for (p++; p < end; p++)
        if (!memchr("0123456789+-.eE", *p, 15))
            return 0;
    return index;
}

/* Whether most words after the first, which may be a label, are INDEX:VALUE; a time of a table may
 * look so. Indices rise if something that separates cells is between them. */
static bool has_pairs(const char *line, const char *end) {
    uint64_t before = 0, pairs = 0, others = 0;
    for (const char *p = line; p < end;) {
        const char *word = p;
        while (p < end && !is_blank(*p))
            p++;
        if (word < p && *word == '#') /* a comment */
            break;
        uint64_t index = index_of(word, p);
        bool rises = index > before || (word > line && word[-1] == ' ');
        pairs += index && rises;
        others += word > line && word < p && !(index && rises);
        before = index ? index : before;
        p += p < end;
    }
    return pairs > others;
}

/* CSV if something separates cells, unless it is a line of LIBSVM, and JSON if it begins so. A time
 * of a table with dates may be all that looks like a word of LIBSVM. */
static enum source_format guess(const struct record_rule *rule, bool table, const char *line,
                                size_t length) {
    if (json_lines_begin(line, length))
        return FORMAT_JSONL;
    if (table)
        return FORMAT_CSV;
    if (has_pairs(line, line + length))
        return FORMAT_LIBSVM;
    for (const char *delimiter = rule->delimiters; *delimiter; delimiter++)
        if (memchr(line, *delimiter, length))
            return FORMAT_CSV;
    return FORMAT_LIBSVM;
}

/* Finds the first line that is not empty, nor a comment by the rule (or, if `pass_comments`, of
 * LIBSVM); its length is 0 if there is none. Moves *text and *left past it, and adds the lines
 * passed, it included, to *number. */
static struct text_line next_line(const struct record_rule *rule, char **text, size_t *left,
                                  bool pass_comments, uint64_t *number) {
    while (*left) {
        struct text_line line = {*text, line_length(rule, *text, *left)};
        size_t step = line.length + (line.length < *left);
        *text += step;
        *left -= step;
        *number += 1 + count_line_ends(line.text, line.text + line.length);
        if (!is_empty(line.text, line.length) && !(pass_comments && *line.text == '#') &&
            !record_is_comment(rule, line.text)) {
            line.length = trimmed(line.text, line.length);
            return line;
        }
    }
    return (struct text_line){*text, 0};
}

/* Lines of another system, on which every other message would mislead. */
static int check_line_ends(const char *path, const char *text, size_t length) {
    const char *first = memchr(text, '\r', length);
    size_t behind = first ? length - (size_t)(first + 1 - text) : 0;
    if (!first || !memchr(first + 1, '\r', behind) || memchr(text, '\n', length))
        return 0;
    return error_set(ERROR_DATA,
                     "%s: its lines end with carriage returns alone, which are not read as ends of "
                     "lines; this converts it: tr '\\r' '\\n' < FILE > FILE.csv",
                     path);
}

/* A first line of another format, on which a message about its label or its columns would mislead.
 * Where bad lines are skipped it may be one of them. */
static int check_libsvm(const struct source_options *options, const struct record_rule *rule,
                        const char *path, const struct text_line *line) {
    enum source_format seen = guess(rule, false, line->text, line->length);
    double label;
    const char *end = line->length ? number_parse(line->text, &label) : line->text;
    if (options->bad_lines_max || options->label.separator || seen == FORMAT_LIBSVM ||
        (end && end <= line->text + line->length && strchr(" \t\r\n", *end)))
        return 0;
    return error_set(ERROR_DATA,
                     "%s looks like %s, but LIBSVM is what the key `format` says, or what the data "
                     "is that was trained on: give LIBSVM here",
                     path, seen == FORMAT_CSV ? "CSV" : "JSON Lines");
}

/* csv_layout_find(), where a file of other columns is told as that and not by what it lacks. */
static int find_layout(struct format *format, const char *path, uint64_t number,
                       const struct text_line *first, const struct text_line *second,
                       const struct text_line *behind) {
    bool libsvm =
        format->options->table.known && has_pairs(first->text, first->text + first->length);
    int code = csv_layout_find(format, path, number, first, second, behind);
    if (code != ERROR_DATA || !libsvm)
        return code;
    error_clear();
    return error_set(ERROR_DATA,
                     "%s looks like LIBSVM, but the data that was trained on is a table: give CSV, "
                     "JSON Lines or Parquet with its columns here",
                     path);
}

int format_find(struct format *format, const char *path, char *text, size_t length,
                const struct source_options *options) {
    *format = (struct format){.options = options, .kind = options->format};
    int code = check_line_ends(path, text, length);
    if (code)
        return code;
    const struct record_rule rule = csv_rule(&options->syntax), lines = {0};
    uint64_t number = 0, ignored = 0;
    /* What table the columns are of is known, and may come in either format. */
    const bool table = options->table.known && source_is_table(format->kind);
    char *at = text;
    size_t left = length;
    struct text_line telling = next_line(&rule, &at, &left, true, &ignored);
    if (format->kind == FORMAT_AUTO || table)
        format->kind = guess(&rule, table || (options->table.dates && *options->table.dates),
                             telling.text, telling.length);
    else if (format->kind == FORMAT_LIBSVM && (code = check_libsvm(options, &rule, path, &telling)))
        return code;
    if (format->kind == FORMAT_JSONL)
        return is_empty(text, length) ? 0 : json_lines_find(format, path, text, length);
    bool csv = format->kind == FORMAT_CSV;
    if (!csv && options->carried)
        return format_carries_none(path);
    struct text_line first = next_line(csv ? &rule : &lines, &text, &length, false, &number);
    if (!first.length || !csv) /* a file without rows is refused at its end */
        return 0;
    struct text_line behind = {text, length};
    struct text_line second = next_line(&rule, &text, &length, false, &ignored);
    return find_layout(format, path, number, &first, &second, &behind);
}

bool format_has_rows(const struct format *format, char *text, size_t length) {
    static const struct record_rule lines = {0};
    const struct record_rule *rule = format->kind == FORMAT_CSV ? &format->rule : &lines;
    const bool comments = format->kind == FORMAT_LIBSVM;
    uint64_t ignored = 0;
    struct text_line line = next_line(rule, &text, &length, comments, &ignored);
    if (line.length && format->kind == FORMAT_CSV && format->header)
        line = next_line(rule, &text, &length, comments, &ignored);
    return line.length > 0;
}

void format_release(struct format *format) {
    for (char **name = format->names; name && *name; name++)
        free(*name);
    free(format->names);
    table_free(format->table);
    for (uint32_t i = 0; format->column && i < format->columns; i++)
        free(format->column[i].part);
    free(format->column);
    free(format->head);
    free(format->number_id);
    free(format->missing);
    free(format->carried);
    for (uint32_t i = 0; i < format->folders; i++)
        free(format->folder[i].text);
    free(format->folder);
    json_columns_free(format->keys);
    *format = (struct format){0};
}

void format_parse(const struct format *format, struct batch *batch, bool skip_first) {
    static const struct record_rule lines = {0};
    char *at = batch->text;
    size_t left = batch->text_length;
    uint64_t number = batch->first_line;
    const bool json = format->kind == FORMAT_JSONL;
    batch_clear(batch);
    batch->has_hashes = format->options->hashes_rows;
    row_prepare_folders(format, batch);
    if (json && format->keys)
        json_lines_start(format, batch);
    else if (format->carried_count)
        batch_carry(batch, format->carried_count);
    batch->alike = source_is_table(format->kind) && !format->categories;
    batch->has_comments = memchr(at, '#', left);
    batch->has_zeros = memchr(at, '\0', left);
    bool quotes = format->kind == FORMAT_CSV && memchr(at, '"', left);
    const struct record_rule *rule = quotes ? &format->rule : &lines;
    while (left && batch->bad_count <= format->options->bad_lines_max) {
        size_t length = line_length(rule, at, left);
        assert(length <= left);
        size_t step = length + (length < left);
        char *end = at + trimmed(at, length);
        uint64_t last = number + (quotes ? count_line_ends(at, at + length) : 0);
        batch->row_line = number;
        if (batch->has_hashes) /* before a parser writes into it */
            batch->row_hash = hash64(at, (size_t)(end - at));
        if (json) {
            if (!is_empty(at, length))
                json_lines_parse(format, batch, at, end, number);
        } else if (skip_first)
            skip_first = is_empty(at, length) || record_is_comment(&format->rule, at);
        else if (format->kind == FORMAT_CSV)
            csv_parse_line(format, batch, at, end, number, last);
        else
            libsvm_parse_line(format, batch, at, end, number);
        at += step;
        left -= step;
        number = last + 1;
    }
}

/* LIBSVM text: LABEL ID:VALUE ID:VALUE … # comment */

/* How much of a line a message quotes. */
#define QUOTED 40

static const char *skip_blanks(const char *p) {
    while (is_blank(*p))
        p++;
    return p;
}

static int word_length(const char *p) {
    int length = 0;
    while (length < QUOTED && p[length] && !is_blank(p[length]) && p[length] != '\n')
        length++;
    return length;
}

/* The id at `p`, up to its colon; NULL if there is none that fits. */
static const char *parse_id(const char *p, uint64_t *id) {
    uint64_t value = 0;
    const char *first = p;
    for (; (unsigned char)(*p - '0') < 10; p++) {
        value = value * 10 + (uint64_t)(*p - '0');
        if (value > FEATURE_ID_MAX)
            return NULL;
    }
    *id = value;
    return p > first && *p == ':' && value ? p : NULL;
}

static bool reject_id(struct batch *batch, uint64_t number, const char *word) {
    size_t digits = strspn(word, "0123456789");
    int length = word_length(word);
    if (!digits || word[digits] != ':')
        return batch_reject(batch, number, "expected INDEX:VALUE but found \"%.*s\"", length, word);
    if (strspn(word, "0") == digits)
        return batch_reject(batch, number, "index 0 in \"%.*s\": indices start at 1", length, word);
    return batch_reject(batch, number, "the index in \"%.*s\" is over the limit of %llu", length,
                        word, (unsigned long long)FEATURE_ID_MAX);
}

static bool is_value_end(const char *p) {
    return is_blank(*p) || *p == '\0';
}

/* Reads a label that is a list, which may be of none: the line begins with its values then. */
static bool parse_list(const struct format *format, struct batch *batch, char **at, uint64_t number,
                       const char **text) {
    char *first = *at, *end = first + strcspn(first, " \t");
    bool none = memchr(first, ':', (size_t)(end - first)) != NULL;
    *text = none ? "" : first;
    if (none)
        return true;
    *at = *end ? end + 1 : end;
    *end = '\0';
    const char *list = first;
    double value;
    bool sound = true;
    struct bytes part;
    bytes_init(&part);
    while (sound && list_next(&list, format->options->label.separator, &part))
        sound = number_of_text((const char *)part.data, &value);
    bytes_release(&part);
    return sound || batch_reject(batch, number,
                                 "the label \"%.*s\" is no list of finite numbers with \"%c\" "
                                 "between them",
                                 QUOTED, first, format->options->label.separator);
}

/* What else a file may be whose first line begins with no label of LIBSVM. */
static const char *first_line_hint(const struct source_options *options, const char *line) {
    if (options->format != FORMAT_AUTO || strchr(line, ':'))
        return "";
    for (const char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' && *at != '\t')
            return ": this is no text, but a file of some other kind";
    if (options->syntax.delimiter)
        return "; where the first line does not have what csv.delimiter says, the file is taken "
               "for LIBSVM: without this key, commas, semicolons and the like are found";
    if (strchr(line, ' '))
        return "; where nothing in the first line parts columns, the file is taken for LIBSVM: if "
               "blanks part those of a table, this puts commas there: tr -s ' ' ',' < FILE > "
               "FILE.csv; if lines stand before the table, take them out; csv.delimiter says what "
               "else parts columns";
    return "; where nothing in the first line parts columns, the file is taken for LIBSVM: "
           "csv.delimiter says what parts those of a table; if lines stand before the table, take "
           "them out";
}

/* Reads the label if the line has one; false if the line was rejected. */
static bool parse_label(const struct format *format, struct batch *batch, const char **at,
                        uint64_t number, double *label) {
    const char *first = *at;
    /* Most labels are 1 or -1, or another class of one digit. NULL for anything else. */
    const char *p = first;
    bool negative = *p == '-';
    p += negative || *p == '+';
    *label = negative ? '0' - *p : *p - '0';
    const char *end = digits_is(*p) && is_value_end(p + 1) ? p + 1 : NULL;
    if (!end)
        end = number_parse(first, label);
    if (end && is_value_end(end)) {
        *at = end;
        *label += 0.0; /* −0 is 0 */
        return true;
    }
    bool missing = first[strcspn(first, ": \t")] == ':';
    if (missing && format->options->label.optional) {
        *label = NAN;
        return true;
    }
    int length = word_length(first);
    if (line_has_mark(first))
        return batch_reject(batch, number, MARK_WITHIN);
    if (missing)
        return batch_reject(batch, number,
                            "the line begins with \"%.*s\" where its label should be", length,
                            first);
    const char *hint = number == 1 ? first_line_hint(format->options, first) : "";
    return batch_reject(batch, number, "the label \"%.*s\" is not a finite number%s", length, first,
                        hint);
}

/* Reads ID:VALUE as nearly all are: an id of up to eight digits and a number that digits_number()
 * knows. Returns what is after, or NULL for anything else. */
static inline const char *parse_usual(const char *p, uint64_t *id, double *value) {
    unsigned digits = digits_count(p);
    const char *at = p + digits + 1;
    if (!digits || p[digits] != ':')
        return NULL;
    *id = digits_few(p, digits);
    if (digits_is(*at) && is_value_end(at + 1)) { /* most counts, and all ones */
        *value = *at - '0';
        return *id ? at + 1 : NULL;
    }
    const char *end = digits_number(at, ' ', value);
    return end && is_value_end(end) && *id ? end : NULL;
}

/* Parses an id and its value in all forms that are allowed. What is not is rejected: NULL. */
static const char *parse_any(struct batch *batch, uint64_t number, const char *p, uint64_t *id,
                             double *value) {
    const char *colon = parse_id(p, id);
    if (!colon) {
        reject_id(batch, number, p);
        return NULL;
    }
    const char *end = number_parse(colon + 1, value);
    if (end && is_value_end(end))
        return end;
    batch_reject(batch, number, "the value in \"%.*s\" is not a finite number", word_length(p), p);
    return NULL;
}

/* Reads the values of a row up to `end` into the batch; false if the line was rejected. */
static bool parse_values(struct batch *batch, uint64_t number, const char *p, const char *end,
                         bool *sorted) {
    uint64_t before = 0, *id = batch->id + batch->value_count;
    double *value = batch->value + batch->value_count;
    for (p = skip_blanks(p); p < end && *p; p = skip_blanks(p)) {
        const char *behind = parse_usual(p, id, value);
        if (!behind && !(behind = parse_any(batch, number, p, id, value)))
            return false;
        *sorted &= *id > before;
        before = *id++;
        value++;
        p = behind;
    }
    if (p < end)
        return batch_reject(batch, number, "a zero byte: is this a text file?");
    batch->value_count = (uint64_t)(value - batch->value);
    assert(batch->value_count <= batch->value_capacity);
    return true;
}

bool libsvm_parse_line(const struct format *format, struct batch *batch, char *line, char *end,
                       uint64_t number) {
    char *comment = batch->has_comments ? memchr(line, '#', (size_t)(end - line)) : NULL;
    if (comment)
        end = comment;
    *end = '\0';
    const char *p = skip_blanks(line), *text = NULL;
    if (p == end)
        return false;
    batch_reserve(batch, (uint64_t)(end - p) / 2 + 1);
    double label = NAN;
    const char *first = p;
    char *at = line + (p - line);
    bool has_label = format->options->label.separator
                         ? parse_list(format, batch, &at, number, &text)
                         : parse_label(format, batch, &p, number, &label);
    if (!has_label)
        return false;
    if (text)
        p = at;
    if (!text && number_is_code(first, (size_t)(p - first))) {
        text = first;
        line[p - line] = '\0';
        p += p < end;
    }
    bool sorted = true;
    uint64_t id;
    if (!parse_values(batch, number, p, end, &sorted))
        return false;
    if (!batch_row(batch, label, text, sorted, &id))
        return batch_reject(batch, number, "index %llu is repeated", (unsigned long long)id);
    return true;
}

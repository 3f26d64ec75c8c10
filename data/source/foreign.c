/* Files of formats that are not read: each is told by its beginning, and named with what to do. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/remote/address.h"
#include "data/source/input.h"
#include "data/source/zip.h"
#include "data/text/number.h"

/* ---- told by their first bytes ---- */

#define BY_PANDAS(read)                                                                            \
    "python3 -c \"import pandas; pandas." read "('FILE').to_csv('FILE.csv', index=False)\""
#define TAR_MAGIC_AT 257
#define BY_ICONV(from) "iconv -f " from " -t UTF-8 FILE > FILE.csv"

static const struct foreign {
    const char *bytes;
    size_t length;
    const char *name, *command;
} formats[] = {
    {"ARROW1", 6, "Arrow (Feather)", BY_PANDAS("read_feather")},
    {"FEA1", 4, "Feather", BY_PANDAS("read_feather")},
    {"\xff\xff\xff\xff", 4, "an Arrow stream",
     "python3 -c \"import pyarrow; "
     "pyarrow.ipc.open_stream('FILE').read_pandas().to_csv('FILE.csv', index=False)\""},
    {"ORC", 3, "ORC", BY_PANDAS("read_orc")},
    {"Obj\x01", 4, "Avro",
     "python3 -c \"import pandas, fastavro; "
     "pandas.DataFrame(fastavro.reader(open('FILE', 'rb'))).to_csv('FILE.csv', index=False)\""},
    {"\x89HDF\r\n", 6, "HDF5", BY_PANDAS("read_hdf")},
    {"\xd0\xcf\x11\xe0", 4, "an Excel workbook", BY_PANDAS("read_excel")},
    {"PK\x03\x04", 4, "a zip archive, as .xlsx files are",
     "unzip FILE, and a workbook: " BY_PANDAS("read_excel")},
    {"SQLite format 3", 15, "an SQLite database",
     "sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > FILE.csv"},
    {"BZh", 3, "bzip2", "bunzip2 FILE"},
    {"\xfd"
     "7zXZ",
     5, "xz", "unxz FILE"},
    {"\x04\"M\x18", 4, "lz4", "unlz4 FILE"},
    {"\x80\x03", 2, "a pickle of Python", BY_PANDAS("read_pickle")},
    {"\x80\x04\x95", 3, "a pickle of Python", BY_PANDAS("read_pickle")},
    {"\x80\x05\x95", 3, "a pickle of Python", BY_PANDAS("read_pickle")},
    {"X\n\0\0\0", 5, "an object of R", "Rscript -e \"write.csv(readRDS('FILE'), 'FILE.csv')\""},
    {"RDX", 3, "objects of R",
     "Rscript -e \"write.csv(get(load('FILE')[1]), 'FILE.csv', row.names=FALSE)\""},
    {"<stata_dta>", 11, "a file of Stata", BY_PANDAS("read_stata")},
    {"$FL2@(#)", 8, "a file of SPSS", BY_PANDAS("read_spss")},
    {"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60", 16, "a file of SAS", BY_PANDAS("read_sas")},
    {"\x1f\x8b", 2, "compressed twice", "gunzip FILE"},
    {"(\xb5/\xfd", 4, "compressed twice", "unzstd FILE"},
    {"\xff\xfe\0\0", 4, "text in UTF-32", BY_ICONV("UTF-32")},
    {"\0\0\xfe\xff", 4, "text in UTF-32", BY_ICONV("UTF-32")},
    {"\xff\xfe", 2, "text in UTF-16", BY_ICONV("UTF-16")},
    {"\xfe\xff", 2, "text in UTF-16", BY_ICONV("UTF-16")},
};

/* What has nothing at its beginning that tells it. */
static const struct foreign archive = {NULL, 0, "a tar archive", "tar -xf FILE"},
                            low_first = {NULL, 0, "text in UTF-16", BY_ICONV("UTF-16LE")},
                            high_first = {NULL, 0, "text in UTF-16", BY_ICONV("UTF-16BE")};

/* Whether the first bytes are those of text, each with a zero byte before or after it. */
static bool alternates(const char *bytes, size_t length, size_t text) {
    size_t count = length < 16 ? length : 16;
    for (size_t i = 0; i < count; i++)
        if (i % 2 == text ? !isprint((unsigned char)bytes[i]) && !isspace((unsigned char)bytes[i])
                          : bytes[i] != 0)
            return false;
    return count >= 4;
}

static const struct foreign *find_foreign(const char *bytes, size_t length) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (length >= formats[i].length && !memcmp(bytes, formats[i].bytes, formats[i].length))
            return &formats[i];
    if (length >= TAR_MAGIC_AT + 5 && !memcmp(bytes + TAR_MAGIC_AT, "ustar", 5))
        return &archive;
    if (alternates(bytes, length, 0))
        return &low_first;
    return alternates(bytes, length, 1) ? &high_first : NULL;
}

/* Puts a name in the place of FILE. */
static char *command_for(const char *command, const char *path) {
    char *text = memory_copy_string("");
    for (const char *at = command, *name; *at; at = name + strlen("FILE")) {
        name = strstr(at, "FILE");
        char *longer = name ? memory_format("%s%.*s%s", text, (int)(name - at), at, path)
                            : memory_format("%s%s", text, at);
        free(text);
        text = longer;
        if (!name)
            break;
    }
    return text;
}

/* What converts a file; one that is compressed is unpacked before. */
static char *conversion_of(const struct foreign *format, const char *path) {
    size_t length = name_plain_length(path);
    if (!path[length] || !strcmp(format->name, "compressed twice"))
        return command_for(format->command, path);
    char *plain = memory_format("%.*s", (int)length, path);
    char *command = command_for(format->command, plain);
    char *both = memory_format("%s %s && %s", strcmp(path + length, ".gz") ? "unzstd" : "gunzip",
                               path, command);
    free(plain);
    free(command);
    return both;
}

/* Pages and documents, which are text to a reader of tables. */
static int check_documents(const char *path, const char *text, size_t length) {
    static const char html[] =
        "a page of HTML and no table: if it was to be downloaded, the server "
        "sent a page of its own, such as one to log in";
    static const struct {
        const char *begins, *name;
    } documents[] = {{"<!doctype html", html},
                     {"<html", html},
                     {"%pdf-", "a PDF document and no table"},
                     {"<?xml", "XML and no table"}};
    for (; length && memchr("\xef\xbb\xbf \t\r\n", *text, 7); length--)
        text++;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        if (length > strlen(documents[i].begins) &&
            !strncasecmp(text, documents[i].begins, strlen(documents[i].begins)))
            return error_set(ERROR_DATA, "%s is %s", path, documents[i].name);
    return 0;
}

/* ---- texts, told by their first lines ---- */

static bool is_space(char c) {
    return c == ' ' || c == '\t';
}

/* The next word of a line at *at, which moves past it; its length is 0 at the end. */
static const char *next_word(const char **at, const char *end, size_t *length) {
    while (*at < end && is_space(**at))
        ++*at;
    const char *word = *at;
    while (*at < end && !is_space(**at))
        ++*at;
    *length = (size_t)(*at - word);
    return word;
}

static bool is_number(const char *word, size_t length) {
    char text[64];
    double value;
    if (!length || length >= sizeof text)
        return false;
    memcpy(text, word, length);
    text[length] = '\0';
    return number_of_text(text, &value);
}

/* Whether a word is NAME:NUMBER; *name gets the length of the name. */
static bool is_pair(const char *word, size_t length, size_t *name) {
    const char *colon = memchr(word, ':', length);
    *name = colon ? (size_t)(colon - word) : 0;
    return *name && is_number(colon + 1, length - *name - 1);
}

static bool is_index(const char *word, size_t length) {
    size_t digits = 0;
    while (digits < length && isdigit((unsigned char)word[digits]))
        digits++;
    return length && digits == length;
}

static bool begins(const char *line, const char *end, const char *with) {
    const size_t length = strlen(with);
    return (size_t)(end - line) >= length && !strncasecmp(line, with, length);
}

static bool is_lfs(const char *line, const char *end) {
    return begins(line, end, "version https://git-lfs.github.com/");
}

static bool is_arff(const char *line, const char *end) {
    return begins(line, end, "@relation ") || begins(line, end, "@relation\t");
}

static bool is_dict(const char *line, const char *end) {
    const char *at = line + 1;
    while (at < end && is_space(*at))
        at++;
    return *line == '{' && at < end && *at == '\'' && end[-1] == '}';
}

/* {KEY: … }, as JavaScript takes it. */
static bool is_unquoted(const char *line, const char *end) {
    const char *at = line + 1;
    while (at < end && is_space(*at))
        at++;
    const char *key = at;
    while (at < end && (isalnum((unsigned char)*at) || *at == '_' || *at == '$'))
        at++;
    const bool named = at > key && !isdigit((unsigned char)*key);
    while (at < end && is_space(*at))
        at++;
    return *line == '{' && named && at < end && *at == ':' && end[-1] == '}';
}

static bool is_slashed(const char *line, const char *end) {
    return begins(line, end, "//");
}

static bool is_object_with_comma(const char *line, const char *end) {
    return *line == '{' && end - line > 3 && end[-1] == ',' && end[-2] == '}';
}

/* LABEL, IMPORTANCE, BASE, each may be missing, and 'TAG; then |NAMESPACE or | with features, NAME
 * or NAME:NUMBER. A bar stands after a blank or the tag. As bars may separate columns of a table,
 * there must be a name at one of them, or a pair. */
static bool is_vowpal(const char *line, const char *end) {
    const char *at = line, *bar = memchr(line, '|', (size_t)(end - line));
    bool named = false;
    size_t length, name;
    if (!bar)
        return false;
    while (at < bar) {
        const char *word = next_word(&at, bar, &length);
        const bool touches = length && at == bar; /* as a tag may */
        if (length && *word != '\'' && (touches || !is_number(word, length)))
            return false;
    }
    while (at < end) {
        const char *word = next_word(&at, end, &length);
        const char *inner = length ? memchr(word + 1, '|', length - 1) : NULL;
        if (inner)
            return false;
        named |= length > 1 && (*word == '|' || is_pair(word, length, &name));
    }
    return named;
}

static bool is_numbers(const char *line, const char *end) {
    unsigned words = 0;
    for (size_t length;; words++) {
        const char *word = next_word(&line, end, &length);
        if (!length)
            return words > 1;
        if (!is_number(word, length))
            return false;
    }
}

/* Whether all words up to the end or a # are INDEX:NUMBER, as they are in LIBSVM. */
static bool has_pairs_behind(const char *at, const char *end) {
    size_t length, name;
    for (;;) {
        const char *word = next_word(&at, end, &length);
        if (!length || *word == '#')
            return true;
        if (!is_pair(word, length, &name) || !is_index(word, name))
            return false;
    }
}

static bool is_from_zero(const char *line, const char *end) {
    size_t length, index;
    const char *label = next_word(&line, end, &length);
    if (!is_number(label, length))
        return false;
    const char *behind = line, *word = next_word(&line, end, &length);
    return is_pair(word, length, &index) && index == 1 && *word == '0' &&
           has_pairs_behind(behind, end);
}

static bool is_ranking(const char *line, const char *end) {
    size_t length;
    const char *label = next_word(&line, end, &length);
    if (!is_number(label, length))
        return false;
    const char *query = next_word(&line, end, &length);
    return begins(query, end, "qid:") && has_pairs_behind(line, end);
}

static bool is_labels(const char *line, const char *end) {
    size_t length, part = 0;
    const char *labels = next_word(&line, end, &length);
    const char *pair = line;
    if (!memchr(labels, ',', length))
        return false;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && labels[i] != ',')
            continue;
        if (!is_index(labels + part, i - part))
            return false;
        part = i + 1;
    }
    next_word(&pair, end, &length);
    return length && has_pairs_behind(line, end);
}

/* Which of the lines that are seen must be so. */
enum lines { FIRST, EVERY };

/* Formats of texts, in the order in which they are tried. FILE in a command is the file. */
static const struct {
    const char *name;
    enum lines lines;
    bool (*is)(const char *line, const char *end); /* of a line that is not empty */
    const char *advice, *command;                  /* or no command: NULL */
} texts[] = {
    {"a pointer of Git LFS in place of the file", FIRST, is_lfs, "this fetches the file",
     "git lfs pull --include FILE"},
    {"ARFF", FIRST, is_arff,
     "its missing cells are ?, which csv.missing may say; this leaves its rows, without names of "
     "columns",
     "sed '1,/^@data/Id; /^%/d' FILE > FILE.csv"},
    {"lines of Python's dictionaries", EVERY, is_dict, "this converts it",
     "python3 -c \"import ast, json, sys; [print(json.dumps(ast.literal_eval(line))) for line in "
     "sys.stdin]\" < FILE > FILE.jsonl"},
    {"lines of JavaScript's objects, whose keys have no quotes", EVERY, is_unquoted,
     "this converts most",
     "sed -E 's/([{,][[:space:]]*)([A-Za-z_$][A-Za-z0-9_$]*)[[:space:]]*:/\\1\"\\2\":/g' FILE > "
     "FILE.jsonl"},
    {"a text with comments of // before it", FIRST, is_slashed, "this takes them out",
     "sed '/^[[:space:]]*\\/\\//d' FILE > FILE.new"},
    {"JSON with a comma behind each object, and no JSON Lines", EVERY, is_object_with_comma,
     "this converts it", "sed 's/,[[:space:]]*$//' FILE > FILE.jsonl"},
    {"Vowpal Wabbit", EVERY, is_vowpal,
     "write its rows as LIBSVM, with a number from 1 in the place of each name, or as JSON Lines "
     "with a key for each name",
     NULL},
    {"LIBSVM with queries for ranking (qid:)", EVERY, is_ranking,
     "no objective ranks; to train on its labels as they are, this takes the queries out",
     "sed 's/ qid:[^ ]*//' FILE > FILE.svm"},
    {"LIBSVM with several labels a row", FIRST, is_labels, "set objective = multilabel", NULL},
    {"LIBSVM whose indices start at 0", FIRST, is_from_zero, "this makes them start at 1",
     "awk '{ for (i = 2; i <= NF; i++) { split($i, p, \":\"); $i = p[1] + 1 \":\" p[2] } print }' "
     "FILE > FILE.svm"},
    {"a table whose columns are separated by blanks", EVERY, is_numbers, "this puts commas there",
     "sed 's/^ *//; s/ *$//; s/ \\{1,\\}/,/g' FILE > FILE.csv"},
};
enum { TEXTS = sizeof texts / sizeof *texts };

/* Whether options make something of a format after all: a first line may be malformed. Numbers with
 * blanks between them may be a text, the only cell of a row without its label. */
static bool is_allowed(const struct source_options *options,
                       bool (*is)(const char *, const char *)) {
    return (is == is_labels && options->label.separator) ||
           (options->bad_lines_max && (is == is_labels || is == is_from_zero)) ||
           (is == is_numbers && options->table.known && options->table.known->columns <= 2) ||
           (is == is_vowpal && options->syntax.delimiter) ||
           (is == is_slashed && options->syntax.comment && *options->syntax.comment == '/');
}

/* Counts of the lines at the beginning of a file those that are of each format. */
struct lines_seen {
    unsigned all, of[TEXTS];
    bool first[TEXTS];
};

static void see_line(struct lines_seen *seen, const char *line, const char *end) {
    while (end > line && (is_space(end[-1]) || end[-1] == '\r'))
        end--;
    while (line < end && is_space(*line))
        line++;
    if (line == end || (!seen->all && (*line == '%' || *line == '#'))) /* comments before it */
        return;
    for (int i = 0; i < TEXTS; i++) {
        const bool is = (texts[i].lines == FIRST && seen->all) ? false : texts[i].is(line, end);
        seen->of[i] += is;
        seen->first[i] |= is && !seen->all;
    }
    seen->all++;
}

static int check_text(const char *path, const struct source_options *options, const char *text,
                      size_t length) {
    struct lines_seen seen = {0};
    /* A line that the beginning cuts counts only if no other is there, without its last word. */
    const char *end = text + length, *line = text;
    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        line += 3;
    for (const char *behind; (behind = memchr(line, '\n', (size_t)(end - line))); line = behind + 1)
        see_line(&seen, line, behind);
    while (!seen.all && end > line && !is_space(end[-1]))
        end--;
    if (!seen.all && end > line)
        see_line(&seen, line, end);
    for (int i = 0; i < TEXTS && seen.all; i++) {
        const bool is = texts[i].lines == FIRST ? seen.first[i] : seen.of[i] == seen.all;
        if (!is || is_allowed(options, texts[i].is))
            continue;
        const struct foreign format = {.name = texts[i].name, .command = texts[i].command};
        char *command = format.command ? conversion_of(&format, path) : NULL;
        error_set(ERROR_DATA, "%s is %s, which is not read: %s%s%s", path, format.name,
                  texts[i].advice, command ? ": " : "", command ? command : "");
        free(command);
        return ERROR_DATA;
    }
    return 0;
}

int foreign_check(const char *path, const struct source_options *options, const void *bytes,
                  size_t length) {
    const char *first = bytes;
    bool text = length && isalpha((unsigned char)*first); /* some beginnings are of letters */
    for (size_t i = 0; i < length && text; i++)
        text = (unsigned char)first[i] >= ' ' || memchr("\t\r\n", first[i], 3);
    const bool known = text || zip_begins_with_array(bytes, length);
    const struct foreign *format = known ? NULL : find_foreign(first, length);
    if (!format) {
        const int code = check_documents(path, first, length);
        return code || !options ? code : check_text(path, options, first, length);
    }
    char *command = conversion_of(format, path);
    error_set(
        ERROR_DATA,
        "%s is %s, which is not read: give CSV, JSON Lines, Parquet, LIBSVM, IDX, .npy or .npz, "
        "plain or as .gz or .zst; this converts it: %s",
        path, format->name, command);
    free(command);
    return ERROR_DATA;
}

/* How what is at an address is read, by the beginning of its scheme; the last is that of all
 * others.
 */
static const struct {
    const char *scheme, *before, *behind;
} readers[] = {{"gs", "gsutil cat ", ""}, {"hdfs", "hdfs dfs -cat ", ""}, {"", "curl -fsS ", ""}};

int foreign_check_path(const char *path) {
    size_t scheme = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+"), i = 0;
    if (scheme < 2 || strncmp(path + scheme, "://", 3) != 0 || address_is(path))
        return 0;
    while (strncmp(path, readers[i].scheme, strlen(readers[i].scheme)))
        i++;
    return error_set(ERROR_DATA,
                     "%s is an address and no file: copy what is there first, or read it from "
                     "standard input: give - as the data, as in `%s%.200s%s | dml-coordinator ...`",
                     path, readers[i].before, path, readers[i].behind);
}

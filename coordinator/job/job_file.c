/* The text of a job file and of --set, from characters to keys: libconfuse parses it. The text is
 * prepared before, because libconfuse counts the lines of comments wrongly, silently ignores some
 * characters, and ends words at a plus. */
#include <assert.h>
#include <confuse.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/key.h"

/* ---- the text ---- */

struct job_reader {
    char *at;
    int line;
    int depth;        /* of braces */
    int opened[2];    /* the lines of those that are open: of a section, and of a list in it */
    const char *file; /* or the setting, as messages name it */
    bool is_setting;
};

static void step(struct job_reader *reader) {
    if (*reader->at == '\n')
        reader->line++;
    reader->at++;
}

/* A setting has one line. */
static int refuse_text(const struct job_reader *reader, int line, const char *why) {
    if (!reader->is_setting)
        return error_set(ERROR_CONFIG, "%s:%d: %s", reader->file, line, why);
    return error_set(ERROR_CONFIG, "%s: %s", reader->file, why);
}

static int unclosed(const struct job_reader *reader, int line, const char *what) {
    char *why = memory_format("the %s that begins here is not closed", what);
    int code = refuse_text(reader, line, why);
    free(why);
    return code;
}

static int skip_quoted(struct job_reader *reader) {
    char quote = *reader->at;
    int line = reader->line;
    step(reader);
    while (*reader->at && *reader->at != quote) {
        if (*reader->at == '\\' && reader->at[1])
            step(reader);
        step(reader);
    }
    if (!*reader->at)
        return unclosed(reader, line, "quoted text");
    step(reader);
    return 0;
}

static int blank_block(struct job_reader *reader) {
    int line = reader->line;
    char *end = strstr(reader->at + 2, "*/");
    if (!end)
        return unclosed(reader, line, "comment /*");
    while (reader->at < end + 2) {
        bool keep = *reader->at == '\n';
        step(reader);
        if (!keep)
            reader->at[-1] = ' ';
    }
    return 0;
}

/* Whether a slash at `at` begins a comment in the middle of a word, such as a path. */
static bool is_inside_word(const char *text, const char *at) {
    return at[0] == '/' && (at[1] == '/' || at[1] == '*') && at > text &&
           !strchr(" \t\r\n{}=,", at[-1]);
}

/* Whether a plus at `at` is that of a number such as 1e+6: to the parser it ends the word. */
static bool is_exponent_sign(const char *text, const char *at) {
    const char *word = at;
    while (word > text && (isdigit((unsigned char)word[-1]) || strchr(".eE-", word[-1])))
        word--;
    bool begins = word == text || strchr(" \t\r\n{=,", word[-1]);
    return *at == '+' && begins && at - word > 1 && (at[-1] == 'e' || at[-1] == 'E') &&
           isdigit((unsigned char)at[1]);
}

/* Settings are stored as JSON, which must be UTF-8. */
static int check_utf8(const char *text, const char *file) {
    int number = 1;
    if (text_is_utf8(text))
        return 0;
    for (;; number++, text = strchr(text, '\n') + 1) {
        char *line = memory_format("%.*s", (int)strcspn(text, "\n"), text);
        bool good = text_is_utf8(line);
        free(line);
        if (!good || !strchr(text, '\n'))
            break;
    }
    return error_set(ERROR_CONFIG,
                     "%s:%d: a character that is not UTF-8; convert the job file to UTF-8, or "
                     "rename the file or folder that it names",
                     file, number);
}

/* What editors of some systems write before a text in UTF-8; it means nothing. */
#define UTF8_MARK "\xef\xbb\xbf"

static int prepare(char *text, struct job_reader reader) {
    int code = 0;
    while (!code && *reader.at) {
        const char *at = reader.at;
        if (*at == '"' || *at == '\'')
            code = skip_quoted(&reader);
        else if (*at == '*' || is_inside_word(text, at))
            code = refuse_text(&reader, reader.line, "a string with * or // in it needs quotes");
        else if (*at == '#' || (at[0] == '/' && at[1] == '/'))
            while (*reader.at && *reader.at != '\n')
                *reader.at++ = ' ';
        else if (at[0] == '/' && at[1] == '*')
            code = blank_block(&reader);
        else if (is_exponent_sign(text, at))
            *reader.at++ = '0'; /* 1e06 is the same number */
        else {
            if (*reader.at == '{' && reader.depth < 2)
                reader.opened[reader.depth] = reader.line;
            reader.depth += *reader.at == '{' ? 1 : *reader.at == '}' && reader.depth ? -1 : 0;
            step(&reader);
        }
    }
    if (!code && reader.depth)
        code = unclosed(&reader, reader.opened[reader.depth > 1], "{");
    return code;
}

int job_text_prepare(char *text, const char *file) {
    if (strncmp(text, UTF8_MARK, strlen(UTF8_MARK)) == 0)
        memset(text, ' ', strlen(UTF8_MARK));
    int code = prepare(text, (struct job_reader){.at = text, .line = 1, .file = file});
    return code ? code : check_utf8(text, file);
}

/* ---- parsing ---- */

#define KEYS_MAX 192
#define SECTIONS_MAX 16
#define JOB_FILE_BYTES_MAX (1u << 20)

/* libconfuse passes no context to its callbacks and keeps its own state in static variables. So the
 * state of a reading is static here, too. */
static struct {
    struct job *job;
    const char *file;       /* NULL: a --set */
    const char *setting;    /* the --set as typed */
    const struct key *only; /* the key that it is for */
    const char *text;       /* of the file or the setting */
    int line[KEYS_MAX];     /* on which each key was set; 0: not yet */
    int code;
} reading;

static void write_place(const cfg_t *cfg, char *place, size_t size) {
    if (reading.file)
        snprintf(place, size, "%s:%d", reading.file, cfg->line);
    else
        snprintf(place, size, "--set %s", reading.setting);
}

/* The section that is being read; "" outside of all sections. */
static const char *section_of(const cfg_t *cfg) {
    return strcmp(cfg->name, "root") ? cfg->name : "";
}

static bool is_of_section(const struct key *key, const char *section) {
    size_t length = key_section(key);
    return length == strlen(section) && strncmp(key->name, section, length) == 0;
}

/* The key that was meant if a name stands in the wrong place: `csv.label` in a file, `label`
 * outside of its section, `l2` inside of one, or `csv.l2`. */
static const struct key *misplaced(const char *name, const char *section) {
    const struct key *key = key_find(name);
    const char *dot = strrchr(name, '.');
    if (!key && dot)
        return misplaced(dot + 1, "");
    for (size_t i = 0; !key && !*section && i < keys_count; i++)
        if (key_section(&keys[i]) && strcmp(key_own_name(&keys[i]), name) == 0)
            key = &keys[i];
    return key;
}

static int refuse_misplaced(const char *place, const char *name, const struct key *key,
                            const char *section) {
    int length = (int)key_section(key);
    if (!length && !*section)
        return error_set(ERROR_CONFIG, "%s: key `%s`: write `%s`, which is in no section", place,
                         name, key->name);
    if (!length)
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: does not belong to the section %s; write it outside of "
                         "%s { }",
                         place, name, section, section);
    if (!reading.file)
        return error_set(ERROR_CONFIG, "%s: key `%s`: write `%s`", place, name, key->name);
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: belongs to the section %.*s; write %.*s { %s = VALUE }", place,
                     name, length, key->name, length, key->name, key_own_name(key));
}

/* Whether a word stands after another one in the value of a key, as the second does of
 * KEY = my file.csv. */
static bool is_within_value(const char *name, int line) {
    const char *start =
        isalnum((unsigned char)*name) || strchr("./~_", *name) ? reading.text : NULL;
    for (int i = 1; i < line && start; i++)
        start = strchr(start, '\n') ? strchr(start, '\n') + 1 : NULL;
    const char *word = start ? strstr(start, name) : NULL;
    const char *equals = start ? strchr(start, '=') : NULL;
    if (!word || !equals || equals > word || memchr(start, '\n', (size_t)(word - start)))
        return false;
    return word[strlen(name) + strspn(word + strlen(name), " \t")] != '=';
}

/* What every syntax error tells. */
#define SYNTAX                                                                                     \
    "allowed: lines of the form KEY = VALUE; a list is written as { \"a\", \"b\" }, and "          \
    "# starts a comment"

static int unknown_key(const char *place, const char *name, const char *section, int line) {
    const struct key *key = misplaced(name, section);
    if (line && is_within_value(name, line))
        return error_set(ERROR_CONFIG,
                         "%s: \"%s\" follows a value: a string with blanks needs quotes, and "
                         "several strings are a list: { \"a\", \"b\" }",
                         place, name);
    if (key)
        return refuse_misplaced(place, name, key, section);
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")])
        return error_set(ERROR_CONFIG, "%s: \"%s\" is not a key; " SYNTAX, place, name);
    struct nearest nearest = {.text = name};
    for (size_t i = 0; i < keys_count; i++)
        if (!*section)
            nearest_offer(&nearest, keys[i].name);
        else if (is_of_section(&keys[i], section))
            nearest_offer(&nearest, key_own_name(&keys[i]));
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: there is no such key%s%s; `dml-coordinator check --help` lists "
                     "them%s",
                     place, name, *section ? " in " : "", section,
                     nearest_suggestion(&nearest, ""));
}

static void complain(cfg_t *cfg, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Called with libconfuse's errors. An unknown key gets a message of ours; the others are syntax. */
static void complain(cfg_t *cfg, const char *format, va_list arguments) {
    char place[1024], words[512];
    write_place(cfg, place, sizeof place);
    if (strncmp(format, "no such option", strlen("no such option")) == 0) {
        reading.code =
            unknown_key(place, va_arg(arguments, const char *), section_of(cfg), cfg->line);
        return;
    }
    vsnprintf(words, sizeof words, format, arguments);
    reading.code = error_set(ERROR_CONFIG, "%s: %s; " SYNTAX, place, words);
}

/* Called by the parser for every value, every element of a list. */
static int take_value(cfg_t *cfg, cfg_opt_t *option, const char *text, void *result) {
    char name[64], place[1024];
    const char *section = section_of(cfg);
    snprintf(name, sizeof name, "%s%s%s", section, *section ? "." : "", option->name);
    write_place(cfg, place, sizeof place);
    const struct key *key = key_find(name);
    assert(key); /* the parser knows the keys of the table and no others */
    int *line = &reading.line[key - keys];
    bool first = option->nvalues == 1;
    if (reading.only && key != reading.only)
        reading.code = error_set(ERROR_CONFIG,
                                 "%s: sets key `%s`, too; allowed: one key, each with a --set of "
                                 "its own",
                                 place, name);
    else if (first && *line)
        reading.code = error_set(ERROR_CONFIG,
                                 "%s: key `%s`: given twice, first on line %d; "
                                 "allowed: once",
                                 place, name, *line);
    else if (!strcmp(text, "["))
        reading.code = error_set(ERROR_CONFIG, "%s: key `%s`: \"[\"; " SYNTAX, place, name);
    else if (!first && !key_is_list(key))
        reading.code =
            error_set(ERROR_CONFIG, "%s: key `%s`: a list; allowed: one value", place, name);
    if (first)
        key_clear(key, reading.job);
    if (!reading.code)
        reading.code = key_assign(key, reading.job, text, place);
    *line = cfg->line;
    *(const char **)result = text;
    return reading.code;
}

/* A section of the job file, and its keys. */
struct job_section {
    char name[32];
    cfg_opt_t options[KEYS_MAX];
    size_t count;
};

/* The section of a key: one of `count`, or a new one. */
static struct job_section *section_for(const struct key *key, struct job_section *sections,
                                       size_t *count) {
    for (size_t i = 0; i < *count; i++)
        if (is_of_section(key, sections[i].name))
            return &sections[i];
    assert(*count < SECTIONS_MAX);
    struct job_section *section = &sections[(*count)++];
    snprintf(section->name, sizeof section->name, "%.*s", (int)key_section(key), key->name);
    return section;
}

/* The parser of job files. To libconfuse every key is a list: then take_value() gets a list in the
 * wrong place, too, and can name the key. */
static cfg_t *parser_new(void) {
    struct job_section *sections = memory_new(SECTIONS_MAX, sizeof *sections);
    cfg_opt_t outer[KEYS_MAX] = {0};
    size_t outers = 0, count = 0;
    assert(keys_count + SECTIONS_MAX < KEYS_MAX);
    for (size_t i = 0; i < keys_count; i++) {
        struct job_section *section =
            key_section(&keys[i]) ? section_for(&keys[i], sections, &count) : NULL;
        *(section ? &section->options[section->count++] : &outer[outers++]) =
            (cfg_opt_t){.name = key_own_name(&keys[i]),
                        .type = CFGT_STR,
                        .flags = CFGF_LIST | CFGF_NODEFAULT,
                        .parsecb = take_value};
    }
    for (size_t i = 0; i < count; i++)
        outer[outers++] =
            (cfg_opt_t){.name = sections[i].name, .type = CFGT_SEC, .subopts = sections[i].options};
    cfg_t *parser = cfg_init(outer, CFGF_NONE); /* copies what it is given */
    free(sections);
    assert(parser);
    cfg_set_error_function(parser, complain);
    return parser;
}

/* ---- empty lists, of which take_value() hears nothing ---- */

static cfg_opt_t *option_in(cfg_t *parser, const struct key *key) {
    char path[64];
    int section = (int)key_section(key);
    snprintf(path, sizeof path, "%.*s%s%s", section, key->name, section ? "|" : "",
             key_own_name(key));
    return cfg_getopt(parser, path);
}

static const char *past_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* The line on which the key is given an empty list, 0 if none is found. */
static int line_of_empty(const char *text, const struct key *key) {
    const char *name = key_own_name(key);
    int line = 1;
    for (const char *at = text; *at; at++) {
        line += *at == '\n';
        if (strncmp(at, name, strlen(name)) != 0)
            continue;
        const char *after = past_blanks(at + strlen(name));
        if (*after == '=' && *(after = past_blanks(after + 1)) == '{' &&
            *past_blanks(after + 1) == '}')
            return line;
    }
    return 0;
}

/* Only a list can be empty: of anything else that would be taken for the default. */
static int refuse_empty(cfg_t *parser, const char *text) {
    for (size_t i = 0; i < keys_count; i++) {
        const cfg_opt_t *option = option_in(parser, &keys[i]);
        if (keys[i].type == KEY_LIST || !option || option->nvalues ||
            !(option->flags & CFGF_MODIFIED))
            continue;
        char line[16] = "", allowed[KEY_ALLOWED_BYTES];
        if (reading.file)
            snprintf(line, sizeof line, ":%d", line_of_empty(text, &keys[i]));
        key_allowed(&keys[i], allowed);
        return error_set(ERROR_CONFIG, "%s%s%s: key `%s`: an empty list; allowed: %s",
                         reading.file ? reading.file : "--set ", line,
                         reading.file ? "" : reading.setting, keys[i].name, allowed);
    }
    return 0;
}

/* Whether the text has the section of a key, and nothing in it. */
static bool has_empty_section(const char *text, const struct key *key) {
    size_t length = key_section(key);
    for (const char *at = text; length && (at = strchr(at, *key->name)); at++) {
        bool begins = at == text || strchr(" \t\r\n}", at[-1]);
        if (!begins || strncmp(at, key->name, length) != 0)
            continue;
        const char *brace = past_blanks(at + length);
        if (*brace == '{' && *past_blanks(brace + 1) == '}')
            return true;
    }
    return false;
}

static int parse(const char *text) {
    reading.code = 0;
    reading.text = text;
    memset(reading.line, 0, sizeof reading.line);
    cfg_t *parser = parser_new();
    if (cfg_parse_buf(parser, text) != CFG_SUCCESS && !reading.code)
        reading.code = error_set(ERROR_CONFIG, "%s: cannot be understood",
                                 reading.file ? reading.file : reading.setting);
    if (!reading.code)
        reading.code = refuse_empty(parser, text);
    /* Empty lists, too, which take_value() hears nothing of; an empty section gives its keys. */
    for (size_t i = 0; i < keys_count && reading.job->given; i++) {
        const cfg_opt_t *option = option_in(parser, &keys[i]);
        reading.job->given[i] |=
            (option && option->flags & CFGF_MODIFIED) || has_empty_section(text, &keys[i]);
    }
    cfg_free(parser);
    return reading.code;
}

const char *job_suggestion(const char *path, bool or_state) {
    return file_suggestion(path, (const char *const[]){".conf", or_state ? ".state" : NULL, NULL});
}

static int read_and_parse(struct job *job) {
    char *text = NULL;
    size_t length;
    int code = file_read(job->file, JOB_FILE_BYTES_MAX, &text, &length);
    if (code == ERROR_PERMISSION)
        return code;
    if (code && !access(job->file, F_OK))
        return ERROR_CONFIG;
    if (code) { /* perhaps another job file is meant */
        char *why = memory_copy_string(error_text());
        error_clear();
        code = error_set(ERROR_CONFIG, "%s%s", why, job_suggestion(job->file, false));
        free(why);
        return code;
    }
    if (strlen(text) != length)
        code = error_set(ERROR_CONFIG, "%s: is not a text file", job->file);
    if (!code)
        code = job_text_prepare(text, job->file);
    reading.job = job;
    reading.file = job->file;
    if (!code)
        code = parse(text);
    free(text);
    return code;
}

/* A file that cannot be read as a job file, and by its name is a table, may be meant as data. */
int job_file_read(struct job *job) {
    static const char *const endings[] = {".csv",   ".tsv",    ".tab",  ".txt",
                                          ".jsonl", ".ndjson", ".json", ".parquet",
                                          ".gz",    ".libsvm", ".svm",  ".zst"};
    bool is_data = false;
    int code = read_and_parse(job);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        is_data |= name_ends(job->file, endings[i]);
    if (!code || !is_data || code == ERROR_PERMISSION || access(job->file, F_OK))
        return code;
    char *word = shell_word(job->file);
    error_clear();
    code = error_set(ERROR_CONFIG,
                     "%s is not a job file but, by its name, data; this writes a job file for it: "
                     "dml-coordinator init %s",
                     job->file, word);
    free(word);
    return code;
}

/* Applies KEY=VALUE. A value that begins with { or a quote is read as in a file. Any other value is
 * taken as it stands, with its spaces, but for those around the = of KEY = VALUE. None restores the
 * default, as if the job file did not give the key. */
int job_file_set(struct job *job, const char *setting) {
    const char *equals = strchr(setting, '=');
    if (!equals || equals == setting)
        return error_set(ERROR_USAGE, "--set %s: allowed: KEY=VALUE", setting);
    if (!text_is_utf8(setting))
        return error_set(ERROR_USAGE, "--set %s: has a character that is not UTF-8", setting);
    size_t length = (size_t)(equals - setting);
    while (length && strchr(" \t", setting[length - 1]))
        length--;
    bool spaced = setting + length < equals; /* KEY = VALUE, as in a file */
    char *name = memory_format("%.*s", (int)length, setting);
    char *place = memory_format("--set %s", setting);
    const char *value = equals + 1 + (spaced ? strspn(equals + 1, " \t") : 0);
    const struct key *key = key_find(name);
    int code;
    reading.file = NULL;
    reading.setting = setting;
    if (!key) {
        code = unknown_key(place, name, "", 0);
    } else if (strchr("{\"'", *value) && *value) {
        int section = (int)key_section(key);
        char *text =
            section ? memory_format("%.*s { %s = %s }", section, name, key_own_name(key), value)
                    : memory_format("%s = %s", name, value);
        reading.job = job;
        reading.only = key;
        key_replace(key, job);
        code = prepare(
            text, (struct job_reader){.at = text, .line = 1, .file = place, .is_setting = true});
        if (!code)
            code = parse(text);
        reading.only = NULL;
        free(text);
    } else {
        key_replace(key, job);
        code = 0;
        if (*value)
            code = key_assign(key, job, value, place);
        else
            key_reset(key, job);
        if (job->given)
            job->given[key - keys] = *value != '\0';
    }
    free(name);
    free(place);
    return code ? ERROR_USAGE : 0;
}

#include "coordinator/job/job.h"

#include <confuse.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "coordinator/job/gate.h"
#include "coordinator/job/job_text.h"
#include "coordinator/job/key.h"

#define KEYS_MAX 64
#define SECTION "csv"
#define SECTION_PREFIX SECTION "."
#define JOB_FILE_BYTES_MAX (1u << 20)

/* libconfuse passes no context to its callbacks and keeps its own state in static variables. So the
 * state of a reading is static here, too. */
static struct {
    struct job *job;
    const char *file;    /* NULL: a --set */
    const char *setting; /* the --set as typed */
    int line[KEYS_MAX];  /* on which each key was set; 0: not yet */
    int code;
} reading;

static void write_place(const cfg_t *cfg, char *place, size_t size) {
    if (reading.file)
        snprintf(place, size, "%s:%d", reading.file, cfg->line);
    else
        snprintf(place, size, "--set %s", reading.setting);
}

static bool in_section(const cfg_t *cfg) {
    return strcmp(cfg->name, SECTION) == 0;
}

static bool is_of_section(const struct key *key) {
    return strncmp(key->name, SECTION_PREFIX, strlen(SECTION_PREFIX)) == 0;
}

/* The key that was meant if a name stands in the wrong place: `csv.label` in a file, or `label`
 * outside of the section. */
static const struct key *misplaced(const char *name, bool section) {
    char whole[128];
    snprintf(whole, sizeof whole, SECTION_PREFIX "%s", name);
    const struct key *key = key_find(name);
    return key ? key : section ? NULL : key_find(whole);
}

static int refuse_misplaced(const char *place, const char *name, const struct key *key) {
    if (!is_of_section(key))
        return error_set(ERROR_CONFIG,
                         "%s: key `%s`: does not belong to the section " SECTION
                         "; write it outside of " SECTION " { }",
                         place, name);
    if (!reading.file)
        return error_set(ERROR_CONFIG, "%s: key `%s`: write `%s`", place, name, key->name);
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: belongs to the section " SECTION "; write " SECTION
                     " { %s = VALUE }",
                     place, name, key->name + strlen(SECTION_PREFIX));
}

static int unknown_key(const char *place, const char *name, bool section) {
    const struct key *key = misplaced(name, section);
    if (key)
        return refuse_misplaced(place, name, key);
    struct nearest nearest = {.text = name};
    for (size_t i = 0; i < keys_count; i++)
        if (!section)
            nearest_offer(&nearest, keys[i].name);
        else if (is_of_section(&keys[i]))
            nearest_offer(&nearest, keys[i].name + strlen(SECTION_PREFIX));
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: there is no such key%s; `dml-coordinator check --help` lists "
                     "them%s",
                     place, name, section ? " in " SECTION : "", nearest_question(&nearest, ""));
}

static void complain(cfg_t *cfg, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Called with libconfuse's errors. An unknown key gets a message of ours; the others are syntax. */
static void complain(cfg_t *cfg, const char *format, va_list arguments) {
    char place[1024], words[512];
    write_place(cfg, place, sizeof place);
    if (strncmp(format, "no such option", strlen("no such option")) == 0) {
        reading.code = unknown_key(place, va_arg(arguments, const char *), in_section(cfg));
        return;
    }
    vsnprintf(words, sizeof words, format, arguments);
    reading.code = error_set(ERROR_CONFIG,
                             "%s: %s; allowed: lines of the form KEY = VALUE; a list is written as "
                             "{ \"a\", \"b\" }, and # starts a comment",
                             place, words);
}

/* Called by the parser for every value, every element of a list. */
static int take(cfg_t *cfg, cfg_opt_t *option, const char *text, void *result) {
    char name[64], place[1024];
    snprintf(name, sizeof name, "%s%s", in_section(cfg) ? SECTION_PREFIX : "", option->name);
    write_place(cfg, place, sizeof place);
    const struct key *key = key_find(name);
    int *line = &reading.line[key - keys];
    bool first = option->nvalues == 1;
    if (first && *line)
        reading.code = error_set(ERROR_CONFIG,
                                 "%s: key `%s`: given twice, first on line %d; "
                                 "allowed: once",
                                 place, name, *line);
    else if (!first && key->type != KEY_LIST)
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

static cfg_opt_t option_of(const struct key *key) {
    bool section = is_of_section(key);
    return (cfg_opt_t){.name = key->name + (section ? strlen(SECTION_PREFIX) : 0),
                       .type = CFGT_STR,
                       .flags = CFGF_LIST | CFGF_NODEFAULT,
                       .parsecb = take};
}

/* The parser of job files. To libconfuse every key is a list: then take() gets a list in the wrong
 * place, too, and can name the key. */
static cfg_t *parser_new(void) {
    cfg_opt_t outer[KEYS_MAX] = {0}, inner[KEYS_MAX] = {0};
    size_t outers = 0, inners = 0;
    if (keys_count + 2 > KEYS_MAX)
        abort();
    for (size_t i = 0; i < keys_count; i++)
        if (is_of_section(&keys[i]))
            inner[inners++] = option_of(&keys[i]);
        else
            outer[outers++] = option_of(&keys[i]);
    outer[outers] = (cfg_opt_t){.name = SECTION, .type = CFGT_SEC, .subopts = inner};
    cfg_t *parser = cfg_init(outer, CFGF_NONE);
    if (!parser)
        abort();
    cfg_set_error_function(parser, complain);
    return parser;
}

static int parse(const char *text) {
    reading.code = 0;
    memset(reading.line, 0, sizeof reading.line);
    cfg_t *parser = parser_new();
    if (cfg_parse_buf(parser, text) != CFG_SUCCESS && !reading.code)
        reading.code = error_set(ERROR_CONFIG, "%s: cannot be understood",
                                 reading.file ? reading.file : reading.setting);
    cfg_free(parser);
    return reading.code;
}

static int read_file(struct job *job) {
    char *text = NULL;
    size_t length;
    int code = file_read(job->file, JOB_FILE_BYTES_MAX, &text, &length);
    if (code)
        return code == ERROR_PERMISSION ? code : ERROR_CONFIG;
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

/* Applies KEY=VALUE. A value that begins with { or a quote is read as in a file. Any other value is
 * taken as it stands, with its spaces. */
static int set(struct job *job, const char *setting) {
    const char *equals = strchr(setting, '=');
    if (!equals || equals == setting)
        return error_set(ERROR_USAGE, "--set %s: allowed: KEY=VALUE", setting);
    if (!text_is_utf8(setting))
        return error_set(ERROR_USAGE, "--set %s: has a character that is not UTF-8", setting);
    char *name = memory_format("%.*s", (int)(equals - setting), setting);
    char *place = memory_format("--set %s", setting);
    const char *value = equals + 1;
    const struct key *key = key_find(name);
    int code;
    reading.file = NULL;
    reading.setting = setting;
    if (!key) {
        code = unknown_key(place, name, false);
    } else if (strchr("{\"'", *value) && *value) {
        bool section = is_of_section(key);
        char *text =
            section ? memory_format(SECTION " { %s = %s }", name + strlen(SECTION_PREFIX), value)
                    : memory_format("%s = %s", name, value);
        reading.job = job;
        key_clear(key, job);
        code = parse(text);
        free(text);
    } else {
        key_clear(key, job);
        code = key_assign(key, job, value, place);
    }
    free(name);
    free(place);
    return code ? ERROR_USAGE : 0;
}

static struct job *job_new(const char *path) {
    struct job *job = memory_new(1, sizeof *job);
    job->file = memory_copy_string(path);
    job->folder = path_folder(path);
    for (size_t i = 0; i < keys_count; i++) {
        key_clear(&keys[i], job);
        if (keys[i].initial && key_assign(&keys[i], job, keys[i].initial, "default"))
            abort();
    }
    return job;
}

static char *default_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = memory_copy_string(slash ? slash + 1 : path);
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".conf") == 0)
        name[length - 5] = '\0';
    return name;
}

double job_holdout_share(const struct job *job) {
    double share;
    return job->holdout[0] && key_number(job->holdout[0], &share) ? share : 0;
}

char *const *job_holdout_paths(const struct job *job) {
    static char *const none[] = {NULL};
    return job_holdout_share(job) > 0 ? none : job->holdout;
}

/* A share is the only entry of a list, and early stopping needs a holdout. */
static int check_holdout(const struct job *job) {
    double share;
    for (char **entry = job->holdout; *entry; entry++)
        if (key_number(*entry, &share) && job->holdout[1])
            return error_set(ERROR_CONFIG,
                             "%s: key `holdout`: the share %s stands together with other entries; "
                             "allowed: either one share, or files",
                             job->file, *entry);
    if (job->early_stopping && !job->holdout[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `early_stopping`: needs rows that are held out; also set "
                         "`holdout`, for example holdout = 0.1, or set early_stopping = off",
                         job->file);
    return 0;
}

/* A gate needs a holdout, and its figures must be figures of the objective. */
static int check_gate(const struct job *job) {
    struct gate_condition condition;
    if (job->gate[0] && !job->holdout[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `gate`: needs rows to judge models on; also set `holdout`, to a "
                         "share of the rows, for example 0.1, or to files of their own",
                         job->file);
    for (char **text = job->gate; *text; text++)
        if (gate_parse(*text, &condition) && !gate_suits(&condition, job->objective)) {
            char *allowed = gate_figures(job->objective);
            error_set(ERROR_CONFIG,
                      "%s: key `gate`: \"%s\": the objective does not have this figure; figures of "
                      "%s: %s",
                      job->file, *text, objective_name(job->objective), allowed);
            free(allowed);
            return ERROR_CONFIG;
        }
    return 0;
}

/* Fills in the defaults that follow from the file's name, and checks what concerns several keys. */
static int complete(struct job *job, const char *state) {
    if (!job->name)
        job->name = default_name(job->file);
    if (!job->state)
        job->state = memory_format("%s.state", job->name);
    char *place = state                           ? memory_copy_string(state)
                  : strcmp(job->folder, ".") == 0 ? memory_copy_string(job->state)
                                                  : path_join(job->folder, job->state);
    free(job->state);
    job->state = place;
    if (!job->data[0])
        return error_set(ERROR_CONFIG,
                         "%s: key `data`: missing; allowed: "
                         "a path or glob, or a list of them",
                         job->file);
    if (job->positive && objective_of(job->objective)->labels != LABEL_BINARY)
        return error_set(
            ERROR_CONFIG,
            "%s: key `csv.positive`: needs an objective with two classes, such as logistic; the "
            "objective is %s",
            job->file, objective_name(job->objective));
    int code = check_holdout(job);
    return code ? code : check_gate(job);
}

int job_read(const char *path, const char *const *settings, uint32_t settings_count,
             const char *state, struct job **job) {
    struct job *new = job_new(path);
    int code = read_file(new);
    for (uint32_t i = 0; !code && i < settings_count; i++)
        code = set(new, settings[i]);
    if (!code)
        code = complete(new, state);
    if (code) {
        job_free(new);
        return code;
    }
    *job = new;
    return 0;
}

static bool is_about_reading(const struct key *key) {
    return key->offset >= offsetof(struct job, source) &&
           key->offset < offsetof(struct job, source) + sizeof(struct source_options);
}

static int refuse_unless_reading(const char *setting) {
    char *name = memory_format("%.*s", (int)strcspn(setting, "="), setting);
    const struct key *key = key_find(name);
    int code = 0;
    if (!key || !is_about_reading(key)) {
        char allowed[256] = "";
        for (size_t i = 0, used = 0; i < keys_count; i++)
            if (is_about_reading(&keys[i]))
                used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%s",
                                         used ? ", " : "", keys[i].name);
        code =
            error_set(ERROR_USAGE,
                      "--set %s: this command takes only keys about how data is read; allowed: %s",
                      setting, allowed);
    }
    free(name);
    return code;
}

int job_set_reading(const char *const *settings, uint32_t count, struct source_options *options) {
    struct job job = {.source = *options};
    int code = 0;
    for (uint32_t i = 0; !code && i < count; i++) {
        code = refuse_unless_reading(settings[i]);
        if (!code)
            code = set(&job, settings[i]);
    }
    *options = job.source;
    return code;
}

void job_free(struct job *job) {
    if (!job)
        return;
    for (size_t i = 0; i < keys_count; i++) {
        key_clear(&keys[i], job);
        if (keys[i].type == KEY_LIST)
            free(*(char ***)((char *)job + keys[i].offset));
    }
    free(job->file);
    free(job->folder);
    free(job);
}

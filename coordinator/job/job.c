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
#include "coordinator/job/job_text.h"
#include "coordinator/job/key.h"
#include "coordinator/job/network.h"
#include "coordinator/job/plugin.h"

#define KEYS_MAX 128
#define SECTIONS_MAX 16
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

/* The section that is being read; "" outside of all sections. */
static const char *section_of(const cfg_t *cfg) {
    return strcmp(cfg->name, "root") ? cfg->name : "";
}

static bool is_of_section(const struct key *key, const char *section) {
    size_t length = key_section(key);
    return length == strlen(section) && strncmp(key->name, section, length) == 0;
}

/* The key that was meant if a name stands in the wrong place: `csv.label` in a file, `label`
 * outside of its section, or `l2` inside of one. */
static const struct key *misplaced(const char *name, const char *section) {
    const struct key *key = key_find(name);
    for (size_t i = 0; !key && !*section && i < keys_count; i++)
        if (key_section(&keys[i]) && strcmp(key_own_name(&keys[i]), name) == 0)
            key = &keys[i];
    return key;
}

static int refuse_misplaced(const char *place, const char *name, const struct key *key,
                            const char *section) {
    int length = (int)key_section(key);
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

static int unknown_key(const char *place, const char *name, const char *section) {
    const struct key *key = misplaced(name, section);
    if (key)
        return refuse_misplaced(place, name, key, section);
    struct nearest nearest = {.text = name};
    for (size_t i = 0; i < keys_count; i++)
        if (!*section)
            nearest_offer(&nearest, keys[i].name);
        else if (is_of_section(&keys[i], section))
            nearest_offer(&nearest, key_own_name(&keys[i]));
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: there is no such key%s%s; `dml-coordinator check --help` lists "
                     "them%s",
                     place, name, *section ? " in " : "", section, nearest_question(&nearest, ""));
}

static void complain(cfg_t *cfg, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Called with libconfuse's errors. An unknown key gets a message of ours; the others are syntax. */
static void complain(cfg_t *cfg, const char *format, va_list arguments) {
    char place[1024], words[512];
    write_place(cfg, place, sizeof place);
    if (strncmp(format, "no such option", strlen("no such option")) == 0) {
        reading.code = unknown_key(place, va_arg(arguments, const char *), section_of(cfg));
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
    const char *section = section_of(cfg);
    snprintf(name, sizeof name, "%s%s%s", section, *section ? "." : "", option->name);
    write_place(cfg, place, sizeof place);
    const struct key *key = key_find(name);
    int *line = &reading.line[key - keys];
    bool first = option->nvalues == 1;
    if (first && *line)
        reading.code = error_set(ERROR_CONFIG,
                                 "%s: key `%s`: given twice, first on line %d; "
                                 "allowed: once",
                                 place, name, *line);
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

static cfg_opt_t option_of(const struct key *key) {
    return (cfg_opt_t){.name = key_own_name(key),
                       .type = CFGT_STR,
                       .flags = CFGF_LIST | CFGF_NODEFAULT,
                       .parsecb = take};
}

/* A section of the job file, and its keys. */
struct section {
    char name[32];
    cfg_opt_t options[KEYS_MAX];
    size_t count;
};

/* The section of a key: one of `count`, or a new one. */
static struct section *section_for(const struct key *key, struct section *sections, size_t *count) {
    for (size_t i = 0; i < *count; i++)
        if (is_of_section(key, sections[i].name))
            return &sections[i];
    if (*count == SECTIONS_MAX)
        abort();
    struct section *section = &sections[(*count)++];
    snprintf(section->name, sizeof section->name, "%.*s", (int)key_section(key), key->name);
    return section;
}

/* The parser of job files. To libconfuse every key is a list: then take() gets a list in the wrong
 * place, too, and can name the key. */
static cfg_t *parser_new(void) {
    struct section *sections = memory_new(SECTIONS_MAX, sizeof *sections);
    cfg_opt_t outer[KEYS_MAX] = {0};
    size_t outers = 0, count = 0;
    if (keys_count + SECTIONS_MAX >= KEYS_MAX)
        abort();
    for (size_t i = 0; i < keys_count; i++) {
        struct section *section =
            key_section(&keys[i]) ? section_for(&keys[i], sections, &count) : NULL;
        *(section ? &section->options[section->count++] : &outer[outers++]) = option_of(&keys[i]);
    }
    for (size_t i = 0; i < count; i++)
        outer[outers++] =
            (cfg_opt_t){.name = sections[i].name, .type = CFGT_SEC, .subopts = sections[i].options};
    cfg_t *parser = cfg_init(outer, CFGF_NONE); /* copies what it is given */
    free(sections);
    if (!parser)
        abort();
    cfg_set_error_function(parser, complain);
    return parser;
}

/* ---- empty lists, of which take() hears nothing ---- */

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
        const char *behind = past_blanks(at + strlen(name));
        if (*behind == '=' && *(behind = past_blanks(behind + 1)) == '{' &&
            *past_blanks(behind + 1) == '}')
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
        char line[16] = "", allowed[512];
        if (reading.file)
            snprintf(line, sizeof line, ":%d", line_of_empty(text, &keys[i]));
        key_allowed(&keys[i], allowed, sizeof allowed);
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

/* Empty lists, too, which take() hears nothing of; an empty section gives its keys. */
static void note_given(cfg_t *parser, const char *text) {
    for (size_t i = 0; i < keys_count && reading.job->given; i++) {
        const cfg_opt_t *option = option_in(parser, &keys[i]);
        if ((option && option->flags & CFGF_MODIFIED) || has_empty_section(text, &keys[i]))
            reading.job->given[i] = true;
    }
}

static int parse(const char *text) {
    reading.code = 0;
    memset(reading.line, 0, sizeof reading.line);
    cfg_t *parser = parser_new();
    if (cfg_parse_buf(parser, text) != CFG_SUCCESS && !reading.code)
        reading.code = error_set(ERROR_CONFIG, "%s: cannot be understood",
                                 reading.file ? reading.file : reading.setting);
    if (!reading.code)
        reading.code = refuse_empty(parser, text);
    note_given(parser, text);
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
        code = unknown_key(place, name, "");
    } else if (strchr("{\"'", *value) && *value) {
        int section = (int)key_section(key);
        char *text =
            section ? memory_format("%.*s { %s = %s }", section, name, key_own_name(key), value)
                    : memory_format("%s = %s", name, value);
        reading.job = job;
        key_clear(key, job);
        code = parse(text);
        free(text);
    } else {
        key_clear(key, job);
        code = key_assign(key, job, value, place);
        if (job->given)
            job->given[key - keys] = true;
    }
    free(name);
    free(place);
    return code ? ERROR_USAGE : 0;
}

static struct job *job_new(const char *path) {
    struct job *job = memory_new(1, sizeof *job);
    job->file = memory_copy_string(path);
    job->folder = path_folder(path);
    job->given = memory_new(keys_count, sizeof *job->given);
    for (size_t i = 0; i < keys_count; i++)
        key_reset(&keys[i], job);
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

bool job_has_sweep(const struct job *job) {
    return job->l2.count > 1 || job->l1.count > 1 || job->folds;
}

struct numbers *job_sweep_values(struct job *job) {
    return job->l1.count > 1 ? &job->l1 : &job->l2;
}

const char *job_sweep_key(const struct job *job) {
    return job->l1.count > 1 ? "l1" : "l2";
}

static void complete_state(struct job *job, const char *state) {
    if (!job->name)
        job->name = default_name(job->file);
    if (!job->state)
        job->state = memory_format("%s.state", job->name);
    char *place = state                           ? memory_copy_string(state)
                  : strcmp(job->folder, ".") == 0 ? memory_copy_string(job->state)
                                                  : path_join(job->folder, job->state);
    free(job->state);
    job->state = place;
}

/* Fills in the defaults that follow from the data and from other keys, and checks the whole. */
static int complete(struct job *job) {
    job_complete_network(job);
    int code = job_complete_plugin(job);
    if (code)
        return code;
    if (objective_of(job->objective)->labels == LABEL_LISTS)
        job->source.separator = job->separator[0]; /* so much of reading depends on it */
    code = job_check(job);
    if (!code)
        job_warn_of_unused(job);
    return code;
}

/* Reads a job without what follows from several keys but the state folder. */
static int read_job(const char *path, const char *const *settings, uint32_t settings_count,
                    const char *state, struct job **job) {
    struct job *new = job_new(path);
    int code = read_file(new);
    for (uint32_t i = 0; !code && i < settings_count; i++)
        code = set(new, settings[i]);
    if (!code)
        complete_state(new, state);
    *job = new;
    return code;
}

int job_read(const char *path, const char *const *settings, uint32_t settings_count,
             const char *state, struct job **job) {
    struct job *new;
    int code = read_job(path, settings, settings_count, state, &new);
    if (!code)
        code = complete(new);
    if (code)
        job_free(new);
    else
        *job = new;
    return code;
}

int job_read_state(const char *path, const char *const *settings, uint32_t settings_count,
                   const char *state, char **folder) {
    struct job *job;
    int code = read_job(path, settings, settings_count, state, &job);
    if (!code && !job_is_plugin(job))
        code = complete(job);
    if (!code)
        *folder = memory_copy_string(job->state);
    job_free(job);
    return code;
}

/* `beside`: whether keys of files beside those of data are among them. */
static bool is_about_reading(const struct key *key, bool beside) {
    size_t first = offsetof(struct job, source), end = first + sizeof(struct source_options);
    return (key->offset >= first && key->offset < end) ||
           (beside && (key->offset == offsetof(struct job, weights) ||
                       key->offset == offsetof(struct job, labels)));
}

static int refuse_unless_reading(const char *setting, bool beside) {
    char *name = memory_format("%.*s", (int)strcspn(setting, "="), setting);
    const struct key *key = key_find(name);
    int code = 0;
    if (!key || !is_about_reading(key, beside)) {
        char allowed[512] = "";
        for (size_t i = 0, used = 0; i < keys_count; i++)
            if (is_about_reading(&keys[i], beside))
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

int job_set_reading(const char *const *settings, uint32_t count, struct source_options *options,
                    struct source_beside *beside) {
    struct job job = {.source = *options,
                      .weights = memory_new(1, sizeof(char *)),
                      .labels = memory_new(1, sizeof(char *))};
    int code = 0;
    for (uint32_t i = 0; !code && i < count; i++) {
        code = refuse_unless_reading(settings[i], beside != NULL);
        if (!code)
            code = set(&job, settings[i]);
    }
    *options = job.source;
    struct source_beside found = {job.weights, job.labels};
    if (beside)
        *beside = found;
    else
        source_beside_release(&found);
    return code;
}

void job_free(struct job *job) {
    if (!job)
        return;
    for (size_t i = 0; i < keys_count; i++)
        key_release(&keys[i], job);
    free(job->file);
    free(job->folder);
    free(job->given);
    free(job->plugin.path);
    free(job->plugin.program);
    free(job);
}

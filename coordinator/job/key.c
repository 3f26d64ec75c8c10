#include "coordinator/job/key.h"
#include "data/remote/address.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/memory.h"

const struct key *key_find(const char *name) {
    for (size_t i = 0; i < keys_count; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

size_t key_section(const struct key *key) {
    const char *dot = strchr(key->name, '.');
    return dot ? (size_t)(dot - key->name) : 0;
}

const char *key_own_name(const struct key *key) {
    size_t section = key_section(key);
    return key->name + (section ? section + 1 : 0);
}

bool key_is_list(const struct key *key) {
    return key->type == KEY_LIST || key->type == KEY_NUMBERS || key->type == KEY_COUNTS ||
           key->type == KEY_SERIES;
}

bool key_applies(const struct key *key, const struct job *job) {
    unsigned of_job = 1u << job->objective | 1u << job->trains;
    if (key->downpour && !job_has_minibatches(job))
        return false;
    return !key->objectives || key->objectives & of_job;
}

static void *field(const struct key *key, struct job *job) {
    assert(key->offset < sizeof *job);
    return (char *)job + key->offset;
}

static const void *field_of(const struct key *key, const struct job *job) {
    return (const char *)job + key->offset;
}

static bool is_whole(const struct key *key) {
    return key->type == KEY_COUNT32 || key->type == KEY_COUNT64 || key->type == KEY_COUNTS;
}

void key_allowed(const struct key *key, char text[KEY_ALLOWED_BYTES]) {
    const size_t size = KEY_ALLOWED_BYTES;
    const bool whole = is_whole(key);
    char multiple[32];
    const char *kind = key->multiple ? multiple : whole ? "whole number" : "number";
    const char *more = key_is_list(key) ? ", or a list of them in braces, like { 3, 2 }" : "";
    size_t used = 0;
    if (key->word)
        used = (size_t)snprintf(text, size, "%s, or ", key->word);
    switch (key->type) {
    case KEY_TEXT:
    case KEY_LIST:
        snprintf(text + used, size - used, "%s", key->allowed);
        break;
    case KEY_COUNT32:
    case KEY_COUNT64:
    case KEY_NUMBER:
    case KEY_NUMBERS:
    case KEY_COUNTS:
    case KEY_SERIES:
        snprintf(multiple, sizeof multiple, "multiple of %u", key->multiple);
        if (key->most < (whole ? 1e15 : NUMBER_MAX))
            snprintf(text + used, size - used, "a %s from %.15g to %.15g%s", kind, key->least,
                     key->most, more);
        else
            snprintf(text + used, size - used, "a %s of at least %.15g%s", kind, key->least, more);
        break;
    case KEY_FLAG:
        snprintf(text + used, size - used, "true or false");
        break;
    case KEY_CHOICE:
        for (size_t i = 0; key->choices[i] && used < size; i++)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", key->choices[i]);
        break;
    }
}

/* Which of the words that the key knows may be meant. */
static const char *suggestion(const struct key *key, const char *text) {
    struct nearest nearest = {.text = text};
    if (key->suggestion)
        return key->suggestion(text);
    if (key->word)
        nearest_offer(&nearest, key->word);
    if (key->type == KEY_FLAG) {
        nearest_offer(&nearest, "true");
        nearest_offer(&nearest, "false");
    }
    /* Not those of a text: who writes `device = gpu` does not mean `cpu`. */
    for (const char *const *word = key->choices; key->type == KEY_CHOICE && *word; word++)
        nearest_offer(&nearest, *word);
    return nearest_suggestion(&nearest, "");
}

static int refuse_value(const struct key *key, const char *place, const char *text,
                        const char *why) {
    char allowed[KEY_ALLOWED_BYTES];
    key_allowed(key, allowed);
    return error_set(ERROR_CONFIG, "%s: key `%s`: \"%s\" %s%s; allowed: %s", place, key->name, text,
                     why, suggestion(key, text), allowed);
}

/* 1, 0, or −1 if the text is neither. */
static int truth(const char *text) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; i < 6; i++)
        if (strcasecmp(text, words[i]) == 0)
            return i % 2;
    return -1;
}

static int choice_of(const struct key *key, const char *text) {
    for (int i = 0; key->choices[i]; i++)
        if (strcmp(text, key->choices[i]) == 0)
            return i;
    return -1;
}

static int assign_word(const struct key *key, struct job *job, const char *text,
                       const char *place) {
    int flag = truth(text);
    if (key->type == KEY_FLAG) {
        if (flag < 0)
            return refuse_value(key, place, text, "is neither true nor false");
        *(bool *)field(key, job) = flag == 1;
        return 0;
    }
    int value = choice_of(key, text);
    if (value < 0 && flag >= 0)
        value = choice_of(key, flag ? "yes" : "no");
    if (value < 0)
        return refuse_value(key, place, text, "is not known");
    memcpy(field(key, job), &value, sizeof value);
    return 0;
}

static void store_number(const struct key *key, struct job *job, double value) {
    if (key->type == KEY_COUNT32)
        *(uint32_t *)field(key, job) = (uint32_t)value;
    else if (key->type == KEY_COUNT64)
        *(uint64_t *)field(key, job) = (uint64_t)value;
    else
        *(double *)field(key, job) = value;
}

/* Beside other values a word would have no place in their order. */
static int refuse_beside_word(const struct key *key, const char *place) {
    return error_set(
        ERROR_CONFIG,
        "%s: key `%s`: %s is combined with other values; allowed: either %s, or numbers", place,
        key->name, key->word, key->word);
}

static int assign_number_word(const struct key *key, struct job *job, const char *place) {
    struct numbers *numbers = field(key, job);
    if (key->type != KEY_NUMBERS) {
        store_number(key, job, key->word_value);
        return 0;
    }
    if (numbers->count || numbers->automatic)
        return refuse_beside_word(key, place);
    *numbers = (struct numbers){.value = key->word_value, .automatic = true};
    return 0;
}

static double number_of_key(const struct key *key, const struct job *job) {
    if (key->type == KEY_COUNT32)
        return *(const uint32_t *)field_of(key, job);
    if (key->type == KEY_COUNT64)
        return (double)*(const uint64_t *)field_of(key, job);
    return *(const double *)field_of(key, job);
}

bool key_number(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end > text && !*end && !isnan(*value);
}

static int refuse_more(const struct key *key, const char *place, uint32_t most) {
    return error_set(ERROR_CONFIG, "%s: key `%s`: too many values; allowed: at most %u", place,
                     key->name, most);
}

/* Adds a value to the list, which is sorted from large to small. */
static int insert_number(const struct key *key, struct job *job, double value, const char *text,
                         const char *place) {
    struct numbers *numbers = field(key, job);
    uint32_t at = 0;
    if (numbers->automatic)
        return refuse_beside_word(key, place);
    while (at < numbers->count && numbers->all[at] > value)
        at++;
    if (at < numbers->count && numbers->all[at] == value)
        return error_set(ERROR_CONFIG, "%s: key `%s`: %s is given twice; allowed: once", place,
                         key->name, text);
    if (numbers->count == NUMBERS_MAX)
        return refuse_more(key, place, NUMBERS_MAX);
    numbers->all = memory_resize(numbers->all, numbers->count + 1, sizeof *numbers->all);
    memmove(numbers->all + at + 1, numbers->all + at, (numbers->count - at) * sizeof(double));
    numbers->all[at] = value;
    numbers->count++;
    numbers->value = numbers->all[0];
    assert(at == 0 || numbers->all[at - 1] > value);
    return 0;
}

/* Adds a value at the end of the list. */
static int append_number(const struct key *key, struct job *job, double value, const char *place) {
    struct counts *counts = field(key, job);
    struct series *series = field(key, job);
    uint32_t *count = key->type == KEY_COUNTS ? &counts->count : &series->count;
    assert(key->values_max <= LIST_MAX && *count <= key->values_max);
    if (*count == key->values_max)
        return refuse_more(key, place, key->values_max);
    if (key->type == KEY_COUNTS)
        counts->value[(*count)++] = (uint32_t)value;
    else
        series->value[(*count)++] = value;
    return 0;
}

static int assign_number(const struct key *key, struct job *job, const char *text,
                         const char *place) {
    if (key->word && strcmp(text, key->word) == 0)
        return assign_number_word(key, job, place);
    double value;
    if (!key_number(text, &value))
        return refuse_value(key, place, text, "is not a number");
    if (is_whole(key) && isfinite(value) && value != floor(value))
        return refuse_value(key, place, text, "is not a whole number");
    if (value < key->least || value > key->most)
        return refuse_value(key, place, text, "is out of range");
    if (key->multiple && fmod(value, key->multiple) != 0) {
        double below = fmax(floor(value / key->multiple) * key->multiple, key->least);
        double above = fmin(ceil(value / key->multiple) * key->multiple, key->most);
        char *why = memory_format("is not a multiple of %u (%.15g and %.15g are the nearest)",
                                  key->multiple, below, above);
        int code = refuse_value(key, place, text, why);
        free(why);
        return code;
    }
    value += 0.0; /* −0 becomes 0 */
    if (key->type == KEY_NUMBERS)
        return insert_number(key, job, value, text, place);
    if (key->type == KEY_COUNTS || key->type == KEY_SERIES)
        return append_number(key, job, value, place);
    store_number(key, job, value);
    return 0;
}

static int assign_text(const struct key *key, struct job *job, const char *text,
                       const char *place) {
    bool unset = key->word && strcmp(text, key->word) == 0;
    if (!unset && !*text)
        return refuse_value(key, place, text, "is empty");
    if (!unset && key->fits && !key->fits(text))
        return refuse_value(key, place, text, "is not valid");
    if (key->type == KEY_TEXT) {
        key_clear(key, job);
        *(char **)field(key, job) = unset ? NULL : memory_copy_string(text);
        return 0;
    }
    char ***list = field(key, job);
    const uint32_t count = names_count(*list);
    *list = memory_resize(*list, count + 2, sizeof **list);
    (*list)[count] = address_shown(text); /* no secret becomes a setting */
    (*list)[count + 1] = NULL;
    return 0;
}

int key_assign(const struct key *key, struct job *job, const char *text, const char *place) {
    switch (key->type) {
    case KEY_TEXT:
    case KEY_LIST:
        return assign_text(key, job, text, place);
    case KEY_FLAG:
    case KEY_CHOICE:
        return assign_word(key, job, text, place);
    case KEY_COUNT32:
    case KEY_COUNT64:
    case KEY_NUMBER:
    case KEY_NUMBERS:
    case KEY_COUNTS:
    case KEY_SERIES:
        break;
    }
    return assign_number(key, job, text, place);
}

void key_clear(const struct key *key, struct job *job) {
    if (key->type == KEY_TEXT) {
        free(*(char **)field(key, job));
        *(char **)field(key, job) = NULL;
    } else if (key->type == KEY_LIST) {
        char ***list = field(key, job);
        for (char **entry = *list; entry && *entry; entry++)
            free(*entry);
        free(*list);
        *list = memory_new(1, sizeof(char *));
    } else if (key->type == KEY_NUMBERS) {
        struct numbers *numbers = field(key, job);
        free(numbers->all);
        *numbers = (struct numbers){0};
    } else if (key->type == KEY_COUNTS) {
        *(struct counts *)field(key, job) = (struct counts){0};
    } else if (key->type == KEY_SERIES) {
        *(struct series *)field(key, job) = (struct series){0};
    }
}

void key_replace(const struct key *key, struct job *job) {
    char **list = key->type == KEY_LIST ? *(char ***)field(key, job) : NULL;
    for (; list && *list; list++)
        address_forget(*list);
    key_clear(key, job);
}

void key_reset(const struct key *key, struct job *job) {
    key_clear(key, job);
    int code = key->initial ? key_assign(key, job, key->initial, "default") : 0;
    assert(!code); /* a default of the table fits its own row */
}

void key_release(const struct key *key, struct job *job) {
    key_clear(key, job);
    if (key->type == KEY_LIST)
        free(*(char ***)field(key, job));
}

static json_t *reals(const double *values, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

static json_t *counts_value(const struct counts *counts) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < counts->count; i++)
        json_array_append_new(list, json_integer(counts->value[i]));
    return list;
}

static json_t *texts(char *const *entry) {
    json_t *list = json_array();
    for (; *entry; entry++)
        json_array_append_new(list, text_to_json(*entry));
    return list;
}

json_t *key_value(const struct key *key, const struct job *job) {
    const void *at = field_of(key, job);
    const struct numbers *numbers;
    const struct series *series;
    int chosen;
    switch (key->type) {
    case KEY_TEXT:
        if (*(char *const *)at)
            return text_to_json(*(char *const *)at);
        return key->word ? json_string(key->word) : json_null();
    case KEY_LIST:
        return texts(*(char **const *)at);
    case KEY_FLAG:
        return json_boolean(*(const bool *)at);
    case KEY_CHOICE:
        memcpy(&chosen, at, sizeof chosen);
        return json_string(key->choices[chosen]);
    case KEY_COUNT32:
    case KEY_COUNT64:
    case KEY_NUMBER:
        break;
    case KEY_NUMBERS:
        numbers = at;
        if (numbers->automatic)
            return json_string(key->word);
        return numbers->count < 2 ? json_real(numbers->value) : reals(numbers->all, numbers->count);
    case KEY_SERIES:
        series = at;
        return series->count == 1 ? json_real(series->value[0])
                                  : reals(series->value, series->count);
    case KEY_COUNTS:
        return counts_value(at);
    }
    double value = number_of_key(key, job);
    if (key->word && value == key->word_value)
        return json_string(key->word);
    return is_whole(key) ? json_integer((json_int_t)value) : json_real(value);
}

/* Whether the value is what the key has if a job file gives `initial`, or nothing if that is NULL.
 */
static bool is_value_of(const struct key *key, const char *initial, const json_t *value) {
    struct job of_defaults = {0};
    key_clear(key, &of_defaults);
    int code = initial ? key_assign(key, &of_defaults, initial, "default") : 0;
    assert(!code); /* a default of the table fits its own row */
    json_t *of_initial = key_value(key, &of_defaults);
    key_release(key, &of_defaults);
    bool same = json_equal(value, of_initial);
    json_decref(of_initial);
    return same;
}

bool key_is_default(const struct key *key, const struct job *job) {
    json_t *value = key_value(key, job);
    bool same = is_value_of(key, key->initial, value);
    json_decref(value);
    return same;
}

json_t *key_names_not_default(const json_t *settings) {
    json_t *names = json_array();
    const bool network = json_object_get(settings, "network.loss");
    for (size_t i = 0; i < keys_count; i++) {
        const struct key *key = &keys[i];
        const json_t *value = json_object_get(settings, key->name);
        bool of_network = network && key->initial_network;
        if (value && !is_value_of(key, of_network ? key->initial_network : key->initial, value))
            json_array_append_new(names, json_string(key->name));
    }
    return names;
}

/* Without the backslash the reader would replace ${NAME}. It also knows the escapes of
 * escape_put(). */
void key_print_text(const char *text, FILE *out) {
    char *quoted = memory_new(2 * strlen(text) + 1, 1), *to = quoted;
    for (; *text; text++) {
        if (strchr("\"\\$", *text))
            *to++ = '\\';
        *to++ = *text;
    }
    putc('"', out);
    escape_put(quoted, out);
    putc('"', out);
    free(quoted);
}

static void print_number(double value, FILE *out) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    /* Without quotes, the reader takes a + for the start of +=. */
    for (const char *at = text; *at; at++)
        if (*at != '+')
            putc(*at, out);
}

void key_print(const struct key *key, const struct job *job, FILE *out) {
    json_t *value = key_value(key, job);
    size_t i;
    json_t *entry;
    switch (json_typeof(value)) {
    case JSON_ARRAY:
        putc('{', out);
        json_array_foreach(value, i, entry) {
            fputs(i ? ", " : " ", out);
            if (json_is_number(entry))
                print_number(json_number_value(entry), out);
            else
                key_print_text(json_string_value(entry), out);
        }
        fputs(" }", out);
        break;
    case JSON_STRING:
        if (key->type == KEY_TEXT && (!key->word || strcmp(json_string_value(value), key->word)))
            key_print_text(json_string_value(value), out);
        else
            fputs(json_string_value(value), out);
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        print_number(json_number_value(value), out);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        fputs(json_is_true(value) ? "true" : "false", out);
        break;
    default:
        break;
    }
    json_decref(value);
}

void key_print_help(FILE *out) {
    for (size_t i = 0; i < keys_count; i++) {
        char allowed[KEY_ALLOWED_BYTES];
        key_allowed(&keys[i], allowed);
        fprintf(out, "  %-18s %s\n", keys[i].name, keys[i].help);
        fprintf(out, "  %-18s %s", "", allowed);
        const char *initial = keys[i].initial, *of_network = keys[i].initial_network;
        if (initial)
            fprintf(out, " (default %s", initial);
        if (of_network)
            fprintf(out, "%s %s for a network", initial ? ";" : " (default", of_network);
        fputs(initial || of_network ? ")\n" : "\n", out);
    }
}

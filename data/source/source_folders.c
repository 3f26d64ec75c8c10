/* The columns that KEY=VALUE folders give, as Hive, Spark, Arrow, polars and DuckDB write them. */
#include "data/source/folders.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/remote/address.h"
#include "data/source/paths.h"
#include "data/source/source.h"
#include "data/text/letters.h"
#include "data/text/number.h"

#define MISSING_VALUE "__HIVE_DEFAULT_PARTITION__"

/* ---- one path ---- */

/* The text without percent-encoding. What is none stands for itself, and so does %00. */
static char *decode(const char *text, size_t length) {
    char *decoded = memory_new(length + 1, 1), *to = decoded;
    for (size_t i = 0; i < length; i++) {
        const int high = text[i] == '%' && i + 2 < length ? hex_digit(text[i + 1]) : -1,
                  low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        const bool encoded = low >= 0 && high + low > 0;
        *to++ = encoded ? (char)(16 * high + low) : text[i];
        i += encoded ? 2 : 0;
    }
    return decoded;
}

/* The part of a path in which folders count: not the folder of the job, nor the host or the query
 * of an address. */
static const char *counted(const char *path, const char *base, size_t *length) {
    const size_t job = base ? strlen(base) : 0;
    if (address_is(path)) {
        path = strstr(path, "://") + 3;
        *length = strncmp(path - 5, "s3", 2) ? strcspn(path, "?") : strlen(path);
        return path;
    }
    if (job && !strncmp(path, base, job) && path[job] == '/')
        path += job + 1;
    *length = strlen(path);
    return path;
}

static struct source_folder *find_folder(struct source_folder *folder, const char *name) {
    while (folder->name && strcmp(folder->name, name) != 0)
        folder++;
    return folder->name ? folder : NULL;
}

/* Takes ownership of the texts. */
static struct source_folder *add_folder(struct source_folder *folders, uint32_t *count, char *name,
                                        char *value) {
    folders = memory_resize(folders, *count + (size_t)2, sizeof *folders);
    folders[(*count)++] = (struct source_folder){.name = name, .value = value};
    folders[*count] = (struct source_folder){0};
    return folders;
}

/* The KEY=VALUE folders of a path; *twice is a key that stands twice, or stays as it is. */
static struct source_folder *folders_of(const char *path, const char *base, const char **twice) {
    struct source_folder *folders = memory_new(1, sizeof *folders);
    uint32_t count = 0;
    size_t left;
    for (const char *at = counted(path, base, &left), *slash; (slash = memchr(at, '/', left));
         left -= (size_t)(slash + 1 - at), at = slash + 1) {
        const char *equals = memchr(at, '=', (size_t)(slash - at));
        if (!equals || equals == at)
            continue;
        char *name = decode(at, (size_t)(equals - at));
        char *value = decode(equals + 1, (size_t)(slash - equals - 1));
        const struct source_folder *before = find_folder(folders, name);
        if (!strcmp(value, MISSING_VALUE))
            *value = '\0';
        if (before)
            *twice = before->name;
        folders = add_folder(folders, &count, name, value);
    }
    return folders;
}

/* ---- the files that are trained on ---- */

static bool is_in(const char *const *list, const char *name) {
    while (list && *list && strcmp(*list, name) != 0)
        list++;
    return list && *list;
}

/* Whether options say what to do with a column of this name. */
static bool is_named(const struct source_options *options, const char *name) {
    const char *const *const lists[] = {options->table.skip,       options->table.numbers,
                                        options->table.categories, options->table.text,
                                        options->table.dates,      options->table.amounts};
    bool named = options->label.column && !strcmp(options->label.column, name);
    for (enum row_property i = 0; i < ROW_PROPERTIES; i++) {
        const char *column = options->property.column[i];
        named |= column && !strcmp(column, name);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        named |= is_in(lists[i], name);
    return named || (options->table.order && table_has_name(options->table.order, name));
}

static bool is_text(const struct source_options *options, char *value) {
    const bool comma = options->syntax.decimal && !strcmp(options->syntax.decimal, ",");
    const bool words = options->table.missing && *options->table.missing;
    double number;
    return *value && !is_in(words ? options->table.missing : table_missing_words, value) &&
           !number_of_decimal(comma, value, &number);
}

/* What is known of a key of the first file. */
struct key {
    bool differs;      /* the values of files do */
    bool texts;        /* some are texts */
    const char *value; /* of the first file that has it; NULL: none has */
};

static void look_at_key(struct key *key, const struct source_options *options,
                        struct source_folder **of, const char *name) {
    *key = (struct key){0};
    for (; *of; of++) {
        const struct source_folder *here = find_folder(*of, name);
        key->differs |= here && key->value && strcmp(key->value, here->value) != 0;
        key->texts |= here && is_text(options, here->value);
        key->value = here ? here->value : key->value;
        key->differs |= !here;
    }
}

static void drop(struct source_folder *folder) {
    free(folder->name);
    free(folder->value);
    do
        folder[0] = folder[1];
    while (folder++->name);
}

/* Decides about a key: each file that has it knows whether it has texts, or has it no more. */
static void decide(const struct source_options *options, struct source_folder **of,
                   const char *name) {
    struct key key;
    look_at_key(&key, options, of, name);
    const bool taken =
        key.differs || options->folders.which == CSV_FOLDERS_ALL || is_named(options, name);
    if (!taken)
        log_info("the folder %.100s=%.100s is that of all files, and no column; csv.folders = all "
                 "makes it one",
                 name, key.value);
    for (; *of; of++) {
        struct source_folder *here = find_folder(*of, name);
        if (here)
            here->texts = key.texts;
        if (here && !taken)
            drop(here);
    }
}

/* All keys; free with names_free(). */
static char **find_keys(struct source_folder *const *of) {
    char **keys = memory_new(1, sizeof *keys);
    size_t count = 0;
    for (; *of; of++)
        for (const struct source_folder *folder = *of; folder->name; folder++) {
            if (is_in((const char *const *)keys, folder->name))
                continue;
            keys = memory_resize(keys, count + 2, sizeof *keys);
            keys[count++] = memory_copy_string(folder->name);
            keys[count] = NULL;
        }
    return keys;
}

/* The first key that one file has and another has not: *one is the number of the file that has it,
 * *other that of the other. NULL: there is none. */
static const char *find_difference(struct source_folder **of, uint32_t *one, uint32_t *other) {
    for (uint32_t i = 1; of[0] && of[i]; i++)
        for (uint32_t side = 0; side < 2; side++) {
            *one = side ? i : 0;
            *other = side ? 0 : i;
            for (const struct source_folder *folder = of[*one]; folder->name; folder++)
                if (!find_folder(of[*other], folder->name))
                    return folder->name;
        }
    return NULL;
}

static void decide_together(char *const *paths, const struct source_options *options,
                            struct source_beside *beside) {
    uint32_t one, other;
    const char *key = options->table.missing_columns == MISSING_COLUMNS_MISSING
                          ? NULL
                          : find_difference(beside->folder, &one, &other);
    if (key && !beside->folders_differ)
        beside->folders_differ = memory_format(
            "%s is in no folder %.100s=VALUE, as %s is: put all files into such folders, or set "
            "missing_columns = missing to take the column for missing there, or csv.folders = none "
            "to make no columns of folders",
            paths[other], key, paths[one]);
    char **keys = find_keys(beside->folder);
    for (char **name = keys; *name; name++)
        decide(options, beside->folder, *name);
    names_free(keys);
}

void source_find_folders(const char *base, char *const *paths, const struct source_options *options,
                         bool trained, struct source_beside *beside) {
    const uint32_t count = names_count(paths);
    assert(!beside->folder);
    if (options->folders.which == CSV_FOLDERS_NONE)
        return;
    beside->folder = memory_new(count + (size_t)1, sizeof *beside->folder);
    for (uint32_t i = 0; i < count; i++) {
        const char *twice = NULL;
        beside->folder[i] = folders_of(paths[i], base, &twice);
        if (twice && !beside->folders_differ)
            beside->folders_differ =
                memory_format("%s is in two folders %.100s=VALUE; csv.folders = none makes no "
                              "columns of folders",
                              paths[i], twice);
    }
    if (trained)
        decide_together(paths, options, beside);
}

bool source_has_folder(const struct folder_options *folders, const char *name) {
    const struct source_folder *folder = folders->column;
    while (folder && folder->name && strcmp(folder->name, name) != 0)
        folder++;
    return folder && folder->name;
}

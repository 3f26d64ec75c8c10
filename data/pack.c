/* Finds the pack of a source, or has it made. */
#define _GNU_SOURCE
#include "data/pack.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/input.h"
#include "data/pack_file.h"

static void hash_text(struct hash_stream *stream, const char *text) {
    const char *there = text ? text : "\1";
    hash_stream_add(stream, there, strlen(there) + 1);
}

static void hash_texts(struct hash_stream *stream, const char *const *text) {
    for (; text && *text; text++)
        hash_text(stream, *text);
    hash_text(stream, NULL);
}

static void hash_table(struct hash_stream *stream, const struct table *table) {
    char *text = table ? table_text(table) : NULL;
    hash_text(stream, text);
    free(text);
}

/* Only what an order says: its kinds and means do not count. */
static void hash_order(struct hash_stream *stream, const struct table *order) {
    for (uint32_t i = 0; i < order->columns; i++)
        hash_text(stream, order->column[i].name);
}

/* Every option that shapes what a pack holds. */
static uint64_t hash_options(const struct source_options *options) {
    struct hash_stream *stream = hash_stream_new();
    uint64_t numbers[] = {options->format,
                          options->header,
                          options->bad_lines_max,
                          options->label_optional,
                          options->columns,
                          options->trim,
                          options->numbers_only,
                          options->hash_bits,
                          options->weights != NULL,
                          options->labels != NULL,
                          options->table && options->adds_columns};
    hash_stream_add(stream, numbers, sizeof numbers);
    hash_text(stream, options->label);
    hash_text(stream, options->weight);
    hash_texts(stream, options->skip);
    hash_texts(stream, options->numbers);
    hash_texts(stream, options->categories);
    hash_texts(stream, options->missing);
    hash_table(stream, options->table);
    if (options->delimiter || options->decimal) {
        hash_text(stream, options->delimiter);
        hash_text(stream, options->decimal);
    }
    if (options->separator)
        hash_stream_add(stream, &options->separator, sizeof options->separator);
    if (options->order && !options->table)
        hash_order(stream, options->order);
    char text[HASH128_TEXT];
    hash_stream_text(stream, text);
    hash_stream_free(stream);
    return hash64(text, sizeof text);
}

void pack_fingerprint_make(const struct pack_hashes *hashes, uint64_t options_hash,
                           char text[HASH128_TEXT]) {
    struct hash_stream *stream = hash_stream_new();
    uint64_t numbers[] = {PACK_VERSION, options_hash};
    hash_stream_add(stream, numbers, sizeof numbers);
    hash_text(stream, hashes->source);
    hash_text(stream, hashes->weights);
    hash_text(stream, hashes->labels);
    hash_stream_text(stream, text);
    hash_stream_free(stream);
}

char *pack_path_make(const char *packs, const char *fingerprint) {
    return memory_format("%s/%s.pack", packs, fingerprint);
}

/* Adds the path of a file to `path_hash`. */
static int look_at_file(const char *path, struct source_stamp *stamp, uint64_t *path_hash) {
    struct stat status;
    char *absolute = realpath(path, NULL);
    if (!absolute || stat(absolute, &status)) {
        free(absolute);
        return error_set_errno(errno == ENOENT ? ERROR_DATA : ERROR_IO, "cannot open %s", path);
    }
    *stamp = input_stamp_of(&status);
    *path_hash = hash64_seeded(absolute, strlen(absolute), *path_hash);
    free(absolute);
    return 0;
}

/* The facts about a source that need no reading of its contents. */
static int look_at_source(const char *source, const struct source_options *options,
                          struct pack_facts *known) {
    *known = (struct pack_facts){
        .options_hash = hash_options(options), .label_least = INFINITY, .label_most = -INFINITY};
    int code = 0;
    if (options->streams)
        known->path_hash = hash64(source, strlen(source));
    else
        code = look_at_file(source, &known->stamp, &known->path_hash);
    if (!code && options->weights)
        code = look_at_file(options->weights, &known->weights_stamp, &known->path_hash);
    if (!code && options->labels)
        code = look_at_file(options->labels, &known->labels_stamp, &known->path_hash);
    return code;
}

enum likeness { UNLIKE, MAYBE, SAME };

/* SAME: not touched since it was packed. MAYBE: only reading the file can tell. Size and
 * modification time alone are not enough: rsync and `touch -r` set that time back, but they cannot
 * set back the change time. The device is not compared: its number may differ after each boot. */
static enum likeness compare_stamps(const struct source_stamp *then,
                                    const struct source_stamp *now) {
    if (then->bytes != now->bytes)
        return UNLIKE;
    bool untouched = then->modified_ns == now->modified_ns && then->changed_ns == now->changed_ns &&
                     then->inode == now->inode;
    return untouched ? SAME : MAYBE;
}

static enum likeness compare_packs(const struct pack_facts *pack, const struct pack_facts *known) {
    if (pack->options_hash != known->options_hash)
        return UNLIKE;
    enum likeness files[] = {compare_stamps(&pack->stamp, &known->stamp),
                             compare_stamps(&pack->weights_stamp, &known->weights_stamp),
                             compare_stamps(&pack->labels_stamp, &known->labels_stamp)};
    enum likeness less = files[0];
    for (int i = 1; i < 3; i++)
        less = files[i] < less ? files[i] : less;
    return less == SAME && pack->path_hash != known->path_hash ? MAYBE : less;
}

static bool is_pack_name(const char *name) {
    size_t length = strlen(name);
    return length > 5 && !strcmp(name + length - 5, ".pack");
}

/* Searches the folder for the most similar pack; its fingerprint goes to `found`. Another process
 * may remove or replace packs meanwhile: a file that cannot be read is skipped. */
static enum likeness search_folder(const char *packs, const struct pack_facts *known,
                                   char found[HASH128_TEXT]) {
    enum likeness best = UNLIKE;
    DIR *folder = opendir(packs);
    if (!folder)
        return UNLIKE;
    for (struct dirent *entry; best != SAME && (entry = readdir(folder));) {
        if (!is_pack_name(entry->d_name))
            continue;
        char *path = path_join(packs, entry->d_name);
        struct pack_facts facts;
        if (container_peek(&pack_kind, path, &facts, sizeof facts) &&
            compare_packs(&facts, known) > best) {
            best = compare_packs(&facts, known);
            memcpy(found, facts.fingerprint, HASH128_TEXT);
        }
        free(path);
    }
    closedir(folder);
    return best;
}

/* Opens the pack with that fingerprint; NULL if it is missing or damaged: it is then made again. */
static struct pack *reuse(const char *packs, const char *fingerprint) {
    char *path = pack_path_make(packs, fingerprint);
    struct stat status;
    struct pack *pack = NULL;
    if (stat(path, &status) == 0 && pack_open(path, &pack)) {
        log_warning("%s; making it again now", error_text());
        error_clear();
    }
    free(path);
    return pack;
}

static int find_pack(const char *packs, const char *source, const struct source_options *options,
                     const struct pack_facts *known, struct pack **pack) {
    char fingerprint[HASH128_TEXT];
    struct pack_hashes hashes = {0};
    *pack = NULL;
    enum likeness likeness = search_folder(packs, known, fingerprint);
    if (likeness == SAME)
        *pack = reuse(packs, fingerprint);
    if (likeness != MAYBE)
        return 0;
    int code = input_hash_file(source, hashes.source);
    if (!code && options->weights)
        code = input_hash_file(options->weights, hashes.weights);
    if (!code && options->labels)
        code = input_hash_file(options->labels, hashes.labels);
    if (code)
        return code;
    pack_fingerprint_make(&hashes, known->options_hash, fingerprint);
    *pack = reuse(packs, fingerprint);
    return 0;
}

/* ---- what can be read once ---- */

/* Nobody gives anything: standard input is a terminal, or /dev/null. */
static bool nothing_is_given(void) {
    struct stat status;
    return fstat(STDIN_FILENO, &status) == 0 && S_ISCHR(status.st_mode);
}

/* When a pack was made that was read from the same path in the same way; else −1. */
static int64_t made_alike_ns(const char *path, const struct pack_facts *known,
                             struct pack_facts *facts) {
    struct stat status;
    bool alike = container_peek(&pack_kind, path, facts, sizeof *facts) &&
                 facts->options_hash == known->options_hash &&
                 facts->path_hash == known->path_hash && !stat(path, &status);
    return alike ? input_stamp_of(&status).modified_ns : -1;
}

/* The newest such pack; "" if there is none. */
static void find_last_input(const char *packs, const struct pack_facts *known,
                            char found[HASH128_TEXT]) {
    int64_t newest_ns = -1;
    DIR *folder = opendir(packs);
    *found = '\0';
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *path = path_join(packs, entry->d_name);
        struct pack_facts facts;
        int64_t made_ns = is_pack_name(entry->d_name) ? made_alike_ns(path, known, &facts) : -1;
        if (made_ns > newest_ns) {
            newest_ns = made_ns;
            memcpy(found, facts.fingerprint, HASH128_TEXT);
        }
        free(path);
    }
    if (folder)
        closedir(folder);
}

/* Takes what was read from standard input before. */
static int recall_input(const char *packs, const struct pack_facts *known, struct pack **pack) {
    char fingerprint[HASH128_TEXT];
    find_last_input(packs, known, fingerprint);
    *pack = *fingerprint ? reuse(packs, fingerprint) : NULL;
    if (*pack)
        return 0;
    return error_set(ERROR_DATA,
                     "standard input is a terminal or /dev/null, and %s has no rows that were read "
                     "from it before in the same way; give the data, as in `zcat data.csv.gz | "
                     "dml-coordinator run JOB`",
                     packs);
}

/* The pack is made anew whatever is there: what is read is known when it was read. */
static int find_stream(const char *packs, const char *source, const struct pack_facts *known,
                       struct pack **pack) {
    *pack = NULL;
    return source_is_input(source) && nothing_is_given() ? recall_input(packs, known, pack) : 0;
}

/* Whether the file lacks a column that it may not: it is then read again, to say so. */
static bool lacks_columns(const struct pack *pack, const struct source_options *options) {
    const struct table *table = options->table;
    for (uint32_t i = 0; table && pack->table && i < table->columns; i++)
        if (table_uses(&table->column[i]) && table_lacks(pack->table, i))
            return options->missing_columns != MISSING_COLUMNS_MISSING;
    return false;
}

int pack_of_source(const char *packs, const char *source, const struct source_options *options,
                   unsigned threads, struct pack **pack, bool *made) {
    struct pack_facts known;
    int code = look_at_source(source, options, &known);
    if (!code)
        code = folder_make(packs, 0755);
    if (!code)
        code = options->streams ? find_stream(packs, source, &known, pack)
                                : find_pack(packs, source, options, &known, pack);
    if (code)
        return code;
    if (*pack && lacks_columns(*pack, options)) {
        pack_close(*pack);
        *pack = NULL;
    }
    *made = !*pack;
    if (*made) {
        char *path;
        code = pack_write(packs, source, options, threads, &known, &path);
        if (code)
            return code;
        code = pack_open_checked(path, 0, pack);
        free(path);
        if (code)
            return code;
    }
    /* The same content may have been packed under another name: messages must name this one. */
    free((*pack)->source);
    (*pack)->source = memory_copy_string(source_name(source));
    const struct pack_facts *facts = (*pack)->facts;
    source_warn_rejected((*pack)->source, facts->rejected, (*pack)->reason, facts->reasons);
    return 0;
}

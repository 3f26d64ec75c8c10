/* Finds the pack of a source, or has it made. */
#define _GNU_SOURCE
#include "data/pack/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/pack/pack_file.h"
#include "data/remote/address.h"
#include "data/source/blocks.h"
#include "data/source/input.h"
#include "data/source/paths.h"

static void hash_text(struct hash_stream *stream, const char *text) {
    const char *there = text ? text : "\1";
    hash_stream_add(stream, there, strlen(there) + 1);
}

static void hash_texts(struct hash_stream *stream, const char *const *text) {
    for (; text && *text; text++)
        hash_text(stream, *text);
    hash_text(stream, NULL);
}

static void hash_words(struct hash_stream *stream, const struct word_options *words) {
    uint32_t numbers[] = {words->ngrams, words->lowercase,
                          words->least ? words->least : WORD_LEAST};
    hash_stream_add(stream, numbers, sizeof numbers);
    hash_text(stream, words->letters ? words->letters : "");
}

static void hash_folders(struct hash_stream *stream, const struct source_folder *folder) {
    for (; folder && folder->name; folder++) {
        hash_text(stream, folder->name);
        hash_text(stream, folder->value);
        hash_stream_add(stream, &folder->texts, sizeof folder->texts);
    }
}

/* Only the names of an order and its units count, not its kinds and means. */
static void hash_order(struct hash_stream *stream, const struct table *order) {
    for (uint32_t i = 0; i < order->columns; i++) {
        const struct table_column *column = &order->column[i];
        hash_text(stream, column->name);
        if (column->unit)
            hash_stream_add(stream, &column->unit, sizeof column->unit);
    }
}

/* Every option that shapes what a pack holds. The sequence is a part of the format: another one
 * would make all packs anew. */
static uint64_t hash_options(const struct source_options *options) {
    const struct table_options *table = &options->table;
    const struct text_syntax *syntax = &options->syntax;
    struct hash_stream *stream = hash_stream_new();
    uint64_t numbers[] = {options->format,
                          syntax->header,
                          options->bad_lines_max,
                          options->label.optional,
                          table->columns,
                          table->trim,
                          table->numbers_only,
                          table->hash_bits,
                          options->property.file[ROW_WEIGHT] != NULL,
                          options->label.file != NULL,
                          table->known && table->adds_columns};
    hash_stream_add(stream, numbers, sizeof numbers);
    hash_text(stream, options->label.column);
    hash_text(stream, options->property.column[ROW_WEIGHT]);
    hash_texts(stream, table->skip);
    hash_texts(stream, table->numbers);
    hash_texts(stream, table->categories);
    hash_texts(stream, table->missing);
    char *known = table->known ? table_text(table->known) : NULL;
    hash_text(stream, known);
    free(known);
    hash_text(stream, source_quote_names[syntax->quote]);
    hash_text(stream, syntax->comment);
    hash_text(stream, syntax->delimiter);
    hash_text(stream, syntax->decimal);
    hash_texts(stream, table->text);
    if (table->text && *table->text)
        hash_words(stream, &options->words);
    hash_texts(stream, table->dates);
    if (table->dates && *table->dates)
        hash_text(stream, table->date_format);
    hash_texts(stream, table->amounts);
    hash_folders(stream, options->folders.column);
    if (options->label.separator)
        hash_stream_add(stream, &options->label.separator, sizeof options->label.separator);
    for (enum row_property i = ROW_OFFSET; i < ROW_PROPERTIES; i++) {
        bool file = options->property.file[i] != NULL;
        hash_text(stream, options->property.column[i]);
        hash_stream_add(stream, &file, sizeof file);
    }
    if (table->order && !table->known)
        hash_order(stream, table->order);
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
    hash_text(stream, hashes->property[ROW_WEIGHT]);
    hash_text(stream, hashes->labels);
    for (int i = ROW_OFFSET; i < ROW_PROPERTIES; i++)
        hash_text(stream, hashes->property[i]);
    hash_stream_text(stream, text);
    hash_stream_free(stream);
}

char *pack_path_make(const char *packs, const char *fingerprint) {
    return memory_format("%s/%s.pack", packs, fingerprint);
}

/* Adds the path of a file to `path_hash`. */
static int look_at_file(const char *path, struct source_stamp *stamp, uint64_t *path_hash) {
    char *absolute = address_is(path) ? memory_copy_string(path) : realpath(path, NULL);
    int code = input_look(absolute ? absolute : path, stamp);
    if (!code && absolute)
        *path_hash = hash64_seeded(absolute, strlen(absolute), *path_hash);
    free(absolute);
    return code;
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
    if (!code && options->property.file[ROW_WEIGHT])
        code = look_at_file(options->property.file[ROW_WEIGHT], &known->weights_stamp,
                            &known->path_hash);
    if (!code && options->label.file)
        code = look_at_file(options->label.file, &known->labels_stamp, &known->path_hash);
    for (enum row_property i = ROW_OFFSET; i < ROW_NUMBERS && !code; i++)
        if (options->property.file[i])
            code = look_at_file(options->property.file[i], &known->beside[i - ROW_OFFSET].stamp,
                                &known->path_hash);
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
                             compare_stamps(&pack->labels_stamp, &known->labels_stamp),
                             compare_stamps(&pack->beside[0].stamp, &known->beside[0].stamp),
                             compare_stamps(&pack->beside[1].stamp, &known->beside[1].stamp)};
    enum likeness less = files[0];
    for (size_t i = 1; i < sizeof files / sizeof *files; i++)
        less = files[i] < less ? files[i] : less;
    return less == SAME && pack->path_hash != known->path_hash ? MAYBE : less;
}

/* The facts of the pack with that name. Another process may remove or replace packs meanwhile:
 * false for a file that cannot be read, or is none. */
static bool read_facts(const char *packs, const char *name, struct pack_facts *facts) {
    char *path = path_join(packs, name);
    bool read = name_ends(name, ".pack") && container_peek(&pack_kind, path, facts, sizeof *facts);
    free(path);
    return read;
}

/* Searches the folder for the most similar pack; its fingerprint goes to `found`. */
static int search_folder(const char *packs, const struct pack_facts *known, enum likeness *best,
                         char found[HASH128_TEXT]) {
    char **names;
    int code = folder_names(packs, &names);
    *best = UNLIKE;
    for (char **name = names; !code && *name && *best != SAME; name++) {
        struct pack_facts facts;
        if (!read_facts(packs, *name, &facts) || compare_packs(&facts, known) <= *best)
            continue;
        *best = compare_packs(&facts, known);
        memcpy(found, facts.fingerprint, HASH128_TEXT);
    }
    names_free(names);
    return code;
}

/* Opens the pack with that fingerprint; NULL if it is missing or damaged: it is then made again. */
static struct pack *reuse_pack(const char *packs, const char *fingerprint) {
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
    enum likeness likeness;
    int code = search_folder(packs, known, &likeness, fingerprint);
    if (!code && likeness == MAYBE) {
        code = input_hash_file(source, hashes.source);
        for (enum row_property i = 0; i < ROW_PROPERTIES && !code; i++)
            if (options->property.file[i])
                code = input_hash_file(options->property.file[i], hashes.property[i]);
        if (!code && options->label.file)
            code = input_hash_file(options->label.file, hashes.labels);
        pack_fingerprint_make(&hashes, known->options_hash, fingerprint);
    }
    *pack = likeness == UNLIKE || code ? NULL : reuse_pack(packs, fingerprint);
    return code;
}

/* ---- what can be read once ---- */

/* When the pack was made, if it was read from the same path in the same way; else −1. */
static int64_t made_ns_of(const char *packs, const char *name, const struct pack_facts *known,
                          struct pack_facts *facts) {
    struct stat status;
    if (!read_facts(packs, name, facts) || facts->options_hash != known->options_hash ||
        facts->path_hash != known->path_hash)
        return -1;
    char *path = path_join(packs, name);
    int64_t made_ns = stat(path, &status) ? -1 : input_stamp_of(&status).modified_ns;
    free(path);
    return made_ns;
}

/* Takes the newest pack that was read from the same path in the same way. */
static int find_last_input(const char *packs, const struct pack_facts *known, struct pack **pack) {
    int64_t newest_ns = -1;
    char fingerprint[HASH128_TEXT] = "", **names;
    int code = folder_names(packs, &names);
    for (char **name = names; !code && *name; name++) {
        struct pack_facts facts;
        int64_t made_ns = made_ns_of(packs, *name, known, &facts);
        if (made_ns > newest_ns) {
            newest_ns = made_ns;
            memcpy(fingerprint, facts.fingerprint, HASH128_TEXT);
        }
    }
    names_free(names);
    if (code)
        return code;
    *pack = *fingerprint ? reuse_pack(packs, fingerprint) : NULL;
    if (*pack)
        return 0;
    return error_set(ERROR_DATA,
                     "standard input is a terminal or /dev/null, and %s has no rows that were read "
                     "from it before in the same way; give the data, as in `zcat data.csv.gz | "
                     "dml-coordinator run JOB`",
                     packs);
}

/* Whether the pack's file lacks a column of the table that features are made of. */
static bool lacks_column(const struct pack *pack, const struct table *table) {
    for (uint32_t i = 0; table && pack->table && i < table->columns; i++)
        if (table_uses(&table->column[i]) && table_lacks(pack->table, i))
            return true;
    return false;
}

int pack_of_source(const char *packs, const char *source, const struct source_options *options,
                   unsigned threads, struct pack **pack, bool *made) {
    struct pack_facts known;
    struct stat input;
    *pack = NULL;
    int code = look_at_source(source, options, &known);
    if (!code)
        code = folder_make(packs, 0755);
    if (!code && !options->streams)
        code = find_pack(packs, source, options, &known, pack);
    /* What can be read once is read, whatever packs there are, unless nobody gives anything:
     * standard input is a terminal, or /dev/null. */
    else if (!code && source_is_input(source) && !fstat(STDIN_FILENO, &input) &&
             S_ISCHR(input.st_mode))
        code = find_last_input(packs, &known, pack);
    if (code)
        return code;
    /* A file that may not lack a column, and does, is read again: that gives the error. */
    if (*pack && options->table.missing_columns != MISSING_COLUMNS_MISSING &&
        lacks_column(*pack, options->table.known)) {
        pack_close(*pack);
        *pack = NULL;
    }
    *made = !*pack;
    if (*made) {
        char *path;
        code = pack_write(packs, source, options, threads, &known, &path);
        *made = path != NULL;
        if (code || !path)
            return code;
        code = pack_open_checked(path, 0, pack);
        free(path);
        if (code)
            return code;
    }
    /* This content may have been packed under another name: messages must name this one. */
    free((*pack)->source);
    (*pack)->source = memory_copy_string(source_name(source));
    const struct pack_facts *facts = (*pack)->facts;
    source_warn_rejected((*pack)->source, facts->rejected, (*pack)->reason, facts->reasons);
    return 0;
}

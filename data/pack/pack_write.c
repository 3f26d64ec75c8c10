/* Writes a pack while its source is read: block by block, then the sections that need all rows. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/pack/pack_file.h"
#include "data/source/dictionary.h"
#include "data/source/input.h"

struct pack_writer {
    const char *source;
    const struct source_report *report; /* of the reading, as far as it is known */
    struct container_writer container;
    struct pack_facts facts;
    struct dictionary features;
    struct origins origins; /* CSV: of the features */
    uint64_t *count;        /* values of each feature; mapped */
    uint64_t count_capacity;
    struct text_dictionary label_texts;
    struct bytes order;    /* workspace: values of a row in the text's order */
    struct bytes words;    /* workspace: the different words of a block */
    pthread_mutex_t mutex; /* guards what follows */
    struct bytes blocks;   /* struct pack_block, in the order of the file */
};

/* So many ids are numbered at a time. */
#define IDS_AT_ONCE 256

/* Zeros after the counts that are there. */
static void reserve_counts(struct pack_writer *writer, uint64_t features) {
    if (features <= writer->count_capacity)
        return;
    uint64_t *count = memory_map(2 * features * sizeof *count);
    if (writer->count)
        memcpy(count, writer->count, writer->count_capacity * sizeof *count);
    memory_unmap(writer->count, writer->count_capacity * sizeof *count);
    writer->count = count;
    writer->count_capacity = 2 * features;
}

/* A table of so many ids stays in the cache. */
#define NEAR 8192

/* Numbers `values` ids, at most IDS_AT_ONCE, each of which counts `times` times; false if there are
 * too many features. Wide data misses the cache at nearly every id and at nearly every count: what
 * comes later among them is on its way meanwhile. */
static bool number_ids(struct pack_writer *writer, const uint64_t *id, uint64_t values,
                       uint32_t times, uint32_t *local) {
    struct dictionary *features = &writer->features;
    bool far = features->table_size > NEAR;
    for (uint64_t i = 0; i < values && (features->direct_size > NEAR || far); i++)
        dictionary_prefetch(features, id[i]);
    for (uint64_t i = 0; i < values && far; i++)
        dictionary_prefetch_id(features, id[i]);
    reserve_counts(writer, features->count + values);
    assert(values <= IDS_AT_ONCE && features->count + values <= writer->count_capacity);
    uint64_t *count = writer->count;
    for (uint64_t i = 0; i < values; i++) {
        uint32_t number = dictionary_number(features, id[i]);
        if (number == DICTIONARY_NONE)
            return false;
        local[i] = number;
        __builtin_prefetch(&count[number], 1);
    }
    for (uint64_t i = 0; i < values; i++)
        count[local[i]] += times;
    return true;
}

/* Numbers the ids of the first `count` rows. Those of an unsorted text are shown to the dictionary
 * in the text's order before: numbers go by first appearance there. */
static bool number_rows(struct pack_writer *writer, const struct source_rows *rows, uint32_t count,
                        uint32_t times, uint32_t *local) {
    for (uint32_t row = 0; rows->position && row < count; row++) {
        uint64_t first = rows->start[row], values = rows->start[row + 1] - first;
        bytes_clear(&writer->order);
        uint64_t *id = bytes_extend(&writer->order, values * sizeof *id);
        for (uint64_t i = first; i < first + values; i++)
            id[rows->position[i]] = rows->id[i];
        for (uint64_t i = 0; i < values; i++)
            dictionary_add(&writer->features, id[i]);
    }
    uint64_t end = rows->start[count];
    for (uint64_t first = 0; first < end; first += IDS_AT_ONCE) {
        uint64_t values = end - first < IDS_AT_ONCE ? end - first : IDS_AT_ONCE;
        if (!number_ids(writer, rows->id + first, values, times, local + first))
            return false;
    }
    return true;
}

/* What one of prepare_rows(), number_and_place_rows() and finish_rows() leaves for the next in the
 * rows' scratch. After it stand, as u32, the numbers of the features [values, or of one row if
 * they are alike] and of the label texts [rows]; then room for the block. */
struct pending_block {
    struct pack_block block;
    uint32_t number;
    bool alike;
};

static uint32_t *pending_features(struct pending_block *pending) {
    return (uint32_t *)(void *)(pending + 1);
}

static uint64_t features_numbered(const struct source_rows *rows, bool alike) {
    return rows->start[alike ? 1 : rows->count];
}

static uint32_t *pending_texts(struct pending_block *pending, const struct source_rows *rows) {
    return pending_features(pending) + features_numbered(rows, pending->alike);
}

static void append_block(struct pack_writer *writer, struct pending_block *pending) {
    struct pack_block *block = &pending->block;
    block->bytes = pack_block_layout(block).bytes;
    block->offset = container_reserve(&writer->container, block->bytes);
    assert(block->first_row == writer->facts.rows);
    pthread_mutex_lock(&writer->mutex); /* finish_rows() of a block before may be at the list */
    bytes_append(&writer->blocks, block, sizeof *block);
    pthread_mutex_unlock(&writer->mutex);
    pending->number = writer->facts.blocks++;
    writer->facts.rows += block->rows;
    writer->facts.weighted |= block->weighted;
    writer->facts.offset |= block->shifted;
    if (block->type > writer->facts.type)
        writer->facts.type = block->type;
}

/* By many threads at once. Rows are alike if all have the features of the first, as those of CSV
 * do.
 */
static int prepare_rows(void *context, const struct source_rows *rows) {
    uint64_t width = rows->start[1] - rows->start[0];
    bool alike = width && !rows->position;
    for (uint32_t row = 1; !rows->alike && row < rows->count && alike; row++)
        alike = rows->start[row + 1] - rows->start[row] == width &&
                !memcmp(rows->id + rows->start[row], rows->id, width * sizeof *rows->id);
    uint64_t numbers = features_numbered(rows, alike) + rows->count;
    uint64_t values = rows->start[rows->count];
    assert(values <= UINT32_MAX);
    (void)context;
    bytes_clear(rows->workspace);
    struct pending_block *pending =
        bytes_extend(rows->workspace, align_up(sizeof *pending + numbers * sizeof(uint32_t)));
    *pending = (struct pending_block){.block = {.rows = rows->count,
                                                .values = (uint32_t)values,
                                                .type = (uint8_t)pack_block_type(rows),
                                                .texts = rows->label_text != NULL,
                                                .positions = rows->position != NULL,
                                                .hashed = rows->hash != NULL},
                                      .alike = alike};
    return 0;
}

/* Notes the origins of the rows' features, as they are numbered: `local`. False if two texts have
 * the same hash. */
static bool note_origins(struct pack_writer *writer, const struct source_rows *rows, bool alike,
                         const uint32_t *local) {
    uint64_t values = features_numbered(rows, alike);
    for (uint64_t i = 0; i < values; i++) {
        struct source_origin number = {.column = (uint32_t)(rows->id[i] - 1), .role = ROLE_NUMBER};
        if (!origins_note(&writer->origins, local[i], rows->origin ? &rows->origin[i] : &number))
            return false;
    }
    return true;
}

static int refuse_features(const struct pack_writer *writer) {
    return error_set(ERROR_DATA,
                     "%s has more than %u different features, which is what one file may have; "
                     "part it into several",
                     writer->source, FEATURES_MAX);
}

static int refuse_hash(const struct pack_writer *writer) {
    return error_set(ERROR_DATA,
                     "%s: two texts have the same hash; leave the column of one of them out "
                     "with csv.skip",
                     writer->source);
}

/* The different values of a block with words: each word once, and all that is no word. */
struct distinct {
    uint64_t *id;
    uint32_t *value;  /* where it is first */
    uint32_t *number; /* of the feature */
    uint32_t count;
};

/* Finds them; `local` becomes, of each value, which of them it is. */
static struct distinct find_distinct(struct pack_writer *writer, const struct source_rows *rows,
                                     uint32_t *local) {
    uint64_t values = rows->start[rows->count];
    bytes_clear(&writer->words);
    size_t bytes = values * (sizeof(uint64_t) + 2 * sizeof(uint32_t));
    uint64_t *id = bytes_extend(&writer->words, bytes + rows->words * sizeof(uint32_t));
    struct distinct distinct = {.id = id, .value = (uint32_t *)(id + values)};
    distinct.number = distinct.value + values;
    uint32_t *met =
        distinct.number + values; /* of each word: which it is + 1, 0 if it did not come */
    memset(met, 0, rows->words * sizeof *met);
    for (uint64_t i = 0; i < values; i++) {
        const struct source_origin *origin = &rows->origin[i];
        uint32_t *word = origin->role == ROLE_WORD ? &met[origin->hash] : NULL;
        local[i] = word && *word ? *word - 1 : distinct.count;
        if (word && *word)
            continue;
        distinct.id[distinct.count] = rows->id[i];
        distinct.value[distinct.count++] = (uint32_t)i;
        if (word)
            *word = distinct.count;
    }
    assert(distinct.count <= values);
    return distinct;
}

/* So many ahead an origin's text is asked for, and twice as many ahead the origin. */
#define AHEAD 16

static bool note_distinct(struct pack_writer *writer, const struct source_rows *rows,
                          const struct distinct *distinct) {
    const uint32_t *number = distinct->number;
    for (uint32_t i = 0; i < distinct->count; i++) {
        if (i + 2 * AHEAD < distinct->count)
            origins_prefetch(&writer->origins, number[i + AHEAD], number[i + 2 * AHEAD]);
        if (!origins_note(&writer->origins, number[i], &rows->origin[distinct->value[i]]))
            return false;
    }
    return true;
}

/* Does for rows with words what number_rows() and note_origins() do for others, but looks for each
 * different word of the block once. */
static int number_words(struct pack_writer *writer, const struct source_rows *rows,
                        uint32_t *local) {
    const struct distinct distinct = find_distinct(writer, rows, local);
    for (uint32_t first = 0; first < distinct.count; first += IDS_AT_ONCE) {
        uint32_t left = distinct.count - first, here = left < IDS_AT_ONCE ? left : IDS_AT_ONCE;
        if (!number_ids(writer, distinct.id + first, here, 0, distinct.number + first))
            return refuse_features(writer);
    }
    if (!note_distinct(writer, rows, &distinct))
        return refuse_hash(writer);
    for (uint64_t i = 0; i < rows->start[rows->count]; i++) {
        local[i] = distinct.number[local[i]];
        writer->count[local[i]]++;
    }
    return 0;
}

static int number_new(struct pack_writer *writer, uint64_t id, const struct source_origin *origin,
                      uint32_t *number) {
    *number = dictionary_add(&writer->features, id);
    if (*number == DICTIONARY_NONE)
        return refuse_features(writer);
    if (!origins_note(&writer->origins, *number, origin))
        return refuse_hash(writer);
    assert(*number < writer->features.count);
    if (origin->known)
        *origin->known = *number + 1;
    return 0;
}

/* Numbers rows of which each text has a place for its number: most are known by that. */
static int number_known(struct pack_writer *writer, const struct source_rows *rows,
                        uint32_t *local) {
    uint64_t values = rows->start[rows->count];
    int code = 0;
    for (uint64_t i = 0; i < values && !code; i++) {
        const struct source_origin *origin = &rows->origin[i];
        if (origin->known && *origin->known)
            local[i] = *origin->known - 1;
        else
            code = number_new(writer, rows->id[i], origin, &local[i]);
    }
    if (code)
        return code;
    reserve_counts(writer, writer->features.count);
    for (uint64_t i = 0; i < values; i++)
        writer->count[local[i]]++;
    return 0;
}

/* Numbers the features of the rows, and notes where they come from. Of rows that are alike those of
 * the first stand for all, and `local` has room for no more. */
static int number_all(struct pack_writer *writer, const struct source_rows *rows, bool alike,
                      uint32_t *local) {
    if (rows->words && !alike)
        return number_words(writer, rows, local);
    if (rows->known && !alike && writer->report->table && !rows->position)
        return number_known(writer, rows, local);
    if (!number_rows(writer, rows, alike ? 1 : rows->count, alike ? rows->count : 1, local))
        return refuse_features(writer);
    if (writer->report->table && !note_origins(writer, rows, alike, local))
        return refuse_hash(writer);
    return 0;
}

/* source_read_in_parts() calls this in the order of the file and by one thread at a time, though
 * not always by the same one. So the writer needs no lock, and numbers do not depend on the number
 * of threads. What does not need the order is done before or after. */
static int number_and_place_rows(void *context, const struct source_rows *rows) {
    struct pack_writer *writer = context;
    struct pending_block *pending = (void *)rows->workspace->data;
    uint32_t *local = pending_features(pending);
    bool alike = pending->alike;
    struct pack_facts *facts = &writer->facts;
    assert(pending->block.rows == rows->count);
    int code = number_all(writer, rows, alike, local);
    if (code)
        return code;
    pending->block.first_row = writer->facts.rows;
    pending->block.weighted = rows->weight != NULL;
    pending->block.shifted = rows->offset != NULL;
    pending->block.clustered = rows->cluster != NULL;
    uint64_t consecutive = 0; /* features that are 0, 1, 2 … */
    while (alike && consecutive < rows->start[1] && local[consecutive] == consecutive)
        consecutive++;
    pending->block.dense = alike && consecutive == rows->start[1];
    for (uint32_t row = 0; row < rows->count; row++) {
        const char *text = rows->label_text ? rows->label_text[row] : NULL;
        double label = rows->label[row];
        if (rows->label_text)
            pending_texts(pending, rows)[row] =
                text ? text_dictionary_add(&writer->label_texts, text) + 1 : 0;
        if (isnan(label) || (rows->weight && rows->weight[row] == 0))
            continue;
        facts->label_least = label < facts->label_least ? label : facts->label_least;
        facts->label_most = label > facts->label_most ? label : facts->label_most;
    }
    if (writer->label_texts.count > CLASSES_MAX)
        return error_set(ERROR_DATA,
                         "%s: more than %u different texts as labels: is the label "
                         "column the right one?",
                         writer->source, CLASSES_MAX);
    append_block(writer, pending);
    return 0;
}

/* By many threads at once. */
static int finish_rows(void *context, const struct source_rows *rows) {
    struct pack_writer *writer = context;
    uint64_t bytes = ((struct pending_block *)(void *)rows->workspace->data)->block.bytes;
    uint8_t *data = bytes_extend(rows->workspace, bytes);
    struct pending_block *pending = (void *)rows->workspace->data; /* the room may have moved it */
    const struct pack_block_content content = {rows, pending->alike, pending_features(pending),
                                               pending_texts(pending, rows)};
    assert(bytes == pending->block.bytes && pending->block.rows == rows->count);
    pack_block_fill(&pending->block, &content, data);
    uint64_t checksum = hash64(data, bytes);
    int code = container_write(&writer->container, pending->block.offset, data, bytes);
    pthread_mutex_lock(&writer->mutex);
    ((struct pack_block *)(void *)writer->blocks.data)[pending->number].checksum = checksum;
    pthread_mutex_unlock(&writer->mutex);
    return code;
}

/* Writes, for data from CSV, the columns of the features, and their names, if they have any. */
static int write_origins(struct pack_writer *writer, const struct table *table) {
    struct container_writer *container = &writer->container;
    const struct origins *origins = &writer->origins;
    uint32_t count = origins->count, *column = memory_new(count, sizeof *column);
    assert(count == writer->features.count);
    char **name = memory_new(count, sizeof *name);
    for (uint32_t i = 0; i < count; i++) {
        const struct origin *origin = &origins->origin[i];
        column[i] = origin->column;
        name[i] = table_feature_name(table, origin->column, origin->role, origins_text(origins, i));
        writer->facts.named |= *name[i] != '\0';
    }
    int code = container_section(container, PACK_COLUMNS, column, count * sizeof *column);
    if (!code && writer->facts.named)
        code = container_put_strings(container, PACK_NAMES, (const char *const *)name, count);
    for (uint32_t i = 0; i < count; i++)
        free(name[i]);
    free(name);
    free(column);
    return code;
}

static int write_pack_sections(struct pack_writer *writer, const struct source_report *report) {
    struct container_writer *container = &writer->container;
    struct pack_facts *facts = &writer->facts;
    char *const *reasons = report->rejected_reasons;
    uint32_t features = facts->features = writer->features.count;
    assert(writer->blocks.length == facts->blocks * sizeof(struct pack_block));
    assert(features <= writer->count_capacity);
    const struct container_part first[] = {
        {PACK_BLOCKS, writer->blocks.data, writer->blocks.length},
        {PACK_IDS, writer->features.id, features * sizeof(uint64_t)},
        {PACK_COUNTS, writer->count, features * sizeof(uint64_t)},
    };
    const struct container_part last[] = {
        {PACK_LABEL_TEXTS, writer->label_texts.texts.data, writer->label_texts.texts.length},
        {PACK_SOURCE, writer->source, strlen(writer->source) + 1},
    };
    facts->label_texts = writer->label_texts.count;
    while (reasons && reasons[facts->reasons])
        facts->reasons++;
    int code = container_sections(container, first, 3);
    if (!code)
        code = container_put_table(container, PACK_TABLE, report->table);
    if (!code && report->table)
        code = write_origins(writer, report->table);
    if (!code)
        code = container_sections(container, last, 2);
    if (!code)
        code = container_put_strings(container, PACK_REASONS, (const char *const *)reasons,
                                     facts->reasons);
    if (!code) /* last: the sections before fill in some of the facts */
        code = container_section(container, PACK_FACTS, facts, sizeof *facts);
    return code;
}

static void note_report(struct pack_facts *facts, const struct source_report *report) {
    facts->values = report->values;
    facts->format = report->format;
    facts->columns = report->columns;
    facts->header = report->column_names != NULL;
    facts->label_column = report->label_column;
    facts->source_bytes = report->bytes;
    facts->stamp = report->stamp;
    facts->text_bytes = report->text_bytes;
    facts->rejected = report->rejected;
    memcpy(facts->source_hash, report->hash, HASH128_TEXT);
    facts->weights_stamp = report->property[ROW_WEIGHT].stamp;
    memcpy(facts->weights_hash, report->property[ROW_WEIGHT].hash, HASH128_TEXT);
    for (int i = ROW_OFFSET; i < ROW_NUMBERS; i++) {
        facts->beside[i - ROW_OFFSET].stamp = report->property[i].stamp;
        memcpy(facts->beside[i - ROW_OFFSET].hash, report->property[i].hash, HASH128_TEXT);
    }
    facts->labels_stamp = report->labels_stamp;
    memcpy(facts->labels_hash, report->labels_hash, HASH128_TEXT);
    struct pack_hashes hashes;
    memcpy(hashes.source, report->hash, HASH128_TEXT);
    for (int i = 0; i < ROW_PROPERTIES; i++)
        memcpy(hashes.property[i], report->property[i].hash, HASH128_TEXT);
    memcpy(hashes.labels, report->labels_hash, HASH128_TEXT);
    pack_fingerprint_make(&hashes, facts->options_hash, facts->fingerprint);
}

static int read_and_write(struct pack_writer *writer, const char *packs, const char *source,
                          const struct source_options *options, unsigned threads, char **path) {
    struct source_report report;
    struct source_options reading = *options;
    reading.hashes_rows = true;
    writer->report = &report;
    const struct source_parts parts = {prepare_rows, number_and_place_rows, finish_rows};
    int code = source_read_in_parts(source, &reading, threads, &parts, writer, &report);
    *path = NULL;
    if (!code && !report.rows) /* as the options allow */
        source_report_release(&report);
    if (code || !report.rows)
        return code;
    note_report(&writer->facts, &report);
    code = write_pack_sections(writer, &report);
    source_report_release(&report);
    if (code)
        return code;
    *path = pack_path_make(packs, writer->facts.fingerprint);
    code = container_publish(&writer->container, *path);
    if (code) {
        free(*path);
        *path = NULL;
    }
    return code;
}

int pack_write(const char *packs, const char *source, const struct source_options *options,
               unsigned threads, const struct pack_facts *known, char **path) {
    struct pack_writer writer = {
        .source = source_name(source), .facts = *known, .mutex = PTHREAD_MUTEX_INITIALIZER};
    /* The final name depends on the content, which is not read yet. Two processes that pack the
     * same source write different temporary files; the later rename replaces a file of equal
     * content. */
    char *provisional = memory_format("%s/%016llx", packs, (unsigned long long)known->path_hash);
    int code = container_create(&writer.container, &pack_kind, provisional);
    free(provisional);
    if (code)
        return code;
    code = read_and_write(&writer, packs, source, options, threads, path);
    container_discard(&writer.container);
    dictionary_release(&writer.features);
    text_dictionary_release(&writer.label_texts);
    memory_unmap(writer.count, writer.count_capacity * sizeof *writer.count);
    bytes_release(&writer.blocks);
    bytes_release(&writer.order);
    bytes_release(&writer.words);
    origins_release(&writer.origins);
    return code;
}

/* The file of a pack: rows laid out as its blocks, opened, and handed out as the text had them. */
#include "data/pack/pack_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "numeric/clones.h"

/* ---- blocks ---- */

struct pack_block_layout pack_block_layout(const struct pack_block *block) {
    uint64_t values = block->values, rows = block->rows, at = 0;
    uint64_t starts = block->dense ? 0 : rows + 1, features = block->dense ? 0 : values;
    struct pack_block_layout layout;
    layout.start = container_place(&at, starts * sizeof(uint32_t));
    layout.feature = container_place(&at, features * sizeof(uint32_t));
    layout.value = container_place(&at, values * value_bytes(block->type));
    layout.label = container_place(&at, rows * sizeof(double));
    layout.weight = container_place(&at, block->weighted ? rows * sizeof(double) : 0);
    layout.label_text = container_place(&at, block->texts ? rows * sizeof(uint32_t) : 0);
    layout.position = container_place(&at, block->positions ? values * sizeof(uint32_t) : 0);
    layout.offset = container_place(&at, block->shifted ? rows * sizeof(double) : 0);
    layout.cluster = container_place(&at, block->clustered ? rows * sizeof(uint64_t) : 0);
    layout.hash = container_place(&at, block->hashed ? rows * sizeof(uint64_t) : 0);
    layout.bytes = at;
    return layout;
}

/* Values are looked at in runs without an early end. */
#define RUN 256

/* What makes a difference among some values: no bit is set in `others` if all are 1, none in
 * `doubles` if a float holds each. A value beyond floats becomes infinity, and differs. */
struct run_facts {
    half_words others, doubles;
};

VECTOR_CLONES
static void look_at_run(struct run_facts *facts, const double *value, uint64_t count) {
    half_words others = facts->others, doubles = facts->doubles;
    const half_lanes ones = {1, 1, 1, 1};
    uint64_t i = 0;
    for (; i + HALF <= count; i += HALF) {
        half_lanes v;
        memcpy(&v, value + i, sizeof v);
        half_float_lanes narrow = __builtin_convertvector(v, half_float_lanes);
        others |= (half_words)(v != ones);
        doubles |= (half_words)(__builtin_convertvector(narrow, half_lanes) != v);
    }
    for (; i < count; i++) {
        others[0] |= value[i] != 1;
        doubles[0] |= !pack_is_float(value[i]);
    }
    facts->others = others;
    facts->doubles = doubles;
}

static bool any(const half_words *words) {
    return ((*words)[0] | (*words)[1] | (*words)[2] | (*words)[3]) != 0;
}

enum value_type pack_block_type(const struct source_rows *rows) {
    const double *value = rows->value;
    uint64_t count = rows->start[rows->count];
    struct run_facts facts = {0};
    if (rows->bytes)
        return VALUE_BYTE;
    for (uint64_t first = 0; first < count && !any(&facts.doubles); first += RUN)
        look_at_run(&facts, value + first, count - first < RUN ? count - first : RUN);
    return any(&facts.doubles) ? VALUE_DOUBLE : any(&facts.others) ? VALUE_FLOAT : VALUE_ONES;
}

VECTOR_CLONES
static void put_floats(float *to, const double *value, uint64_t count) {
    uint64_t i = 0;
    for (; i + HALF <= count; i += HALF) {
        half_lanes v;
        memcpy(&v, value + i, sizeof v);
        half_float_lanes narrow = __builtin_convertvector(v, half_float_lanes);
        memcpy(to + i, &narrow, sizeof narrow);
    }
    for (; i < count; i++)
        to[i] = (float)value[i];
}

/* Puts an array to its place, with zeros up to the next. */
static void put_array(uint8_t *data, uint64_t place, uint64_t next, const void *array,
                      uint64_t bytes) {
    assert(place + bytes <= next);
    if (bytes)
        memcpy(data + place, array, bytes);
    memset(data + place + bytes, 0, next - place - bytes);
}

static void put_features(const struct pack_block_content *content, uint8_t *data,
                         const struct pack_block_layout *layout) {
    const struct source_rows *rows = content->rows;
    uint32_t *start = (uint32_t *)(void *)(data + layout->start);
    for (uint32_t row = 0; row <= rows->count; row++)
        start[row] = (uint32_t)rows->start[row];
    uint64_t end = layout->start + (rows->count + UINT64_C(1)) * sizeof *start;
    assert(end <= layout->feature);
    memset(data + end, 0, layout->feature - end);
    uint64_t bytes = rows->start[content->alike ? 1 : rows->count] * sizeof(uint32_t);
    uint32_t times = content->alike ? rows->count : 1;
    end = layout->feature;
    for (uint32_t i = 0; i < times; i++, end += bytes)
        memcpy(data + end, content->feature, bytes);
    assert(end <= layout->value);
    memset(data + end, 0, layout->value - end);
}

/* With zeros up to the labels. */
static void put_values(const struct pack_block *block, const struct pack_block_layout *layout,
                       const double *value, uint8_t *data) {
    uint64_t count = block->values, end = layout->value + count * value_bytes(block->type);
    assert(end <= layout->label);
    if (block->type == VALUE_DOUBLE && count)
        memcpy(data + layout->value, value, count * sizeof *value);
    for (uint64_t i = 0; block->type == VALUE_BYTE && i < count; i++)
        data[layout->value + i] = (uint8_t)value[i];
    if (block->type == VALUE_FLOAT)
        put_floats((float *)(void *)(data + layout->value), value, count);
    memset(data + end, 0, layout->label - end);
}

void pack_block_fill(const struct pack_block *block, const struct pack_block_content *content,
                     uint8_t *data) {
    const struct source_rows *rows = content->rows;
    struct pack_block_layout layout = pack_block_layout(block);
    assert(layout.bytes == block->bytes && block->rows == rows->count);
    assert(!block->dense || content->alike);
    if (!block->dense)
        put_features(content, data, &layout);
    put_values(block, &layout, rows->value, data);
    put_array(data, layout.label, layout.weight, rows->label, rows->count * sizeof *rows->label);
    put_array(data, layout.weight, layout.label_text, rows->weight,
              block->weighted ? rows->count * sizeof *rows->weight : 0);
    put_array(data, layout.label_text, layout.position, content->label_text,
              block->texts ? rows->count * sizeof(uint32_t) : 0);
    put_array(data, layout.position, layout.offset, rows->position,
              block->positions ? block->values * sizeof(uint32_t) : 0);
    put_array(data, layout.offset, layout.cluster, rows->offset,
              block->shifted ? rows->count * sizeof *rows->offset : 0);
    put_array(data, layout.cluster, layout.hash, rows->cluster,
              block->clustered ? rows->count * sizeof *rows->cluster : 0);
    put_array(data, layout.hash, layout.bytes, rows->hash,
              block->hashed ? rows->count * sizeof *rows->hash : 0);
}

/* ---- opened ---- */

const struct container_kind pack_kind = {"DMLPACK\n", PACK_VERSION, "pack"};

static int map_sections(struct pack *pack) {
    const struct container *container = &pack->container;
    const void *facts, *block, *id, *count, *column = NULL;
    int code = container_array(container, PACK_FACTS, 1, sizeof *pack->facts, &facts);
    if (code)
        return code;
    pack->facts = facts;
    const uint32_t features = pack->facts->features;
    const bool table = source_is_table((enum source_format)pack->facts->format);
    const struct container_wanted wanted[] = {
        {PACK_BLOCKS, pack->facts->blocks, sizeof *pack->block, &block},
        {PACK_IDS, features, sizeof *pack->id, &id},
        {PACK_COUNTS, features, sizeof *pack->count, &count},
        {PACK_COLUMNS, features, sizeof *pack->column, &column},
    };
    code = container_arrays(container, wanted, table ? 4 : 3);
    if (!code && pack->facts->named)
        code = container_strings(container, PACK_NAMES, features, &pack->name);
    if (!code)
        code = container_strings(container, PACK_LABEL_TEXTS, pack->facts->label_texts,
                                 &pack->label_text);
    if (!code)
        code = container_strings(container, PACK_REASONS, pack->facts->reasons, &pack->reason);
    if (!code && table)
        code = container_table(container, PACK_TABLE, &pack->table);
    if (!code && table && !pack->table)
        code = container_damaged(container, "the description of its columns is missing");
    if (code)
        return code;
    pack->block = block;
    pack->id = id;
    pack->count = count;
    pack->column = column;
    size_t length;
    const char *source = container_get(container, PACK_SOURCE, &length);
    pack->source = memory_format("%.*s", (int)length, source ? source : "");
    return 0;
}

/* Checks that all blocks are within the file, and the checksums of the first `hashed`. */
static int verify_blocks(const struct pack *pack, uint32_t hashed) {
    const struct container *container = &pack->container;
    for (uint32_t i = 0; i < pack->facts->blocks; i++) {
        const struct pack_block *block = &pack->block[i];
        if (block->offset > container->length || block->bytes > container->length - block->offset ||
            pack_block_layout(block).bytes != block->bytes)
            return container_damaged(container, "a block is out of bounds");
        if (i < hashed && hash64(container->data + block->offset, block->bytes) != block->checksum)
            return container_damaged(container, "the checksum of a block is wrong");
    }
    return 0;
}

int pack_open_checked(const char *path, uint32_t hashed, struct pack **opened) {
    struct pack *pack = memory_new(1, sizeof *pack);
    int code = container_open(&pack->container, &pack_kind, path);
    if (!code)
        code = map_sections(pack);
    if (!code)
        code = verify_blocks(pack, hashed);
    if (code) {
        pack_close(pack);
        return code;
    }
    *opened = pack;
    return 0;
}

int pack_open(const char *path, struct pack **opened) {
    return pack_open_checked(path, UINT32_MAX, opened);
}

void pack_close(struct pack *pack) {
    if (!pack)
        return;
    table_free(pack->table);
    free(pack->name);
    free(pack->label_text);
    free(pack->reason);
    free(pack->source);
    container_close(&pack->container);
    free(pack);
}

const char *pack_source(const struct pack *pack) {
    return pack->source;
}

void pack_labels(const struct pack *pack, double *least, double *most) {
    *least = pack->facts->label_least;
    *most = pack->facts->label_most;
}

const char *pack_fingerprint(const struct pack *pack) {
    return pack->facts->fingerprint;
}

struct pack_rows pack_rows(const struct pack *pack, uint32_t number) {
    assert(number < pack->facts->blocks);
    const struct pack_block *block = &pack->block[number];
    struct pack_block_layout layout = pack_block_layout(block);
    const uint8_t *data = pack->container.data + block->offset;
    return (struct pack_rows){
        .rows = block->rows,
        .values = block->values,
        .type = block->type,
        .start = block->dense ? NULL : (const void *)(data + layout.start),
        .feature = block->dense ? NULL : (const void *)(data + layout.feature),
        .value = block->type == VALUE_ONES ? NULL : data + layout.value,
        .label = (const void *)(data + layout.label),
        .weight = block->weighted ? (const void *)(data + layout.weight) : NULL,
        .label_text = block->texts ? (const void *)(data + layout.label_text) : NULL,
        .position = block->positions ? (const void *)(data + layout.position) : NULL,
        .offset = block->shifted ? (const void *)(data + layout.offset) : NULL,
        .cluster = block->clustered ? (const void *)(data + layout.cluster) : NULL,
        .hash = block->hashed ? (const void *)(data + layout.hash) : NULL,
    };
}

char *pack_category_text(const struct pack *pack, uint32_t feature) {
    assert(feature < pack->facts->features);
    const struct table *table = pack->table;
    if (!table || !pack->name || table->hash || pack->id[feature] < FEATURE_HASHED ||
        table->column[pack->column[feature]].kind != COLUMN_CATEGORY)
        return NULL;
    return table_value_of(table, pack->column[feature], pack->id[feature], pack->name[feature]);
}

/* ---- rows as the text had them ---- */

/* The unpacked arrays of one block; their memory is used again for the next block. */
struct unpacked {
    struct bytes start, id, column, value, label_text, origin;
    struct source_origin *of_feature; /* of each feature; NULL: no feature is a text; owned */
};

static void *room(struct bytes *bytes, uint64_t count, size_t size) {
    bytes_clear(bytes);
    return bytes_extend(bytes, count * size);
}

static const uint64_t *unpack_starts(struct bytes *to, const struct pack_rows *rows) {
    uint64_t *start = room(to, rows->rows + UINT64_C(1), sizeof *start);
    for (uint64_t row = 0; row <= rows->rows; row++)
        start[row] = rows->start ? rows->start[row] : row * (rows->values / rows->rows);
    return start;
}

/* Unpacks the ids of the rows, or of the first row alone where the rows are alike. */
static const uint64_t *unpack_ids(struct bytes *to, const struct pack_rows *rows,
                                  const uint64_t *id_of) {
    if (!rows->feature)
        return id_of;
    uint64_t *id = room(to, rows->values, sizeof *id);
    for (uint32_t i = 0; i < rows->values; i++)
        id[i] = id_of[rows->feature[i]];
    return id;
}

static const uint32_t *unpack_columns(struct bytes *to, const struct pack_rows *rows,
                                      const uint32_t *column_of) {
    if (!rows->feature || !column_of)
        return column_of;
    uint32_t *column = room(to, rows->values, sizeof *column);
    for (uint32_t i = 0; i < rows->values; i++)
        column[i] = column_of[rows->feature[i]];
    return column;
}

static const double *unpack_values(struct bytes *to, const struct pack_rows *rows) {
    if (rows->type == VALUE_DOUBLE)
        return rows->value;
    double *value = room(to, rows->values, sizeof *value);
    for (uint32_t i = 0; i < rows->values; i++)
        value[i] = pack_value(rows, i);
    return value;
}

static const char *const *unpack_texts(struct bytes *to, const struct pack_rows *rows,
                                       const char *const *text) {
    if (!rows->label_text)
        return NULL;
    const char **label_text = room(to, rows->rows, sizeof *label_text);
    for (uint32_t row = 0; row < rows->rows; row++)
        label_text[row] = rows->label_text[row] ? text[rows->label_text[row] - 1] : NULL;
    return label_text;
}

/* Texts of categories, which a model may know in another spelling. */
static struct source_origin *find_origins(const struct pack *pack) {
    struct source_origin *origin = memory_new(pack->facts->features, sizeof *origin);
    bool some = false;
    for (uint32_t i = 0; pack->table && i < pack->facts->features; i++) {
        char *text = pack_category_text(pack, i);
        enum feature_role other =
            pack->id[i] < FEATURE_HASHED ? ROLE_NUMBER : ROLE_HASHED; /* or a word, or missing */
        origin[i] = (struct source_origin){
            .text = text, .column = pack->column[i], .role = text ? ROLE_VALUE : other};
        some |= text != NULL;
    }
    if (some)
        return origin;
    free(origin);
    return NULL;
}

static void free_origins(const struct pack *pack, struct source_origin *origin) {
    for (uint32_t i = 0; origin && i < pack->facts->features; i++)
        free((char *)origin[i].text);
    free(origin);
}

static const struct source_origin *unpack_origins(struct unpacked *to,
                                                  const struct pack_rows *rows) {
    if (!to->of_feature || !rows->feature)
        return NULL;
    struct source_origin *origin = room(&to->origin, rows->values, sizeof *origin);
    for (uint32_t i = 0; i < rows->values; i++)
        origin[i] = to->of_feature[rows->feature[i]];
    return origin;
}

/* The name of each column of a CSV file with a header, "" where it is not that of a feature. */
static char **column_names(const struct pack *pack) {
    const struct table *table = pack->table;
    char **name = memory_new(table->columns + (size_t)1, sizeof *name);
    for (uint32_t i = 0; i < table->columns; i++) {
        const struct table_column *column = &table->column[i];
        name[i] = memory_copy_string(table_uses(column) && column->name ? column->name : "");
    }
    return name;
}

void pack_report(const struct pack *pack, struct source_report *report) {
    const struct pack_facts *facts = pack->facts;
    *report = (struct source_report){.format = (enum source_format)facts->format,
                                     .bytes = facts->source_bytes,
                                     .text_bytes = facts->text_bytes,
                                     .rows = facts->rows,
                                     .values = facts->values,
                                     .columns = facts->columns,
                                     .label_column = facts->label_column,
                                     .rejected = facts->rejected};
    memcpy(report->hash, facts->source_hash, sizeof report->hash);
    for (int i = ROW_OFFSET; i < ROW_NUMBERS; i++)
        memcpy(report->property[i].hash, facts->beside[i - ROW_OFFSET].hash,
               sizeof report->property[i].hash);
    if (pack->table)
        report->table = table_copy(pack->table);
    if (facts->header)
        report->column_names = column_names(pack);
}

static int read_rows(const struct pack *pack, bool texts, source_take *take, void *context) {
    struct unpacked to;
    bytes_init(&to.start);
    bytes_init(&to.id);
    bytes_init(&to.column);
    bytes_init(&to.value);
    bytes_init(&to.label_text);
    bytes_init(&to.origin);
    to.of_feature = texts ? find_origins(pack) : NULL;
    int code = 0;
    for (uint32_t b = 0; b < pack->facts->blocks && !code; b++) {
        const struct pack_rows rows = pack_rows(pack, b);
        const struct source_rows block = {
            .count = rows.rows,
            .first_line = pack->block[b].first_row + 1,
            .start = unpack_starts(&to.start, &rows),
            .id = unpack_ids(&to.id, &rows, pack->id),
            .column = unpack_columns(&to.column, &rows, pack->column),
            .origin = unpack_origins(&to, &rows),
            .alike = !rows.feature,
            .value = unpack_values(&to.value, &rows),
            .position = rows.position,
            .label = rows.label,
            .weight = rows.weight,
            .offset = rows.offset,
            .cluster = rows.cluster,
            .hash = rows.hash,
            .label_text = unpack_texts(&to.label_text, &rows, pack->label_text),
        };
        code = take(context, &block);
    }
    bytes_release(&to.start);
    bytes_release(&to.id);
    bytes_release(&to.column);
    bytes_release(&to.value);
    bytes_release(&to.label_text);
    bytes_release(&to.origin);
    free_origins(pack, to.of_feature);
    return code;
}

int pack_read(const struct pack *pack, source_take *take, void *context) {
    return read_rows(pack, false, take, context);
}

int pack_read_with_texts(const struct pack *pack, source_take *take, void *context) {
    return read_rows(pack, true, take, context);
}

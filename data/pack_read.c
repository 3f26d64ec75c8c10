/* Hands out the rows of a pack as the text had them. */

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "data/pack_file.h"

/* The unpacked arrays of one block; their memory is used again for the next block. */
struct unpacked {
    struct bytes start, id, seeded_id, value, label_text;
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

/* Of the first row alone where the rows are alike. */
static const uint64_t *unpack_ids(struct bytes *to, const struct pack_rows *rows,
                                  const uint64_t *id_of) {
    if (!rows->feature)
        return id_of;
    uint64_t *id = room(to, rows->values, sizeof *id);
    for (uint32_t i = 0; i < rows->values; i++)
        id[i] = id_of[rows->feature[i]];
    return id;
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

/* The name of each column of a CSV file with a header, "" where it is not that of a feature. */
static char **column_names(const struct pack *pack) {
    const struct table *table = pack->table;
    char **name = memory_new(table->columns + (size_t)1, sizeof *name);
    for (uint32_t i = 0; i < table->columns; i++) {
        bool used =
            table->column[i].kind == COLUMN_NUMBER || table->column[i].kind == COLUMN_CATEGORY;
        name[i] = memory_copy_string(used && table->column[i].name ? table->column[i].name : "");
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
    if (pack->table)
        report->table = table_copy(pack->table);
    if (facts->header)
        report->column_names = column_names(pack);
}

int pack_read(const struct pack *pack, source_take *take, void *context) {
    struct unpacked to;
    bytes_init(&to.start);
    bytes_init(&to.id);
    bytes_init(&to.seeded_id);
    bytes_init(&to.value);
    bytes_init(&to.label_text);
    int code = 0;
    for (uint32_t b = 0; b < pack->facts->blocks && !code; b++) {
        struct pack_rows rows = pack_rows(pack, b);
        code =
            take(context,
                 &(struct source_rows){
                     .count = rows.rows,
                     .first_line = pack->block[b].first_row + 1,
                     .start = unpack_starts(&to.start, &rows),
                     .id = unpack_ids(&to.id, &rows, pack->id),
                     .seeded_id =
                         pack->seeded_id ? unpack_ids(&to.seeded_id, &rows, pack->seeded_id) : NULL,
                     .alike = !rows.feature,
                     .value = unpack_values(&to.value, &rows),
                     .position = rows.position,
                     .label = rows.label,
                     .weight = rows.weight,
                     .label_text = unpack_texts(&to.label_text, &rows, pack->label_text),
                 });
    }
    bytes_release(&to.start);
    bytes_release(&to.id);
    bytes_release(&to.seeded_id);
    bytes_release(&to.value);
    bytes_release(&to.label_text);
    return code;
}

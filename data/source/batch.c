#define _GNU_SOURCE
#include "data/source/batch.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/places.h"

void batch_init(struct batch *batch) {
    *batch = (struct batch){.start = memory_new(1, sizeof *batch->start)};
    bytes_init(&batch->workspace);
}

/* What a row has unless its parser says otherwise. */
static void batch_begin_row(struct batch *batch) {
    batch->row_weight = 1;
    batch->row_offset = 0;
    batch->row_cluster = 0;
}

void batch_clear(struct batch *batch) {
    for (uint64_t i = 0; i < batch->bad_count; i++)
        free(batch->bad[i].why);
    batch->bad_count = 0;
    batch->row_count = 0;
    batch->value_count = 0;
    batch->has_label_text = false;
    batch->has_weights = batch->has_offsets = batch->has_clusters = false;
    batch_begin_row(batch);
    batch->has_positions = false;
    batch->has_origins = false;
    batch->has_unknown = false;
    batch->bytes = false;
    batch->text_count = 0;
    words_begin_block(&batch->words);
}

void batch_release(struct batch *batch) {
    batch_clear(batch);
    free(batch->text);
    free(batch->start);
    free(batch->id);
    free(batch->value);
    free(batch->origin);
    free(batch->label);
    free(batch->label_text);
    free(batch->weight);
    free(batch->offset);
    free(batch->cluster);
    free(batch->line);
    free(batch->hash);
    free(batch->position);
    free(batch->copy);
    free(batch->records);
    bytes_release(&batch->tokens);
    bytes_release(&batch->key);
    bytes_release(&batch->folders);
    free(batch->carried);
    free(batch->bad);
    free(batch->texts);
    free(batch->numbers);
    free(batch->spread);
    words_release(&batch->words);
    bytes_release(&batch->workspace);
    *batch = (struct batch){0};
}

static void reserve_values(struct batch *batch, uint64_t values) {
    if (batch->value_capacity - batch->value_count >= values)
        return;
    uint64_t capacity = batch->value_capacity = 2 * batch->value_capacity + values + 4096;
    batch->id = memory_resize(batch->id, capacity, sizeof *batch->id);
    batch->value = memory_resize(batch->value, capacity, sizeof *batch->value);
    batch->position = memory_resize(batch->position, capacity, sizeof *batch->position);
    if (batch->has_origins)
        batch->origin = memory_resize(batch->origin, capacity, sizeof *batch->origin);
}

static void reserve_carried(struct batch *batch) {
    if (batch->carried_count)
        batch->carried = memory_resize(batch->carried, batch->row_capacity,
                                       batch->carried_count * sizeof *batch->carried);
}

void batch_carry_written(struct batch *batch, uint32_t count, const char *text, size_t capacity) {
    assert(!batch->row_count);
    if (batch->copy_capacity < capacity)
        batch->copy = memory_resize(batch->copy, batch->copy_capacity = capacity, 1);
    batch->copied = text;
    batch->carried_count = count;
    reserve_carried(batch);
}

void batch_carry(struct batch *batch, uint32_t count) {
    size_t bytes = batch->text_length + TEXT_END_BYTES;
    batch_carry_written(batch, count, batch->text, bytes);
    memcpy(batch->copy, batch->text, bytes);
}

void batch_reserve(struct batch *batch, uint64_t values) {
    if (batch->row_count == batch->row_capacity) {
        uint32_t capacity = batch->row_capacity = 2 * batch->row_capacity + 256;
        batch->start = memory_resize(batch->start, (size_t)capacity + 1, sizeof *batch->start);
        batch->label = memory_resize(batch->label, capacity, sizeof *batch->label);
        batch->label_text = memory_resize(batch->label_text, capacity, sizeof *batch->label_text);
        batch->weight = memory_resize(batch->weight, capacity, sizeof *batch->weight);
        batch->offset = memory_resize(batch->offset, capacity, sizeof *batch->offset);
        batch->cluster = memory_resize(batch->cluster, capacity, sizeof *batch->cluster);
        batch->line = memory_resize(batch->line, capacity, sizeof *batch->line);
        batch->hash = memory_resize(batch->hash, capacity, sizeof *batch->hash);
        reserve_carried(batch);
    }
    reserve_values(batch, values);
    batch->start[batch->row_count] = batch->value_count;
}

void batch_give_ids_per_row(struct batch *batch) {
    assert(!batch->has_origins);
    batch->has_origins = true;
    batch->alike = false;
    batch->origin = memory_resize(batch->origin, batch->value_capacity, sizeof *batch->origin);
    for (uint32_t row = 0; row < batch->row_count; row++) {
        uint64_t first = batch->start[row], values = batch->start[row + 1] - first;
        if (row)
            memcpy(batch->id + first, batch->id, values * sizeof *batch->id);
        for (uint64_t i = 0; i < values; i++)
            batch->origin[first + i] =
                (struct source_origin){.column = (uint32_t)batch->id[i] - 1, .role = ROLE_NUMBER};
    }
}

static void put_text(struct batch *batch, uint64_t at, const struct batch_text *text) {
    batch->id[at] = text->id;
    batch->value[at] = text->value;
    batch->origin[at] = text->origin;
}

static void insert_texts(struct batch_text *texts, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        struct batch_text text = texts[i];
        uint32_t at = i;
        for (; at && texts[at - 1].id > text.id; at--)
            texts[at] = texts[at - 1];
        texts[at] = text;
    }
}

static bool put_in_order(struct batch *batch) {
    bool differ = true;
    for (uint32_t i = 0; i < batch->text_count; i++) {
        differ &= !i || batch->texts[i].id != batch->texts[i - 1].id;
        put_text(batch, batch->value_count + i, &batch->texts[i]);
    }
    return differ;
}

/* Ids of texts are hashes: where they differ, their upper bits do, below the one that all have. */
static bool put_few(struct batch *batch) {
    uint32_t key[PLACES_MOST] = {0}, place[PLACES_MOST];
    for (uint32_t i = 0; i < batch->text_count; i++)
        key[i] = (uint32_t)(batch->texts[i].id >> 32 & INT32_MAX);
    if (!places_find(key, batch->text_count, place)) {
        insert_texts(batch->texts, batch->text_count);
        return put_in_order(batch);
    }
    for (uint32_t i = 0; i < batch->text_count; i++)
        put_text(batch, batch->value_count + place[i], &batch->texts[i]);
    return true;
}

/* So by their upper bits they are spread evenly, too: a text goes nearly to its place at once. */
#define SPREAD_BITS 10
#define SPREAD_SHIFT (63 - SPREAD_BITS)

static void spread_texts(struct batch *batch) {
    uint32_t next[1u << SPREAD_BITS] = {0}, sum = 0, most = 0, count = batch->text_count;
    const uint64_t mask = (UINT64_C(1) << SPREAD_BITS) - 1;
    batch->spread = memory_resize(batch->spread, batch->texts_capacity, sizeof *batch->spread);
    for (uint32_t i = 0; i < count; i++)
        next[batch->texts[i].id >> SPREAD_SHIFT & mask]++;
    for (uint32_t digit = 0; digit <= mask; digit++) {
        uint32_t here = next[digit];
        next[digit] = sum;
        sum += here;
        most = here > most ? here : most;
    }
    assert(sum == count);
    for (uint32_t i = 0; i < count; i++)
        batch->spread[next[batch->texts[i].id >> SPREAD_SHIFT & mask]++] = batch->texts[i];
    struct batch_text *sorted = batch->spread;
    batch->spread = batch->texts;
    batch->texts = sorted;
    if (most > PLACES_MOST)
        qsort(sorted, count, sizeof *sorted, compare_ids);
    else
        insert_texts(sorted, count);
}

bool batch_put_texts(struct batch *batch) {
    reserve_values(batch, batch->text_count); /* words come in any number */
    assert(batch->has_origins);
    /* Whether they are in order as they stand, and differ. */
    bool rise = true;
    for (uint32_t i = 1; i < batch->text_count && rise; i++)
        rise = batch->texts[i - 1].id < batch->texts[i].id;
    if (batch->text_count > PLACES_MOST && !rise)
        spread_texts(batch);
    bool differ = batch->text_count > PLACES_MOST || rise ? put_in_order(batch) : put_few(batch);
    batch->value_count += batch->text_count;
    assert(batch->value_count <= batch->value_capacity);
    batch->text_count = 0;
    return differ;
}

struct id_and_value {
    uint64_t id;
    double value;
    uint32_t position;
};

static void number_positions(struct batch *batch, uint64_t first, uint64_t end) {
    for (uint64_t i = first; i < end; i++)
        batch->position[i] = (uint32_t)(i - first);
}

/* Sorts [first, value_count). Returns whether all ids differ. */
static bool sort_row(struct batch *batch, uint64_t first, uint64_t *repeated) {
    uint64_t count = batch->value_count - first;
    struct id_and_value *entries = memory_new(count, sizeof *entries);
    for (uint64_t i = 0; i < count; i++)
        entries[i] =
            (struct id_and_value){batch->id[first + i], batch->value[first + i], (uint32_t)i};
    qsort(entries, count, sizeof *entries, compare_ids);
    bool differ = true;
    for (uint64_t i = 0; i < count && differ; i++) {
        batch->id[first + i] = entries[i].id;
        batch->value[first + i] = entries[i].value;
        batch->position[first + i] = entries[i].position;
        if (i && entries[i].id == entries[i - 1].id) {
            *repeated = entries[i].id;
            differ = false;
        }
    }
    free(entries);
    return differ;
}

void batch_weigh(struct batch *batch, uint32_t row, double weight) {
    assert(row < batch->row_capacity);
    batch->weight[row] = weight;
    batch->has_weights |= weight != 1;
}

void batch_add_offset(struct batch *batch, uint32_t row, double offset) {
    assert(row < batch->row_capacity);
    batch->offset[row] += offset;
    batch->has_offsets |= batch->offset[row] != 0;
}

bool batch_row(struct batch *batch, double label, const char *label_text, bool sorted,
               uint64_t *repeated) {
    assert(batch->row_count < batch->row_capacity && batch->value_count <= batch->value_capacity);
    uint64_t first = batch->start[batch->row_count];
    assert(first <= batch->value_count);
    if (!sorted) {
        if (!batch->has_positions)
            for (uint32_t row = 0; row < batch->row_count; row++)
                number_positions(batch, batch->start[row], batch->start[row + 1]);
        batch->has_positions = true;
        if (!sort_row(batch, first, repeated))
            return false;
    } else if (batch->has_positions) {
        number_positions(batch, first, batch->value_count);
    }
    batch->label[batch->row_count] = label;
    batch->label_text[batch->row_count] = label_text;
    batch->line[batch->row_count] = batch->row_line;
    batch->hash[batch->row_count] = batch->row_hash;
    batch->has_label_text |= label_text != NULL;
    batch_weigh(batch, batch->row_count, batch->row_weight);
    batch->offset[batch->row_count] = 0;
    batch_add_offset(batch, batch->row_count, batch->row_offset);
    batch->cluster[batch->row_count] = batch->row_cluster;
    batch->has_clusters |= batch->row_cluster != 0;
    batch_begin_row(batch);
    batch->start[++batch->row_count] = batch->value_count;
    return true;
}

bool batch_reject(struct batch *batch, uint64_t line, const char *format, ...) {
    if (batch->row_count < batch->row_capacity)
        batch->value_count = batch->start[batch->row_count];
    batch_begin_row(batch);
    batch->text_count = 0;
    MEMORY_ROOM(batch->bad, batch->bad_count, batch->bad_capacity);
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    batch->bad[batch->bad_count++] =
        (struct bad_line){.line = line, .row = batch->row_count, .why = memory_copy_string(why)};
    return false;
}

const struct source_rows *batch_view(struct batch *batch) {
    assert(batch->start[batch->row_count] <= batch->value_count);
    batch->rows = (struct source_rows){
        .bad = batch->bad,
        .bad_count = batch->bad_count,
        .count = batch->row_count,
        .first_line = batch->first_line,
        .line = batch->line,
        .start = batch->start,
        .id = batch->id,
        .alike = batch->alike,
        .bytes = batch->bytes,
        .value = batch->value,
        .origin = batch->has_origins ? batch->origin : NULL,
        .known = batch->has_origins && !batch->has_unknown,
        .words = (uint32_t)batch->words.known_count,
        .position = batch->has_positions ? batch->position : NULL,
        .label = batch->label,
        .label_text = batch->has_label_text ? batch->label_text : NULL,
        .weight = batch->has_weights ? batch->weight : NULL,
        .offset = batch->has_offsets ? batch->offset : NULL,
        .cluster = batch->has_clusters ? batch->cluster : NULL,
        .hash = batch->has_hashes ? batch->hash : NULL,
        .carried = batch->carried_count ? batch->carried : NULL,
        .carried_count = batch->carried_count,
        .workspace = &batch->workspace,
    };
    return &batch->rows;
}

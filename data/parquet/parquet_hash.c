/* The hashes of the rows of a Parquet file: of all cells in the order of the columns, whatever is
 * read of them and however they are stored. doc/FORMATS.md has the formula; it must never change.
 */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/parquet/parquet_block.h"

#define OF_NULL UINT64_C(0xe7037ed1a0b428db)

static uint64_t hash_value(const struct parquet_values *values, uint32_t i) {
    uint64_t value = 0;
    if (!values->width)
        return hash64(values->data + values->text[i].start, values->text[i].length);
    const uint8_t *at = values->data + (size_t)i * values->width;
    if (values->width > sizeof value)
        return hash64(at, values->width);
    memcpy(&value, at, values->width); /* this machine's order is the file's */
    return value;
}

static void add_part(const struct page_rows *part, uint64_t *hash) {
    const struct parquet_values *values = &part->page->values;
    const struct parquet_values *of = values->index ? &part->page->dictionary->values : values;
    for (uint32_t row = 0; row < part->count; row++) {
        const uint32_t i = part->first + row;
        const bool there = !values->present || values->present[i];
        const uint64_t value =
            there ? hash_value(of, values->index ? values->index[i] : i) : OF_NULL;
        hash[row] = random_mix((hash[row] ^ value) + RANDOM_STEP);
    }
}

void parquet_hash_rows(struct parquet_block *block) {
    if (block->hash_capacity < block->rows)
        block->hash =
            memory_resize(block->hash, block->hash_capacity = block->rows, sizeof *block->hash);
    memset(block->hash, 0, block->rows * sizeof *block->hash);
    for (uint32_t i = 0; i < block->parts; i++) {
        const struct page_rows *part = &block->part[i];
        assert(part->at + part->count <= block->rows);
        if (!part->page->code) /* else it is of a column that is not read, and cannot be */
            add_part(part, block->hash + part->at);
    }
}

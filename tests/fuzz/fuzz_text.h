/* Parses arbitrary bytes as one block of text; a libFuzzer target gives the options. */
#ifndef DML_TESTS_FUZZ_TEXT_H
#define DML_TESTS_FUZZ_TEXT_H

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/csv/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* Parses the text; *table becomes that of CSV, or NULL, unless `table` is NULL. */
static void fuzz_parse(const uint8_t *data, size_t length, const struct source_options *options,
                       struct table **table) {
    struct batch batch;
    batch_init(&batch);
    batch.first_line = 1;
    batch.text = memory_new(length + TEXT_END_BYTES, 1);
    batch.text_length = length;
    if (length)
        memcpy(batch.text, data, length);
    struct format format;
    bool found = !format_find(&format, "fuzz", batch.text, length, options);
    if (found)
        format_parse(&format, &batch, format.header);
    if (table)
        *table = found && format.table ? table_copy(format.table) : NULL;
    format_release(&format);
    batch_release(&batch);
    error_clear();
}

#endif

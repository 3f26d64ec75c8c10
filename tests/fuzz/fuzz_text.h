/* Parses arbitrary bytes as one block of text; a libFuzzer target gives the options. */
#ifndef DML_TESTS_FUZZ_TEXT_H
#define DML_TESTS_FUZZ_TEXT_H

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static int fuzz_text(const uint8_t *data, size_t length, const struct source_options *options) {
    struct batch batch;
    batch_init(&batch);
    batch.first_line = 1;
    batch.text = memory_new(length + TEXT_END_BYTES, 1);
    batch.text_length = length;
    if (length)
        memcpy(batch.text, data, length);
    struct format format;
    if (!format_find(&format, "fuzz", batch.text, length, options))
        format_parse(&format, &batch, format.header);
    format_release(&format);
    batch_release(&batch);
    error_clear();
    return 0;
}

#endif

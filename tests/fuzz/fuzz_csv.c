#include "tests/fuzz/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct source_options options = {.format = FORMAT_CSV, .bad_lines_max = UINT64_MAX};
    return fuzz_text(data, length, &options);
}

#include "tests/fuzz/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct source_options options = {.format = FORMAT_LIBSVM, .bad_lines_max = UINT64_MAX};
    options.label.separator = length % 2 ? ',' : 0; /* labels are lists */
    fuzz_parse(data, length, &options, NULL);
    return 0;
}

#include "bench/tiny_data.h"

#include <math.h>

#include "base/memory.h"
#include "numeric/fixed.h"

struct tiny tiny;

enum { VALUES = 4 }; /* of a row in a strip */

static uint32_t *start, *feature, strip_count, strip_columns;
static double *value, *label; /* of the patterns, and of the first ones once more behind them */
static int16_t *size;

static void make_pattern(uint32_t i) {
    uint32_t pattern = i % TINY_PATTERNS, part = strip_columns / VALUES;
    for (uint32_t j = 0; j < VALUES; j++) {
        feature[i * VALUES + j] = j * part + (pattern * 7 + j * 3) % part;
        value[i * VALUES + j] = ldexp(1 + (pattern * 5 + j) % 11, -(int)(pattern % 7) - 4);
    }
    label[i] = (pattern * 13 % 29) % 2;
    size[i] = (int16_t)fixed_size((double)strip_count * VALUES, strip_count * VALUES);
}

static void make_patterns(uint32_t rows) {
    uint32_t patterns = TINY_PATTERNS + rows;
    feature = memory_new((size_t)patterns * VALUES, sizeof *feature);
    value = memory_new((size_t)patterns * VALUES, sizeof *value);
    label = memory_new(patterns, sizeof *label);
    size = memory_new(patterns, sizeof *size);
    start = memory_new((size_t)rows + 1, sizeof *start);
    for (uint32_t i = 0; i < patterns; i++)
        make_pattern(i);
    for (uint32_t i = 0; i <= rows; i++)
        start[i] = i * VALUES;
}

struct rows tiny_rows(uint32_t chunk, uint32_t strip) {
    size_t first = (chunk + 5 * strip) % TINY_PATTERNS;
    return (struct rows){.count = tiny.rows,
                         .features = strip_columns,
                         .values = (uint64_t)tiny.rows * VALUES,
                         .type = VALUE_DOUBLE,
                         .start = start,
                         .feature = feature + first * VALUES,
                         .value = value + first * VALUES,
                         .label = label + chunk % TINY_PATTERNS,
                         .size = strip_count > 1 ? size : NULL,
                         .first = (uint64_t)chunk * tiny.rows};
}

void tiny_make(uint32_t chunks, uint32_t rows_of_chunk, uint32_t strips, uint32_t columns) {
    uint64_t rows = (uint64_t)chunks * rows_of_chunk;
    strip_count = strips;
    strip_columns = columns;
    tiny.rows = rows_of_chunk;
    make_patterns(rows_of_chunk);
    tiny.shape = (struct objective_shape){
        .kind = OBJECTIVE_LOGISTIC, .features = strips * columns, .outputs = 1, .intercept = true};
    tiny.info = (struct set_info){.rows = rows,
                                  .weight_sum = (double)rows,
                                  .values = rows * strips * VALUES,
                                  .features = strips * columns,
                                  .chunks = chunks,
                                  .strip_columns = strips > 1 ? columns : 0,
                                  .uniform = true,
                                  .uniform_exponent = fixed_exponent((double)rows, rows),
                                  .fingerprint = "f"};
}

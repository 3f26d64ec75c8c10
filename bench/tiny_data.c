#include "bench/tiny_data.h"

#include <math.h>

#include "numeric/fixed.h"

enum { TINY_VALUES = 4 };

struct tiny tiny;

static uint32_t start[2], feature[TINY_PATTERNS][TINY_VALUES];
static double value[TINY_PATTERNS][TINY_VALUES], label[TINY_PATTERNS];

void tiny_make(uint32_t chunks) {
    double sum = 0;
    start[1] = TINY_VALUES;
    for (uint32_t i = 0; i < TINY_PATTERNS; i++) {
        for (uint32_t j = 0; j < TINY_VALUES; j++) {
            feature[i][j] =
                j * (TINY_FEATURES / TINY_VALUES) + (i * 7 + j * 3) % (TINY_FEATURES / TINY_VALUES);
            value[i][j] = ldexp(1 + (i * 5 + j) % 11, -(int)feature[i][j] / 2);
            sum = fmax(sum, value[i][j]);
        }
        label[i] = (i * 13 % 29) % 2;
        tiny.row[i] = (struct rows){.count = 1,
                                    .features = TINY_FEATURES,
                                    .values = TINY_VALUES,
                                    .type = VALUE_DOUBLE,
                                    .start = start,
                                    .feature = feature[i],
                                    .value = value[i],
                                    .label = &label[i]};
    }
    tiny.shape = (struct objective_shape){
        .kind = OBJECTIVE_LOGISTIC, .features = TINY_FEATURES, .outputs = 1, .intercept = true};
    tiny.info = (struct set_info){.rows = chunks,
                                  .weight_sum = chunks,
                                  .values = (uint64_t)chunks * TINY_VALUES,
                                  .features = TINY_FEATURES,
                                  .chunks = chunks,
                                  .uniform = true,
                                  .uniform_exponent = fixed_exponent(sum * chunks, chunks),
                                  .fingerprint = "f"};
}

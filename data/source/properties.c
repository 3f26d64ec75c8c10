/* What properties of rows are. They are apart from the files that have them, since who only trains
 * reads no files of others. */
#include "data/source/properties.h"

#include <assert.h>
#include <math.h>

#include "base/limits.h"
#include "numeric/special.h"

const struct property_rule property_rules[ROW_PROPERTIES] = {
    [ROW_WEIGHT] = {"weight", "csv.weight", "a number from 0 to 1e+100", COLUMN_WEIGHT},
    [ROW_OFFSET] = {"offset", "offset", "a number from -1e+100 to 1e+100", COLUMN_OFFSET},
    [ROW_EXPOSURE] = {"exposure", "exposure", "a number above 0, to 1e+100", COLUMN_EXPOSURE},
    [ROW_CLUSTER] = {"cluster", "summary_cluster", "any text", COLUMN_CLUSTER},
};

enum row_property property_of(enum column_kind kind) {
    enum row_property property = 0;
    while (property < ROW_PROPERTIES && property_rules[property].kind != kind)
        property++;
    return property;
}

bool property_is_valid(enum row_property property, double number) {
    switch (property) {
    case ROW_WEIGHT:
        return number >= 0 && number <= WEIGHT_MAX;
    case ROW_OFFSET:
        return fabs(number) <= OFFSET_MAX;
    case ROW_EXPOSURE:
        return number > 0 && number <= OFFSET_MAX;
    case ROW_CLUSTER:
    case ROW_PROPERTIES:
        break;
    }
    return false;
}

/* Our own logarithm, so that all machines find the same bits. */
double property_offset(enum row_property property, double number) {
    double offset = number;
    assert(property != ROW_WEIGHT && property_is_valid(property, number));
    if (property == ROW_EXPOSURE)
        special_log(1, &offset, &number);
    return offset;
}

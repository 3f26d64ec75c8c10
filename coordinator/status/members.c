#include "coordinator/status/members.h"

#include <math.h>

const char *member_text(const json_t *object, const char *member) {
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "-";
}

long long member_count(const json_t *object, const char *member) {
    return (long long)json_integer_value(json_object_get(object, member));
}

double member_number(const json_t *object, const char *member) {
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

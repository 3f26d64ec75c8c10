/* Members of JSON objects for printing. */
#ifndef DML_COORDINATOR_STATUS_MEMBERS_H
#define DML_COORDINATOR_STATUS_MEMBERS_H

#include <jansson.h>

/* "-" if there is no such text. */
const char *member_text(const json_t *object, const char *member);

/* 0 if there is no such whole number. */
long long member_count(const json_t *object, const char *member);

/* NaN if there is no such number. */
double member_number(const json_t *object, const char *member);

#endif

/* Where the records of a CSV text end: a line end inside of a quoted cell is part of the cell
 * (RFC 4180).
 *
 * A quote opens a cell where the cell begins; elsewhere it is a character like others. A cell of
 * several lines must be closed within QUOTED_BYTES_MAX, and its record go on as one does: a quote
 * that is not closed so spoils its line, and not the lines behind it. */
#ifndef DML_DATA_RECORDS_H
#define DML_DATA_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#define QUOTED_BYTES_MAX (1u << 20)

/* How records are written. */
struct record_rule {
    char delimiters[5]; /* what may part cells; 0-terminated. None: every line is a record */
};

/* The line end behind the record that begins at `at`; `end` if none is there. The text ends with a
 * record. */
char *record_end(const struct record_rule *rule, char *at, char *end);

/* Whether `delimiter` parts two cells of a record. */
bool record_has(const struct record_rule *rule, const char *record, size_t length, char delimiter);

/* How many bytes of a text, which begins with a record, are whole records. `ended`: it is the rest
 * of the file. */
size_t records_whole(const struct record_rule *rule, const char *text, size_t length, bool ended);

#endif

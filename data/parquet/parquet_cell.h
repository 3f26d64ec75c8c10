/* The values of Parquet as cells of a table: as numbers and dates at once where that is all that
 * they are, and as the texts that pyarrow.csv.write_csv() writes of them. */
#ifndef DML_DATA_PARQUET_PARQUET_CELL_H
#define DML_DATA_PARQUET_PARQUET_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "data/parquet/parquet.h"
#include "data/text/date.h"

/* Values one after the other that are not null. */
struct parquet_span {
    const struct parquet_column *column;
    const struct parquet_values *values; /* without `index` */
};

/* `count` values from number `first` on, or, with `index`, those that it names. Where a value is no
 * finite number, or none that is a number without its text, `to` is NaN. They go to every
 * `stride`-th place. A number of 32 bits is that which its shortest text means, as it is in CSV:
 * 0.1 is 0.1. */
bool parquet_numbers(const struct parquet_span *span, uint32_t first, const uint32_t *index,
                     uint32_t count, double *to, size_t stride);

/* A number of 32 bits as above, whatever it is; and numbers one after the other, with whether all
 * are finite. */
double parquet_double_of(float value);
bool parquet_doubles_of(const void *from, uint32_t count, double *to, size_t stride);

/* The powers of ten that doubles hold exactly. */
#define EXACT_POWERS 23
extern const double exact_powers[EXACT_POWERS];

/* Whether it is a date, as DATE_FORMAT_ISO reads its text. */
bool parquet_date(const struct parquet_span *span, uint32_t i, struct date *date);

/* How many bytes the text of a value has at most, the 0 after it included. */
size_t parquet_text_room(const struct parquet_span *span, uint32_t i);

/* Writes the text, and a 0; returns its length. A text may have more zeros in it. */
size_t parquet_text_of(const struct parquet_span *span, uint32_t i, char *to);

/* Whether pyarrow would put the cell between quotes. */
bool parquet_is_quoted(const struct parquet_column *column);

#endif

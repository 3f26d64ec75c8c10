/* Arrays of numbers as files: IDX, as the MNIST images come in, and NumPy's .npy, versions 1 to 3.
 * The first dimension counts rows; all others are flattened, the last one running fastest. */
#ifndef DML_DATA_SOURCE_ARRAY_H
#define DML_DATA_SOURCE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source/batch.h"
#include "data/source/blocks.h"
#include "data/source/source.h"

enum array_cell {
    CELL_U8,
    CELL_BOOL,
    CELL_I8,
    CELL_U16,
    CELL_I16,
    CELL_U32,
    CELL_I32,
    CELL_U64,
    CELL_I64,
    CELL_F32,
    CELL_F64,
};

struct array {
    enum source_format format;
    enum array_cell cell;
    bool big;       /* the byte of the highest value comes first */
    uint32_t width; /* cells of a row: 1 to ARRAY_WIDTH_MAX */
    uint64_t rows;  /* as the header says: nothing may be allocated by it */
};

/* The format of a file that begins so: FORMAT_IDX, FORMAT_NPY, or FORMAT_AUTO if it is neither. */
enum source_format array_format(const uint8_t *bytes, size_t length);

/* The bytes that array_format() looks at. */
#define ARRAY_MAGIC_BYTES 6

/* "an IDX file". */
const char *array_format_name(enum source_format format);

size_t array_row_bytes(const struct array *array);

/* Reads the header of the file that begins here; `format` is what array_format() said. ERROR_DATA
 * if it is truncated or damaged, or the array is not one of numbers that can be rows. */
int array_read_header(struct blocks *blocks, enum source_format format, struct array *array);

/* The numbers of `count` cells. Integers beyond 2^53 are rounded. */
void array_decode(const struct array *array, const char *from, uint64_t count, double *to);

/* Adds the bytes of the next `rows` rows, before which *taken were read, to batch->text. ERROR_DATA
 * if the file is truncated. */
int array_take(struct blocks *blocks, const struct array *array, uint64_t *taken, uint64_t rows,
               struct batch *batch);

/* What comes after the last row: nothing. Reads to the end; ERROR_DATA if something is there. */
int array_check_end(struct blocks *blocks, const struct array *array);

/* ---- arrays beside the rows of others ---- */

/* An array with one number a row, and how far it was read. */
struct array_column {
    struct input *input; /* owned; NULL: there is none */
    struct blocks blocks;
    struct array array;
    uint64_t taken; /* rows that were read */
};

/* Reads the header of an array, whose input it takes over, whatever the result. `path` names it in
 * messages, and must outlive the column; `what` is "a label". ERROR_DATA if a row has several
 * numbers. */
int array_column_open(struct array_column *column, struct input *input, const char *path,
                      const char *what);
void array_column_close(struct array_column *column); /* harmless on zeros */

/* Adds the bytes of the next rows to batch->text. ERROR_DATA if the file is truncated. */
int array_column_take(struct array_column *column, uint64_t rows, struct batch *batch);

/* After the last row: nothing may follow. */
int array_column_end(struct array_column *column);

#endif

/* Arrays of numbers as files: IDX, as the MNIST images come in, and NumPy's .npy, versions 1 to 3.
 * The first dimension counts rows; all others are flattened, the last one running fastest. */
#ifndef DML_DATA_ARRAY_H
#define DML_DATA_ARRAY_H

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

/* What comes after the last row: nothing. Reads to the end; ERROR_DATA if something is there. */
int array_check_end(struct blocks *blocks, const struct array *array);

/* ---- the reader ----
 *
 * Reads the rows of an array file, each with its label from an array file of its own, into batches:
 * what data/csv/format.h does for text. */

struct array_reader; /* opaque */

/* *reader is NULL if `data`, whose first bytes are looked at, holds text. Else opens
 * options->labels, unless there is none and labels are optional. Blocks and options must outlive
 * the reader. ERROR_DATA if the format is not the one that the options want, of
 * array_read_header(), or if there are not as many labels as rows. */
int array_reader_open(struct blocks *data, const struct source_options *options,
                      struct array_reader **reader);
void array_reader_close(struct array_reader *reader); /* harmless on NULL */

const struct array *array_reader_data(const struct array_reader *reader);

/* Reads the next rows, and after them their labels, into batch->text; text_length 0 is the end.
 * The first row counts as line 1. ERROR_DATA if a file is truncated, or goes on after its end. */
int array_reader_next(struct array_reader *reader, struct batch *batch);

/* Turns the batch's text into rows: column j, from 0, has the id j + 1. Rows with a number that is
 * not finite are rejected; stops after more than options->bad_lines_max of them. Safe from many
 * threads. */
void array_reader_parse(const struct array_reader *reader, struct batch *batch);

/* Ends the reading, after the last row: notes hash and stamp of the file of labels. */
int array_reader_end(const struct array_reader *reader, struct source_report *report);

#endif

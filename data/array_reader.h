/* Reads the rows of an array file, each with its label from an array file of its own, into batches:
 * what data/csv/format.h does for text. */
#ifndef DML_DATA_ARRAY_READER_H
#define DML_DATA_ARRAY_READER_H

#include "data/source/array.h"

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

/* ---- labels of all readers of arrays ---- */

/* Opens options->label.file, with labels for the `rows` rows of `data`; nothing if no file is named
 * and labels are optional. `kind` is "a .npy file". ERROR_DATA also for options that go with no
 * array, or if there are not as many labels as rows. */
int array_labels_open(struct array_column *labels, const struct source_options *options,
                      const char *data, const char *kind, uint64_t rows);

/* After the last row: notes hash and stamp. */
int array_labels_end(const struct array_column *labels, struct source_report *report);

#endif

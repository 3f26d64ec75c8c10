/* Reads the rows of a sparse matrix, each with its label from an array file, into batches. The file
 * is what scipy.sparse.save_npz() writes of a matrix in CSR format: an archive with the arrays
 * indptr, indices, data, shape and format. Rows are those of the LIBSVM text in which index j + 1
 * has the value of column j. */
#ifndef DML_DATA_SPARSE_READER_H
#define DML_DATA_SPARSE_READER_H

#include "data/source/batch.h"
#include "data/source/blocks.h"
#include "data/source/source.h"

struct sparse_reader; /* opaque */

/* *reader is NULL if `data`, whose first bytes are looked at, is no archive of arrays. Else opens
 * options->labels, unless there is none and labels are optional. What is no regular file is copied
 * to a temporary one first. Blocks and options must outlive the reader. ERROR_DATA if the options
 * want another format, the archive is damaged, its arrays are not those of a matrix in CSR format,
 * or there are not as many labels as rows. */
int sparse_reader_open(struct blocks *data, const struct source_options *options,
                       struct sparse_reader **reader);
void sparse_reader_close(struct sparse_reader *reader); /* harmless on NULL */

/* Reads the next rows into batch->text; text_length 0 is the end. The first row counts as line 1.
 * ERROR_DATA if an array is truncated or does not fit the others. */
int sparse_reader_next(struct sparse_reader *reader, struct batch *batch);

/* Turns the batch's text into rows, whose indices may have any order; the values of an index that
 * a row has several times are added up. Rows with a number that is not finite, or an index outside
 * of the matrix, are rejected; stops after more than options->bad_lines_max of them. Safe from many
 * threads. */
void sparse_reader_parse(const struct sparse_reader *reader, struct batch *batch);

/* After the last row: reads what is left of the file, for its hash, and notes hash and stamp of the
 * file of labels. */
int sparse_reader_end(const struct sparse_reader *reader, struct source_report *report);

#endif

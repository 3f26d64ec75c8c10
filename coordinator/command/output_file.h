/* Where a command writes its result: standard output, or a file that is whole as soon as it is
 * there. */
#ifndef DML_COORDINATOR_COMMAND_OUTPUT_FILE_H
#define DML_COORDINATOR_COMMAND_OUTPUT_FILE_H

#include <stdio.h>

/* Writes to `stream`; 0 or an error. What goes wrong with the stream is noticed after it. */
typedef int output_write(void *context, FILE *stream);

/* `path` is NULL or "-" for standard output. A failure leaves what was there before. ERROR_CREATE
 * if the path is a device or a pipe, which the rename at the end would replace by a file, or cannot
 * be created; ERROR_PERMISSION, ERROR_IO; and errors of `write`. */
int output_file_write(const char *path, output_write *write, void *context);

#endif

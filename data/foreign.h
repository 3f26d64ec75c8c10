/* Files of formats that are not read, told by their first bytes. */
#ifndef DML_DATA_FOREIGN_H
#define DML_DATA_FOREIGN_H

#include <stddef.h>

/* ERROR_DATA, with what to do, if a file that begins with these bytes is of such a format. */
int foreign_check(const char *path, const void *bytes, size_t length);

/* ERROR_DATA, with what to do, if a path is an address such as s3://bucket/file. */
int foreign_check_path(const char *path);

#endif

/* What tells the content of a file or an object from what it was before. */
#ifndef DML_DATA_REMOTE_STAMP_H
#define DML_DATA_REMOTE_STAMP_H

#include <stdint.h>

/* Facts about a file that change with its content, known without reading it. */
struct source_stamp {
    uint64_t bytes, inode;
    int64_t modified_ns, changed_ns; /* since 1970: mtime, which people can set back, and ctime */
};

#endif

#define _GNU_SOURCE
#include "data/source/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

#define COPIED_AT_ONCE (256u << 10)

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

static int write_all(int descriptor, const char *bytes, size_t length) {
    while (length) {
        ssize_t written = write(descriptor, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(ERROR_IO,
                                   "cannot write to a temporary file in %s; TMPDIR names another "
                                   "folder",
                                   temporary_folder());
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

/* Takes all bytes, and writes them unless the descriptor is -1. */
static int take_all(struct blocks *blocks, int descriptor) {
    struct batch batch;
    int code;
    batch_init(&batch);
    do {
        batch.text_length = 0;
        code = blocks_take(blocks, &batch, COPIED_AT_ONCE);
        if (!code && descriptor >= 0)
            code = write_all(descriptor, batch.text, batch.text_length);
    } while (!code && batch.text_length);
    batch_release(&batch);
    return code;
}

int spool_open(struct spool *spool, struct blocks *blocks) {
    *spool = (struct spool){.descriptor = input_descriptor(blocks->input)};
    if (spool->descriptor >= 0)
        return 0;
    /* A file without a name, of which programs that are started know nothing; -1: errno says why.
     */
    char *path = memory_format("%s/dml-XXXXXX", temporary_folder());
    spool->descriptor = mkostemp(path, O_CLOEXEC);
    spool->copied = spool->descriptor >= 0;
    if (spool->copied)
        unlink(path);
    free(path);
    if (!spool->copied)
        return error_set_errno(ERROR_IO,
                               "cannot make a temporary file in %s; TMPDIR names another folder",
                               temporary_folder());
    return take_all(blocks, spool->descriptor);
}

void spool_close(struct spool *spool) {
    if (spool->copied)
        close(spool->descriptor);
    *spool = (struct spool)SPOOL_NONE;
}

int spool_rest(struct blocks *blocks) {
    return take_all(blocks, -1);
}

/* Feeds a fuzzer from files, for the programs that are built without libFuzzer. */
#ifndef DML_TESTS_FUZZ_CORPUS_H
#define DML_TESTS_FUZZ_CORPUS_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

enum { INPUT_BYTES_MAX = 1 << 20 };

/* Feeds one file; not 0 if it cannot be opened. */
static int feed_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return 1;
    uint8_t *data = memory_new(INPUT_BYTES_MAX, 1);
    size_t length = fread(data, 1, INPUT_BYTES_MAX, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, length);
    free(data);
    return 0;
}

/* Feeds all files of tests/fuzz/NAME in the source; returns how many there were. */
static unsigned feed_corpus(const char *name) {
    const char *source = getenv("DML_SOURCE");
    char *folder = memory_format("%s/tests/fuzz/%s", source ? source : ".", name);
    DIR *entries = opendir(folder);
    unsigned files = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char *path = memory_format("%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && !feed_file(path))
            files++;
        free(path);
    }
    if (entries)
        closedir(entries);
    free(folder);
    return files;
}

#endif

/* Feeds a fuzzer from files, for the programs that are built without libFuzzer. */
#ifndef DML_TESTS_FUZZ_CORPUS_H
#define DML_TESTS_FUZZ_CORPUS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

enum { INPUT_BYTES_MAX = 1 << 20 };

/* Feeds one file; not 0 if it cannot be opened. */
static inline int feed_file(const char *path) {
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
static inline unsigned feed_corpus(const char *name) {
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

/* Feeds the files that the arguments name. Whether there were any; then *status is that of main().
 */
static inline bool feed_named(int argc, char **argv, int *status) {
    *status = 0;
    for (int i = 1; i < argc && !*status; i++)
        *status = feed_file(argv[i]);
    return argc > 1;
}

/* Feeds inputs of so many bytes drawn from seeds, so that a failing one can be repeated: `count`
 * from seed 1 on, or DML_FUZZ from DML_FUZZ_SEED on. How many. */
static inline uint64_t feed_inputs(uint64_t count, size_t bytes) {
    const char *first = getenv("DML_FUZZ_SEED"), *wanted = getenv("DML_FUZZ");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
    uint64_t inputs = wanted ? strtoull(wanted, NULL, 10) : count;
    uint8_t *input = memory_new(bytes, 1);
    for (uint64_t k = 0; k < inputs; k++) {
        struct random random;
        random_init(&random, seed + k);
        for (size_t i = 0; i < bytes; i++)
            input[i] = (uint8_t)(random_next(&random) >> 32);
        LLVMFuzzerTestOneInput(input, bytes);
    }
    free(input);
    return inputs;
}

#endif

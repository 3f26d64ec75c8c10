/* The kernels whose texts the build has kept. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/machine.h"

static struct {
    struct program **list;
    size_t count, capacity;
} programs;

/* Bytes of a path up to the folder's end: texts for several architectures lie in one. */
static size_t folder_of(const char *file) {
    return (size_t)(strrchr(file, '/') - file);
}

/* Of several architectures the last one counts. A kernel in two folders is an old text beside a new
 * one. */
static void add(struct program *program) {
    for (size_t i = 0; i < programs.count; i++) {
        struct program *other = programs.list[i];
        if (strcmp(other->name, program->name))
            continue;
        size_t length = folder_of(other->file);
        if (length != folder_of(program->file) || strncmp(other->file, program->file, length))
            ptx_fail("%s is in %s and in %s: remove the old one", program->name, other->file,
                     program->file);
        programs.list[i] = program;
        return;
    }
    if (programs.count == programs.capacity) {
        programs.capacity = 2 * programs.capacity + 64;
        programs.list = realloc(programs.list, programs.capacity * sizeof(void *));
        if (!programs.list)
            ptx_fail("no memory of the host");
    }
    programs.list[programs.count++] = program;
}

static void read_file(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t capacity = 0;
    if (!file)
        ptx_fail("%s cannot be read", path);
    ssize_t length = getdelim(&text, &capacity, '\0', file);
    if (length > 0)
        ptx_parse(path, text, add);
    free(text);
    fclose(file);
}

static bool is_of_a_benchmark(const char *folder, const char *path) {
    static const char bench[] = "/bench/";
    return !strncmp(path + strlen(folder), bench, sizeof bench - 1);
}

/* Where the rule for .cu files keeps them. Those of benchmarks are for a real device. */
static void read_all(void) {
    static const char *const places[] = {"*", "*/*"};
    const char *folder = getenv("DML_PTX");
    if (!folder)
        ptx_fail("DML_PTX must name the folder of the build, where the PTX is");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char pattern[4096];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s/*.nvcc/*.ptx", folder, places[i]);
        if (glob(pattern, 0, NULL, &found) == 0) {
            for (size_t file = 0; file < found.gl_pathc; file++)
                if (!is_of_a_benchmark(folder, found.gl_pathv[file]))
                    read_file(found.gl_pathv[file]);
            globfree(&found);
        }
    }
    if (!programs.count)
        ptx_fail("there is no PTX in %s: is it a build with CUDA?", folder);
}

struct program *ptx_program(const char *name) {
    if (!programs.count)
        read_all();
    for (size_t i = 0; i < programs.count; i++)
        if (!strcmp(programs.list[i]->name, name))
            return programs.list[i];
    ptx_fail("there is no PTX of %s", name);
}

size_t ptx_argument_bytes(const struct program *program) {
    return program->argument_bytes;
}

#include "tests/unit/suites.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SUITES_MAX = 64 };

static struct suite {
    const char *name;
    int (*run)(void);
} suites[SUITES_MAX];
static int suites_count;

void suites_add(const char *name, int (*run)(void)) {
    if (suites_count == SUITES_MAX)
        abort();
    suites[suites_count++] = (struct suite){name, run};
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct suite *)a)->name, ((const struct suite *)b)->name);
}

/* Whether one of the words, between blanks, is the name. */
static bool is_among(const char *name, const char *words) {
    size_t length = strlen(name);
    for (const char *at = words; (at = strstr(at, name)); at += length)
        if ((at == words || isspace((unsigned char)at[-1])) &&
            (!at[length] || isspace((unsigned char)at[length])))
            return true;
    return false;
}

/* Arguments come first, then what the environment names, as ./check does for many programs at once.
 */
static bool is_wanted(const char *name, int count, char *const names[]) {
    for (int i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return true;
    const char *words = getenv("DML_SUITES");
    return count == 0 && (!words || is_among(name, words));
}

/* The part of a line of TAP behind its number, or NULL if it is no result. */
static const char *after_number(const char *line) {
    const char *rest = !strncmp(line, "ok ", 3)       ? line + 3
                       : !strncmp(line, "not ok ", 7) ? line + 7
                                                      : NULL;
    return rest ? rest + strspn(rest, "0123456789") : NULL;
}

/* Copies what a suite prints, with results numbered on from `*count`. Its plan is left out: it
 * would be the plan of all. */
static void copy_results(FILE *from, int *count) {
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, from) >= 0) {
        const char *rest = after_number(line);
        if (rest)
            printf("%s %d%s", *line == 'o' ? "ok" : "not ok", ++*count, rest);
        else if (strncmp(line, "1..", 3) != 0)
            fputs(line, stdout);
    }
    free(line);
}

static double seconds(struct timeval time) {
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* What the suites that ended have cost. */
static double processor_seconds(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage))
        abort();
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/* Answers whether the suite passed. If it ended otherwise than by its last return, that is one more
 * result. */
static bool run_suite(const struct suite *suite, int *count) {
    double before = processor_seconds();
    int ends[2];
    if (fflush(stdout) || pipe(ends))
        abort();
    pid_t child = fork();
    if (child < 0)
        abort();
    if (!child) {
        if (dup2(ends[1], STDOUT_FILENO) < 0)
            abort();
        close(ends[0]);
        close(ends[1]);
        exit(suite->run() ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (!from)
        abort();
    printf("# %s\n", suite->name);
    copy_results(from, count);
    fclose(from);
    int status;
    if (waitpid(child, &status, 0) != child)
        abort();
    printf("# %s: %.1f s of processors\n", suite->name, processor_seconds() - before);
    if (WIFSIGNALED(status))
        printf("not ok %d - %s ended by signal %d\n", ++*count, suite->name, WTERMSIG(status));
    else if (WEXITSTATUS(status) > EXIT_FAILURE)
        printf("not ok %d - %s ended with %d\n", ++*count, suite->name, WEXITSTATUS(status));
    return !status;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (int j = 0; j < suites_count; j++)
            known = known || !strcmp(argv[i], suites[j].name);
        if (!known) {
            fprintf(stderr, "%s has no suite %s\n", argv[0], argv[i]);
            return 64;
        }
    }
    qsort(suites, (size_t)suites_count, sizeof *suites, by_name);
    setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", true);
    int count = 0;
    bool passed = true;
    for (int i = 0; i < suites_count; i++)
        if (is_wanted(suites[i].name, argc - 1, argv + 1))
            passed = run_suite(&suites[i], &count) && passed;
    printf("1..%d\n", count);
    return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}

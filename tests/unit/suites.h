/* A unit program holds the suites of one folder: tests/unit/FOLDER.mk lists their files, and each
 * file brings one suite. Without arguments the program runs them all, or those that DML_SUITES
 * names; else those that the arguments name.
 * Each suite runs in a process of its own, so that what one does to its process (limits, signals,
 * failpoints, a crash) does not reach the next. What a suite prints by TAP is numbered anew. */
#ifndef DML_TESTS_UNIT_SUITES_H
#define DML_TESTS_UNIT_SUITES_H

/* Whether a sanitizer watches, which gcc and clang say in different ways. It is slow, and looks for
 * what few cases show: a test may do less then, for it does the whole in another build. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Called before main(). `run` answers what cmocka_run_group_tests() answers. */
void suites_add(const char *name, int (*run)(void));

/* Stands where a program of its own would have `int main(void)`. */
#define SUITE(name)                                                                                \
    static int suite_##name(void);                                                                 \
    __attribute__((constructor)) static void suite_add_##name(void) {                              \
        suites_add(#name, suite_##name);                                                           \
    }                                                                                              \
    static int suite_##name(void)

#endif

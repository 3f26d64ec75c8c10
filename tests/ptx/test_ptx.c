/* The interpreter itself: it computes as the manual says, and notices what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/ptx/machine.h"

enum { THREADS = 32 };

/* A kernel of one argument, the address of THREADS numbers: %a is that of the thread's own, and
 * %s an address in shared memory. */
#define KERNEL(body)                                                                               \
    ".visible .entry k(\n.param .u64 k_param_0\n)\n{\n.reg .b64 %rd<9>;\n"                         \
    ".shared .align 8 .b8 S[256];\n"                                                               \
    "ld.param.u64 %first, [k_param_0];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 8;\n"            \
    "add.s64 %a, %first, %o;\nmov.u32 %s, S;\ncvt.u32.u64 %so, %o;\nadd.s32 %own, %s, %so;\n" body \
    "ret;\n}\n"

static struct program *parsed;

static void take(struct program *program) {
    parsed = program;
}

static void run(const char *kernel, double *numbers) {
    char *text = strdup(kernel);
    void *memory = ptx_memory_new(THREADS * sizeof *numbers);
    ptx_parse("text", text, take);
    ptx_memory_put(memory, numbers, THREADS * sizeof *numbers);
    ptx_run(parsed, 1, THREADS, &memory, 7);
    ptx_memory_get(numbers, memory, THREADS * sizeof *numbers);
    ptx_memory_free(memory);
    free(text);
}

/* Whether the kernel ends the process, with this in what it says. */
static void assert_noticed(const char *kernel, const char *said) {
    char text[1000] = "";
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        double numbers[THREADS] = {0};
        dup2(ends[1], STDERR_FILENO);
        run(kernel, numbers);
        _exit(0);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    size_t length = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    waitpid(child, &status, 0);
    if (!length || WIFEXITED(status) || !strstr(text, said))
        fail_msg("\"%s\" was not said, but \"%s\"", said, text);
}

static void threads_see_behind_a_barrier_what_others_wrote(void **state) {
    (void)state;
    double numbers[THREADS];
    for (int i = 0; i < THREADS; i++)
        numbers[i] = i;
    run(KERNEL("ld.global.f64 %x, [%a];\nst.shared.f64 [%own], %x;\nbar.sync 0;\n"
               "sub.s32 %r, 248, %so;\nadd.s32 %r, %r, %s;\nld.shared.f64 %x, [%r];\n"
               "st.global.f64 [%a], %x;\n"),
        numbers);
    for (int i = 0; i < THREADS; i++)
        assert_true(numbers[i] == THREADS - 1 - i);
}

static void only_what_is_called_fused_is_rounded_once(void **state) {
    (void)state;
    double once[THREADS] = {1 + 0x1p-30}, twice[THREADS] = {1 + 0x1p-30};
    run(KERNEL("ld.global.f64 %x, [%a];\nfma.rn.f64 %x, %x, %x, 0dBFF0000000000000;\n"
               "st.global.f64 [%a], %x;\n"),
        once);
    run(KERNEL("ld.global.f64 %x, [%a];\nmul.rn.f64 %x, %x, %x;\n"
               "add.rn.f64 %x, %x, 0dBFF0000000000000;\nst.global.f64 [%a], %x;\n"),
        twice);
    assert_true(once[0] == 0x1p-29 + 0x1p-60);
    assert_true(twice[0] == 0x1p-29);
}

static void conversions_round_to_even_and_stop_at_the_ends(void **state) {
    (void)state;
    const double given[] = {2.5, -3.5, 1e300, -1e300};
    const int64_t expected[] = {2, -4, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        double numbers[THREADS] = {given[i]};
        int64_t rounded;
        run(KERNEL("ld.global.f64 %x, [%a];\ncvt.rni.s64.f64 %i, %x;\nst.global.u64 [%a], %i;\n"),
            numbers);
        memcpy(&rounded, numbers, sizeof rounded);
        assert_true(rounded == expected[i]);
    }
}

static void guards_and_branches_choose_what_is_done(void **state) {
    (void)state;
    double numbers[THREADS];
    memset(numbers, 0, sizeof numbers);
    run(KERNEL("mov.f64 %x, 0d3FF0000000000000;\nmov.u32 %i, 0;\nsetp.lt.u32 %p, %t, 3;\n"
               "@!%p bra $L_end;\n$L_more:\nadd.rn.f64 %x, %x, %x;\nadd.s32 %i, %i, 1;\n"
               "setp.lt.u32 %q, %i, %t;\n@%q bra $L_more;\nst.global.f64 [%a], %x;\n$L_end:\n"),
        numbers);
    assert_true(numbers[0] == 2 && numbers[1] == 2 && numbers[2] == 4 && numbers[3] == 0);
}

static void what_is_wrong_is_noticed(void **state) {
    (void)state;
    assert_noticed(KERNEL("ex2.approx.f32 %x, %x;\n"), "text:14: this operation is not known");
    assert_noticed(KERNEL("ld.shared.f64 %x, [%own];\n"), "never written");
    assert_noticed(KERNEL("ld.global.f64 %x, [%a+8];\n"), "not in memory of the device");
    assert_noticed(KERNEL("ld.shared.f64 %x, [%own+256];\n"), "not in the 256 bytes");
    assert_noticed(KERNEL("ld.global.f64 %x, [%a+-4];\n"), "not a multiple of 8");
    assert_noticed(KERNEL("setp.eq.s32 %p, %t, 5;\n@%p bra $L_end;\nbar.sync 0;\n$L_end:\n"),
                   "not all threads of the block meet");
}

static void threads_that_no_barrier_keeps_apart_are_noticed(void **state) {
    (void)state;
    assert_noticed(KERNEL("st.shared.u32 [S], %t;\n"), "no barrier between them");
    assert_noticed(KERNEL("st.shared.u64 [%own], %o;\nld.shared.u64 %x, [S];\n"), "thread ");
    assert_noticed(KERNEL("ld.global.u64 %x, [%first];\nst.global.u64 [%a], %x;\n"),
                   "no barrier between them");
    assert_noticed(KERNEL("atom.global.add.u64 %x, [%first], 1;\nld.global.u64 %x, [%first];\n"),
                   "no barrier between them");
    double numbers[THREADS] = {0};
    run(KERNEL("atom.global.add.u64 %x, [%first], 1;\nbar.sync 0;\nld.global.u64 %x, [%first];\n"),
        numbers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_see_behind_a_barrier_what_others_wrote),
        cmocka_unit_test(only_what_is_called_fused_is_rounded_once),
        cmocka_unit_test(conversions_round_to_even_and_stop_at_the_ends),
        cmocka_unit_test(guards_and_branches_choose_what_is_done),
        cmocka_unit_test(what_is_wrong_is_noticed),
        cmocka_unit_test(threads_that_no_barrier_keeps_apart_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What each operation on registers does, and the names of all operations. */
#include <math.h>
#include <string.h>

#include "tests/ptx/machine.h"

#define SIGN (UINT64_C(1) << 63)

/* The manual says so of floats alone. */
static float numberf(float value) {
    const union word none = {.u64 = 0x7fffffff};
    return isnan(value) ? none.f32 : value;
}

/* −0 is smaller than 0; what is no number is passed over. */
static double smaller(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static uint64_t divisor(uint64_t value) {
    if (!value)
        ptx_fail("it divides by 0");
    return value;
}

/* `bits` bits of b, from bit `at` on, become those of a. */
static uint64_t inserted(uint64_t a, uint64_t b, uint32_t at, uint32_t bits, uint32_t width) {
    at &= 0xff;
    bits &= 0xff;
    for (uint32_t i = 0; i < bits && at + i < width; i++)
        b = (b & ~(UINT64_C(1) << (at + i))) | ((a >> i & 1) << (at + i));
    return b;
}

static uint64_t generic(enum space space) {
    return (uint64_t)(space - SPACE_GLOBAL) << GENERIC_BIT;
}

/* Conversions of what does not fit give the nearest integer that does; of no number as the manual
 * says. */
static int64_t to_signed(double value) {
    if (isnan(value) || value < -0x1p63)
        return INT64_MIN;
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

static uint64_t to_unsigned(double value) {
    if (isnan(value))
        return UINT64_C(1) << 63;
    if (value < 0)
        return 0;
    return value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}

static uint32_t to_unsigned32(double value) {
    if (isnan(value))
        return UINT32_C(1) << 31;
    if (value < 0)
        return 0;
    return value < 0x1p32 ? (uint32_t)value : UINT32_MAX;
}

#define A r[in->from[0]]
#define B r[in->from[1]]
#define C r[in->from[2]]
#define D r[in->from[3]]
#define STEP(name, type, value)                                                                    \
    static void step_##name(struct thread *thread, const struct instruction *in) {                 \
        union word *r = thread->r;                                                                 \
        r[in->to[0]].type = (__typeof__(r->type))(value);                                          \
    }
#include "tests/ptx/steps.def"
#undef STEP

/* ---- the course of a thread ---- */

static void step_bra(struct thread *thread, const struct instruction *in) {
    thread->at = in->target;
}

static void step_bar(struct thread *thread, const struct instruction *in) {
    if (thread->r[in->from[0]].u32)
        ptx_fail("only barrier 0 is known");
    thread->pause = PAUSE_BARRIER;
}

static void step_ret(struct thread *thread, const struct instruction *in) {
    (void)in;
    thread->pause = PAUSE_END;
}

#define STEP(name, type, value) {#name, step_##name},
static const struct {
    const char *name;
    step *step;
} steps[] = {
    {"bra", step_bra},
    {"bra_uni", step_bra},
    {"bar_sync", step_bar},
    {"ret", step_ret},
#include "tests/ptx/steps.def"
};

static bool is_name(const char *dotted, const char *name) {
    while (*dotted && (*dotted == *name || (*dotted == '.' && *name == '_')))
        dotted++, name++;
    return !*dotted && !*name;
}

step *step_named(const char *name) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (is_name(name, steps[i].name))
            return steps[i].step;
    return NULL;
}

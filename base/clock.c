#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/failpoint.h"

int64_t clock_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

void clock_minute(int64_t wall_ms, char text[CLOCK_MINUTE]) {
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm local = {0};
    localtime_r(&seconds, &local);
    if (!strftime(text, CLOCK_MINUTE, "%Y-%m-%d %H:%M", &local))
        snprintf(text, CLOCK_MINUTE, "-"); /* a year of a damaged record that has no room */
}

/* ---- signs of life ---- */

enum { PORTION_BYTES = 1 << 24 };

static _Thread_local void (*beat_now)(void *context);
static _Thread_local void *beat_context;

void heartbeat_call(void (*beat)(void *context), void *context) {
    beat_now = beat;
    beat_context = context;
}

void heartbeat(void) {
    if (!beat_now)
        return;
    failpoint(FAILPOINT_heartbeat);
    beat_now(beat_context);
}

static size_t portion_of(size_t bytes) {
    return bytes < PORTION_BYTES ? bytes : PORTION_BYTES;
}

void heartbeat_clear(void *start, size_t bytes) {
    uint8_t *at = start;
    for (size_t portion; bytes; bytes -= portion, at += portion) {
        portion = portion_of(bytes);
        memset(at, 0, portion);
        heartbeat();
    }
}

void heartbeat_copy(void *to, const void *from, size_t bytes) {
    uint8_t *at = to;
    const uint8_t *source = from;
    for (size_t portion; bytes; bytes -= portion, at += portion, source += portion) {
        portion = portion_of(bytes);
        memcpy(at, source, portion);
        heartbeat();
    }
}

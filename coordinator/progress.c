#include "coordinator/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"

static bool shown;   /* there is a terminal to write to */
static bool on_line; /* something stands there now */

static void take_away(void) {
    if (on_line)
        fputs("\r\033[K", stderr);
    on_line = false;
    fflush(stderr);
}

void progress_open(bool wanted) {
    shown = wanted && isatty(STDERR_FILENO);
    if (shown)
        log_set_before(take_away);
}

static void draw(const char *text) {
    struct winsize size;
    int columns = 80;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    fprintf(stderr, "\r%.*s\033[K", columns - 1, text);
    fflush(stderr);
    on_line = true;
}

void progress_stage(const char *text) {
    if (shown)
        draw(text);
}

/* What is left, guessed from the pace of the gradient's fall to its tolerance. */
static double seconds_left(const struct coordinator *c, double seconds) {
    static double first_gradient;
    const struct optimizer *o = &c->optimizer;
    if (o->step < 2) {
        first_gradient = o->gradient_max;
        return NAN;
    }
    double fallen = log(first_gradient / o->gradient_max);
    double to_fall = log(first_gradient / o->settings.gradient_tolerance);
    if (!(fallen > 0) || !isfinite(to_fall))
        return NAN;
    return seconds * (to_fall / fallen - 1);
}

static void append_left(char *text, size_t size, double left) {
    size_t length = strlen(text);
    if (!isfinite(left) || left < 0 || left > 1e6)
        return;
    if (left < 90)
        snprintf(text + length, size - length, "  about %.0f s left", left);
    else
        snprintf(text + length, size - length, "  about %.0f min left", left / 60);
}

void progress_run(const struct coordinator *c, double seconds) {
    if (!shown)
        return;
    char text[256];
    const struct optimizer *o = &c->optimizer;
    if (!o->started) {
        snprintf(text, sizeof text, "first evaluation %3.0f%%",
                 100.0 * c->plan.counted_chunks / c->plan.chunks);
    } else {
        double rate = seconds > 0 ? (double)c->evaluations / seconds : 0;
        snprintf(text, sizeof text,
                 "step %llu  loss %.9g  gradient %.2e  evaluation %3.0f%%  %.3g/s",
                 (unsigned long long)o->step, o->loss, o->gradient_max,
                 100.0 * c->plan.counted_chunks / c->plan.chunks, rate);
        append_left(text, sizeof text, seconds_left(c, seconds));
    }
    draw(text);
}

void progress_close(void) {
    if (!shown)
        return;
    take_away();
    log_set_before(NULL);
    shown = false;
}

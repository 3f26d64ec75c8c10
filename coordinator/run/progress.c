#include "coordinator/run/progress.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static bool shown; /* there is a terminal to write to */

/* If this fails, the terminal is gone, and nobody misses the line. */
static void write_text(const char *text, size_t length) {
    if (write(STDERR_FILENO, text, length) < 0)
        return;
}

void progress_open(bool wanted) {
    shown = wanted && terminal_erases(STDERR_FILENO);
}

static int columns_now(void) {
    int rows, columns;
    terminal_size(STDERR_FILENO, &rows, &columns);
    return columns;
}

/* In one write, so that no other line comes between. The last column stays free: a terminal may
 * wrap after it. */
static void draw_progress(const char *text, int columns) {
    char line[512];
    int length = snprintf(line, sizeof line, "\r%.*s\033[K", columns - 1, text);
    assert(length > 0 && (size_t)length < sizeof line);
    write_text(line, (size_t)length);
}

void progress_stage(const char *text) {
    if (shown)
        draw_progress(text, columns_now());
}

/* "12.3/s", or "34 s each" where one takes longer than a second. */
static void write_rate(double rate, char *text, size_t size) {
    if (!(rate > 0))
        *text = '\0';
    else if (rate >= 100)
        snprintf(text, size, ", %.0f/s", rate);
    else if (rate >= 1)
        snprintf(text, size, ", %.3g/s", rate);
    else
        snprintf(text, size, ", %.3g s each", 1 / rate);
}

static void write_left(double left, char *text, size_t size) {
    if (!(left < 1e8))
        *text = '\0';
    else if (left < 90)
        snprintf(text, size, "  %.0f s left", left);
    else if (left < 5400)
        snprintf(text, size, "  %.0f min left", left / 60);
    else
        snprintf(text, size, "  %.1f h left", left / 3600);
}

static void write_epoch(const struct downpour_view *downpour, const char *speed, const char *left,
                        char *text, size_t size) {
    char loss[32] = "", holdout[32] = "";
    if (downpour->done)
        snprintf(loss, sizeof loss, "  loss %.4g", downpour->loss);
    if (downpour->measures && downpour->epoch)
        snprintf(holdout, sizeof holdout, "  holdout %.4g", downpour->holdout.loss);
    snprintf(text, size, "epoch %llu of %llu  minibatch %llu of %llu%s%s%s%s",
             (unsigned long long)downpour->epoch + 1, (unsigned long long)downpour->epochs,
             (unsigned long long)downpour->minibatch, (unsigned long long)downpour->minibatches,
             speed, loss, holdout, left);
}

void progress_run(const struct coordinator_view *view, double rate, double seconds_left) {
    char text[256], speed[32], left[32];
    if (!shown)
        return;
    const int columns = columns_now();
    const double percent = 100.0 * view->evaluation.counted / view->evaluation.chunks;
    write_rate(rate, speed, sizeof speed);
    write_left(seconds_left, left, sizeof left);
    if (view->downpour.running)
        write_epoch(&view->downpour, speed, left, text, sizeof text);
    else if (!view->started)
        snprintf(text, sizeof text, "first evaluation %.0f%%%s", percent, speed);
    else /* fewer digits of the loss leave room for the rest in 80 columns */
        snprintf(text, sizeof text, "step %llu  loss %.*g  gradient %.1e  evaluation %3.0f%%%s%s",
                 (unsigned long long)view->step, columns < 90 ? 6 : 10, view->loss,
                 view->gradient_max, percent, speed, left);
    draw_progress(text, columns);
}

void progress_close(void) {
    if (shown)
        write_text(TERMINAL_ERASE, strlen(TERMINAL_ERASE));
    shown = false;
}

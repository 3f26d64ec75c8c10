/* The tables of `status` and `jobs`. */
#include "coordinator/command/print.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/publish/derive.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/invocations.h"
#include "coordinator/status/report.h"
#include "coordinator/status/result.h"

#define LINE_COLUMNS 80
#define NAME_COLUMNS 32 /* of a job's name, so that the state fits into the same line */

void report_print_json(const json_t *value) {
    json_dumpf(value, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
}

/* How many columns of standard output a text may take that has `least` of a line of 80. */
static int room_for(int least) {
    return terminal_room(STDOUT_FILENO, least, LINE_COLUMNS - least);
}

/* Puts a name into a cell of `columns`; a longer one is cut only if the line has no room for it. */
static void put_name(FILE *out, bool colors, const char *name, int columns) {
    int taken = terminal_put_cut(out, colors, STYLE_PLAIN, name, room_for(columns));
    fprintf(out, "%*s", taken < columns ? columns - taken : 0, "");
}

static void write_number(const json_t *object, const char *member, const char *format, char *text,
                         size_t size) __attribute__((format(printf, 3, 0)));

static void write_number(const json_t *object, const char *member, const char *format, char *text,
                         size_t size) {
    const json_t *value = json_object_get(object, member);
    if (json_is_number(value))
        snprintf(text, size, format, json_number_value(value));
    else
        snprintf(text, size, "-");
}

/* Needs at most 6 characters for less than ten thousand days. */
static void write_duration(double seconds, char *text, size_t size) {
    assert(size > 6);
    if (seconds < 100)
        snprintf(text, size, "%.1fs", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "%dm%02ds", (int)seconds / 60, (int)seconds % 60);
    else if (seconds < 360000)
        snprintf(text, size, "%dh%02dm", (int)(seconds / 3600), (int)(seconds / 60) % 60);
    else
        snprintf(text, size, "%.0fd", seconds / 86400);
}

/* The style of a state or a reason: what needs attention stands out. */
static enum style style_of(const char *word) {
    static const struct {
        const char *word;
        enum style style;
    } styles[] = {
        {"running", STYLE_GOOD},    {"up", STYLE_GOOD},          {"lost", STYLE_BAD},
        {"set aside", STYLE_BAD},   {"failing", STYLE_DOUBTFUL}, {"failed", STYLE_BAD},
        {"interrupted", STYLE_BAD}, {"stalled", STYLE_DOUBTFUL}, {"unknown", STYLE_DOUBTFUL}};
    for (unsigned i = 0; i < sizeof styles / sizeof styles[0]; i++)
        if (strcmp(styles[i].word, word) == 0)
            return styles[i].style;
    return STYLE_PLAIN;
}

static void print_head(const json_t *status, FILE *out, bool colors) {
    char started[CLOCK_MINUTE], duration[16];
    const char *reason = member_text(status, "reason");
    clock_minute(member_count(status, "started_ms"), started);
    write_duration(json_number_value(json_object_get(status, "seconds")), duration,
                   sizeof duration);
    terminal_put_cut(out, colors, STYLE_HEADING, member_text(status, "job"),
                     room_for(NAME_COLUMNS));
    if (member_count(status, "run"))
        fprintf(out, " run %lld", member_count(status, "run"));
    fputs(": ", out);
    terminal_put(out, colors, style_of(member_text(status, "state")), member_text(status, "state"));
    if (strcmp(reason, "-") != 0) {
        fputs(", ", out);
        terminal_put(out, colors, style_of(reason), reason);
        if (json_array_size(json_object_get(status, "shortfall")))
            fputs(": not converged", out);
    }
    if (json_is_string(json_object_get(status, "publication")))
        fprintf(out, "; %s", member_text(status, "publication"));
    if (json_is_string(json_object_get(status, "tag")))
        fputs("; tag ", out);
    if (json_is_string(json_object_get(status, "tag")))
        terminal_put(out, colors, STYLE_PLAIN, member_text(status, "tag"));
    fprintf(out, "\nstarted %s, %s", started, duration);
    if (json_is_number(json_object_get(status, "seconds_left"))) {
        write_duration(json_number_value(json_object_get(status, "seconds_left")), duration,
                       sizeof duration);
        fprintf(out, ", about %s left", duration);
    }
    putc('\n', out);
    if (json_is_string(json_object_get(status, "waiting"))) {
        fputs("waiting for ", out);
        escape_put(member_text(status, "waiting"), out);
        putc('\n', out);
    }
}

/* Whether it computes on anything but the CPU: the line has no room to say so of each. */
static bool has_device(const json_t *process) {
    const char *device = json_string_value(json_object_get(process, "device"));
    return device && strcmp(device, "cpu") != 0;
}

static void print_process(const json_t *process, FILE *out, bool colors) {
    const char *state = member_text(process, "state");
    char name[32], rate[16], restarts[16];
    snprintf(name, sizeof name, "%s %lld", member_text(process, "role"),
             member_count(process, "index"));
    write_number(process, "rate", "%.1f", rate, sizeof rate);
    write_number(process, "restarts", "%.0f", restarts, sizeof restarts);
    fprintf(out, "%-13s %8lld ", name, member_count(process, "pid"));
    put_name(out, colors, member_text(process, "host"), 14);
    putc(' ', out);
    terminal_put_cell(out, colors, style_of(state), state, 12);
    fprintf(out, " %8lld %8s %8s", member_count(process, "portions"), rate, restarts);
    if (has_device(process)) {
        fputs("  ", out);
        terminal_put(out, colors, STYLE_PLAIN, member_text(process, "device"));
    }
    putc('\n', out);
}

static void print_host(const json_t *host, FILE *out, bool colors) {
    const char *state = member_text(host, "state");
    put_name(out, colors, member_text(host, "name"), 22);
    putc(' ', out);
    terminal_put_cell(out, colors, style_of(state), state, 12);
    fprintf(out, " %8lld %8lld  ", member_count(host, "workers"), member_count(host, "failures"));
    if (json_is_string(json_object_get(host, "why")))
        terminal_put(out, colors, STYLE_PLAIN, member_text(host, "why"));
    putc('\n', out);
}

typedef void print_row(const json_t *row, FILE *out, bool colors);

/* A heading and a line for each row; nothing if there is no row. */
static void print_table(const json_t *rows, const char *heading, print_row *print, FILE *out,
                        bool colors) {
    size_t i;
    json_t *row;
    if (!json_array_size(rows))
        return;
    terminal_put(out, colors, STYLE_HEADING, heading);
    putc('\n', out);
    json_array_foreach(rows, i, row) print(row, out, colors);
}

static void print_processes(const json_t *processes, FILE *out, bool colors) {
    size_t i;
    json_t *process;
    bool devices = false;
    json_array_foreach(processes, i, process) devices |= has_device(process);
    print_table(
        processes,
        devices ? "process            pid host           state        portions chunks/s restarts  "
                  "device"
                : "process            pid host           state        portions chunks/s restarts",
        print_process, out, colors);
}

static void print_tensor(const json_t *tensor, FILE *out, bool colors) {
    char shape[48], norm[16], gradient[16];
    snprintf(shape, sizeof shape, "%lld x %lld", member_count(tensor, "rows"),
             member_count(tensor, "columns"));
    write_number(tensor, "norm", "%.4g", norm, sizeof norm);
    write_number(tensor, "gradient_norm", "%.4g", gradient, sizeof gradient);
    put_name(out, colors, member_text(tensor, "name"), 23);
    fprintf(out, " %20s %10s %10s\n", shape, norm, gradient);
}

/* ---- commands that came to no model ---- */

#define INVOCATIONS_SHOWN 5

static void print_invocation(const json_t *invocation, FILE *out) {
    char when[CLOCK_MINUTE], *words = invocation_words(invocation);
    clock_minute(member_count(invocation, "began_ms"), when);
    fprintf(out, "%s ", when);
    escape_put(words, out);
    putc('\n', out);
    free(words);
}

/* Those since the last one whose run the table has, the newest of them. */
static void print_invocations(const json_t *list, bool colors) {
    size_t count = json_array_size(list), first = count;
    while (first && invocation_is_news(json_array_get(list, first - 1)))
        first--;
    size_t left_out = count - first > INVOCATIONS_SHOWN ? count - first - INVOCATIONS_SHOWN : 0;
    if (first == count)
        return;
    assert(first + left_out < count && count - first - left_out <= INVOCATIONS_SHOWN);
    terminal_put(stdout, colors, STYLE_HEADING, "commands since then");
    if (left_out)
        printf(" (the last %d; --json has %zu more)", INVOCATIONS_SHOWN, left_out);
    putchar('\n');
    for (size_t i = first + left_out; i < count; i++)
        print_invocation(json_array_get(list, i), stdout);
}

/* How far a sweep, its epochs and the evaluation under way are. */
static void print_course(const json_t *status, FILE *out) {
    const json_t *sweep = json_object_get(status, "sweep");
    const json_t *chosen = json_object_get(status, "chosen");
    const json_t *downpour = json_object_get(status, "downpour");
    const json_t *evaluation = json_object_get(status, "evaluation");
    if (json_is_object(chosen))
        fprintf(out, "sweep %lld: %lld runs\n", member_count(sweep, "number"),
                member_count(sweep, "runs"));
    else if (json_is_object(sweep))
        fprintf(out, "run %lld of %lld of sweep %lld\n", member_count(sweep, "member") + 1,
                member_count(sweep, "runs"), member_count(sweep, "number"));
    chosen_show(chosen, "chosen: ", out);
    if (json_is_object(downpour)) {
        char *line = epochs_line(downpour);
        fprintf(out, "%s\n", line);
        free(line);
    }
    if (json_is_object(chosen)) /* until then the table grows with every look */
        path_show(json_object_get(sweep, "path"), member_text(chosen, "choose_by"), out);
    fprintf(out, "evaluation %lld", member_count(evaluation, "number"));
    if (json_is_integer(json_object_get(evaluation, "chunks")))
        fprintf(out, ": %lld of %lld chunks counted", member_count(evaluation, "counted"),
                member_count(evaluation, "chunks"));
    putc('\n', out);
}

/* Why the gate refused the run's model, or why the run failed; NULL: neither. Free it. */
static char *why_words(const json_t *run) {
    const char *why = json_string_value(json_object_get(run, "why"));
    bool refused = strcmp(member_text(run, "publication"), "refused") == 0;
    return why ? memory_format("%s: %s", refused ? "refused" : "failed", why) : NULL;
}

void report_print_status(const json_t *status, FILE *out, bool colors) {
    char loss[32], gradient[32], holdout[32], accuracy[32];
    write_number(status, "loss", "%.10g", loss, sizeof loss);
    write_number(status, "gradient_max", "%.3g", gradient, sizeof gradient);
    write_number(status, "holdout_loss", "%.10g", holdout, sizeof holdout);
    write_number(status, "holdout_accuracy", "%.5g", accuracy, sizeof accuracy);
    print_head(status, out, colors);
    fprintf(out, "step %lld: loss %s, gradient %s", member_count(status, "step"), loss, gradient);
    if (json_is_number(json_object_get(status, "holdout_loss")))
        fprintf(out, ", holdout %s", holdout);
    if (json_is_number(json_object_get(status, "holdout_accuracy")))
        fprintf(out, ", accuracy %s", accuracy);
    if (json_is_integer(json_object_get(status, "nonzero")))
        fprintf(out, ", %lld weights not zero", member_count(status, "nonzero"));
    putc('\n', out);
    print_course(status, out);
    char *why = why_words(status);
    if (why) {
        escape_put(why, out);
        putc('\n', out);
    }
    free(why);
    if (strcmp(member_text(status, "state"), "interrupted") == 0)
        fputs("the coordinator of this run was lost; the same command resumes the run, at the "
              "point of the loss if evaluations take over 100 ms and the workers still wait, "
              "otherwise from the last durable step\n",
              out);
    if (invocation_is_news(json_object_get(status, "invocation"))) {
        fputs("last command: ", out);
        print_invocation(json_object_get(status, "invocation"), out);
    }
    print_table(json_object_get(status, "tensors"),
                "tensor                                 shape       norm   gradient", print_tensor,
                out, colors);
    print_processes(json_object_get(status, "processes"), out, colors);
    print_table(json_object_get(status, "hosts"),
                "host                   state         workers failures  last failure", print_host,
                out, colors);
}

/* The marks after the number of a run, by its publication. */
static const struct mark {
    const char *publication, *meaning;
    char mark;
} marks[] = {{"live", "live", '*'},
             {"pending", "publication was interrupted: repeat the command", '+'},
             {"refused", "refused by the gate", '!'},
             {"kept", "kept, not live: `publish RUN`", '-'}};
enum { MARKS = sizeof marks / sizeof marks[0] };

static char mark_of(const json_t *run) {
    const char *publication = member_text(run, "publication");
    for (unsigned i = 0; i < MARKS; i++)
        if (strcmp(publication, marks[i].publication) == 0)
            return marks[i].mark;
    return ' ';
}

static void print_marks(const json_t *runs) {
    size_t i;
    json_t *run;
    const char *between = "";
    for (unsigned k = 0; k < MARKS; k++) {
        bool used = false;
        json_array_foreach(runs, i, run) used |= mark_of(run) == marks[k].mark;
        if (used)
            printf("%s%c %s", between, marks[k].mark, marks[k].meaning);
        between = used ? "   " : between;
    }
    if (*between)
        putchar('\n');
}

static void print_run(const json_t *run, bool colors) {
    char started[CLOCK_MINUTE], duration[16], loss[32];
    const char *reason = member_text(run, "reason"), *hash = member_text(run, "model_sha256");
    clock_minute(member_count(run, "started_ms"), started);
    write_duration(json_number_value(json_object_get(run, "seconds")), duration, sizeof duration);
    write_number(run, "loss", "%.5g", loss, sizeof loss);
    if (strcmp(reason, "-") == 0)
        reason = member_text(run, "state");
    printf("%4lld%c %-16s %6s %5lld %6lld %10s ", member_count(run, "run"), mark_of(run), started,
           duration, member_count(run, "steps"), member_count(run, "evaluations"), loss);
    terminal_put_cell(stdout, colors, style_of(reason), reason, 18);
    printf(" %.7s\n", hash);
}

#define NOTE_COLUMNS 74 /* after the indent; a line has 80 */

/* Prints a line below that of a run; nothing if there are no words. */
static void print_note(const char *words, bool colors) {
    if (!*words)
        return;
    fputs("      ", stdout);
    terminal_put_cut(stdout, colors, STYLE_PLAIN, words, room_for(NOTE_COLUMNS));
    putchar('\n');
}

static void print_changes(json_t *changed, bool colors) {
    char *words = memory_copy_string("");
    const char *key;
    json_t *change;
    json_object_foreach(changed, key, change) {
        const json_t *from = json_object_get(change, "from"), *to = json_object_get(change, "to");
        char *before = json_dumps(from, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        char *now = json_dumps(to, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        /* Data with another content has no values that say something. */
        char *more = strcmp(key, "data") == 0 && json_is_string(from)
                         ? memory_copy_string("the data")
                         : memory_format("%s %s -> %s", key, before, now);
        free(before);
        free(now);
        char *all = memory_format("%s%s%s", words, *words ? ", " : "changed: ", more);
        free(words);
        free(more);
        words = all;
    }
    print_note(words, colors);
    free(words);
}

/* Some figures; `jobs --json` has them all. */
static void print_run_figures(const json_t *run, const char *over, bool colors) {
    const json_t *figures = json_object_get(run, over);
    char *words = memory_format("%s:", over);
    bool any = false;
    const char *name;
    for (unsigned at = 0; (name = figures_in_line(figures, &at));) {
        char *all = memory_format("%s%s %s %.5g", words, any ? "," : "", name,
                                  member_number(figures, name));
        free(words);
        words = all;
        any = true;
    }
    print_note(any ? words : "", colors);
    free(words);
}

static void print_sweep(const json_t *sweep, bool colors) {
    char fold[32] = "";
    if (member_count(sweep, "fold"))
        snprintf(fold, sizeof fold, ", fold %lld", member_count(sweep, "fold"));
    char *words = memory_format("sweep %lld, run %lld of it%s%s", member_count(sweep, "number"),
                                member_count(sweep, "member") + 1, fold,
                                json_is_true(json_object_get(sweep, "chosen")) ? ": chosen" : "");
    print_note(sweep ? words : "", colors);
    free(words);
}

static void print_run_epochs(const json_t *downpour, bool colors) {
    if (!json_is_object(downpour))
        return;
    char *line = epochs_line(downpour);
    print_note(line, colors);
    free(line);
}

/* What `publish --set` made the model of. */
static void print_derived(const json_t *run, bool colors) {
    const json_t *derived = json_object_get(run, "derived");
    const double threshold = member_number(json_object_get(run, "holdout"), "threshold");
    if (!json_is_object(derived))
        return;
    char *words = derive_words(json_object_get(derived, "set"));
    char *line = isnan(threshold) ? memory_format("the model of run %lld with %s",
                                                  member_count(derived, "run"), words)
                                  : memory_format("the model of run %lld with %s: %.6g",
                                                  member_count(derived, "run"), words, threshold);
    print_note(line, colors);
    free(line);
    free(words);
}

#define MB 1e6

/* The sizes of a run that has more than a tenth of a megabyte. */
static void print_size(const json_t *bytes, bool colors) {
    double model = member_number(bytes, "model") / MB;
    double checkpoints = member_number(bytes, "checkpoints") / MB;
    if (!(model + checkpoints >= 0.1))
        return;
    char *words = memory_format("model %.1f MB, checkpoints %.1f MB", model, checkpoints);
    print_note(words, colors);
    free(words);
}

/* The table of a sweep. */
static void print_sweep_table(const json_t *sweep, bool colors) {
    char heading[96];
    const json_t *chosen = json_object_get(sweep, "chosen");
    long long folds = member_count(sweep, "folds");
    snprintf(heading, sizeof heading, "sweep %lld", member_count(sweep, "number"));
    putchar('\n');
    terminal_put(stdout, colors, STYLE_HEADING, heading);
    if (json_is_object(chosen))
        printf(": %lld runs", member_count(sweep, "runs"));
    else
        printf(": %lld of %lld runs done", member_count(sweep, "done"),
               member_count(sweep, "runs"));
    if (folds)
        printf(", %lld folds", folds);
    putchar('\n');
    chosen_show(chosen, "chosen: ", stdout);
    path_show(json_object_get(sweep, "path"),
              member_text(json_is_object(chosen) ? chosen : sweep, "choose_by"), stdout);
}

/* A member of a sweep that stands for nothing: another one was chosen, and nothing was decided
 * about it. */
static bool is_folded(const json_t *run, const json_t *sweeps) {
    const json_t *place = json_object_get(run, "sweep");
    bool ended = false;
    size_t i;
    json_t *sweep;
    if (!place || json_is_string(json_object_get(run, "publication")))
        return false;
    json_array_foreach(sweeps, i, sweep) ended |=
        member_count(sweep, "number") == member_count(place, "number") &&
        json_is_object(json_object_get(sweep, "chosen"));
    return ended && !json_is_true(json_object_get(place, "chosen"));
}

static void print_run_lines(const json_t *run, bool names_job, bool colors) {
    print_run(run, colors);
    if (names_job) {
        fputs("      job ", stdout);
        escape_put(member_text(run, "job"), stdout);
        putchar('\n');
    }
    /* What people said of the run, and which one it goes on from. */
    const char *tag = json_string_value(json_object_get(run, "tag"));
    const char *note = json_string_value(json_object_get(run, "note"));
    char *said = memory_format("%s%s%s", tag ? tag : "", tag && note ? ": " : "", note ? note : "");
    char origin[64] = "";
    if (member_count(run, "continues"))
        snprintf(origin, sizeof origin, "from the end of run %lld", member_count(run, "continues"));
    print_note(said, colors);
    print_note(origin, colors);
    print_derived(run, colors);
    free(said);
    char *why = why_words(run);
    print_note(why ? why : "", colors);
    free(why);
    print_sweep(json_object_get(run, "sweep"), colors);
    print_changes(json_object_get(run, "changed"), colors);
    print_run_epochs(json_object_get(run, "downpour"), colors);
    print_run_figures(run, "holdout", colors);
    print_run_figures(run, "test", colors);
    print_size(json_object_get(run, "bytes"), colors);
}

void report_print_runs(const json_t *runs, bool folds, bool colors) {
    size_t i, folded = 0;
    json_t *run, *sweep;
    const json_t *sweeps = json_object_get(runs, "sweeps");
    const json_t *bytes = json_object_get(runs, "bytes");
    const json_t *list = json_object_get(runs, "runs");
    bool names_jobs = false; /* a folder may have runs of several jobs, which no column tells */
    json_array_foreach(list, i, run) names_jobs |=
        !json_equal(json_object_get(run, "job"), json_object_get(json_array_get(list, 0), "job"));
    char heading[96];
    snprintf(heading, sizeof heading, "%4s  %-16s %6s %5s %6s %10s %-18s %s", "run", "started",
             "time", "steps", "evals", "loss", "ended", "model");
    terminal_put(stdout, colors, STYLE_HEADING, heading);
    putchar('\n');
    json_array_foreach(list, i, run) {
        if (!folds && is_folded(run, sweeps))
            folded++;
        else
            print_run_lines(run, names_jobs, colors);
    }
    if (folded)
        printf("%zu more run%s of sweeps: --folds lists %s\n", folded, folded == 1 ? "" : "s",
               folded == 1 ? "it" : "them");
    print_marks(list);
    json_array_foreach(sweeps, i, sweep) print_sweep_table(sweep, colors);
    print_invocations(json_object_get(runs, "invocations"), colors);
    if (bytes)
        printf("%.1f MB: models %.1f, checkpoints %.1f, data %.1f\n",
               member_number(bytes, "all") / MB, member_number(bytes, "models") / MB,
               member_number(bytes, "checkpoints") / MB, member_number(bytes, "data") / MB);
}

#include "base/failpoint.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

enum { RULES_MAX = 32, DELAY_MS = 100, NOWHERE = FAILPOINTS_MAX };

enum action { ACTION_KILL, ACTION_STOP, ACTION_EIO, ACTION_ENOSPC, ACTION_DELAY, ACTION_HIT };
static const char *const action_names[] = {"kill", "stop", "eio", "enospc", "delay", "hit"};
static const char *const kind_names[] = {"place", "write", "switch"};

struct failpoint_rule {
    char role[16]; /* "": any */
    long index;    /* −1: any */
    unsigned failpoint;
    unsigned after; /* only visits after this failpoint's first count; NOWHERE: all do */
    unsigned long visit;
    enum action action;
    long delay_ms;
};

bool failpoint_armed;

static const struct failpoint_row own_rows[] = {
#define FAILPOINT(name, kind, text) [FAILPOINT_##name] = {#name, FAILPOINT_##kind, text},
#include "base/failpoint.def"
};

static const struct failpoint_row *more_rows;
static unsigned more_count;
static struct failpoint_rule rules[RULES_MAX];
static unsigned rule_count;
static atomic_ulong visits[FAILPOINTS_MAX];
static atomic_ulong visits_after[RULES_MAX]; /* of the rule's failpoint, after its `after` */
static const char *log_path, *once_path;
static const char *own_role = "";
static atomic_long own_index = -1;

static unsigned rows_count(void) {
    return FAILPOINTS + more_count;
}

static const struct failpoint_row *row_of(unsigned failpoint) {
    assert(failpoint < rows_count());
    return failpoint < FAILPOINTS ? &own_rows[failpoint] : &more_rows[failpoint - FAILPOINTS];
}

void failpoint_list(FILE *out) {
    for (unsigned i = 0; i < rows_count(); i++)
        fprintf(out, "%-22s %-6s %s\n", row_of(i)->name, kind_names[row_of(i)->kind],
                row_of(i)->text);
}

void failpoint_identify(unsigned index) {
    atomic_store(&own_index, (long)index);
}

/* ---- visits ---- */

static void log_visit(const struct failpoint_row *row) {
    char line[128];
    long index = atomic_load(&own_index);
    int length = index < 0 ? snprintf(line, sizeof line, "%s.%s\n", own_role, row->name)
                           : snprintf(line, sizeof line, "%s%ld.%s\n", own_role, index, row->name);
    int descriptor = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0 || write(descriptor, line, (size_t)length) != length)
        fprintf(stderr, "dml: cannot write %s\n", log_path);
    if (descriptor >= 0)
        close(descriptor);
}

static bool applies(const struct failpoint_rule *rule, unsigned failpoint, unsigned long visit) {
    if (rule->failpoint != failpoint)
        return false;
    if (rule->after != NOWHERE) /* the rule counts visits after the first one there */
        visit = atomic_load(&visits[rule->after])
                    ? atomic_fetch_add(&visits_after[rule - rules], 1) + 1
                    : 0;
    return visit == rule->visit && (!*rule->role || !strcmp(rule->role, own_role)) &&
           (rule->index < 0 || rule->index == atomic_load(&own_index));
}

/* A signal that asks the process to end cuts it short; the end of a child does not. */
static void delay(long milliseconds) {
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    nanosleep(
        &(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000},
        NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int act(const struct failpoint_rule *rule) {
    if (once_path) {
        /* Several processes may race here with the same rule: O_EXCL lets exactly one of them make
         * the file. */
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s.%d", once_path, (int)(rule - rules));
        int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (descriptor < 0)
            return 0;
        close(descriptor);
    }
    switch (rule->action) {
    case ACTION_KILL:
        raise(SIGKILL);
        break;
    case ACTION_STOP:
        raise(SIGSTOP);
        break;
    case ACTION_EIO:
        return errno = EIO;
    case ACTION_ENOSPC:
        return errno = ENOSPC;
    case ACTION_DELAY:
        delay(rule->delay_ms);
        break;
    case ACTION_HIT:
        return 1;
    }
    return 0;
}

int failpoint_visit(unsigned failpoint) {
    assert(failpoint < FAILPOINTS_MAX);
    unsigned long visit = atomic_fetch_add(&visits[failpoint], 1) + 1;
    int answer = 0;
    if (visit == 1 && log_path)
        log_visit(row_of(failpoint));
    for (unsigned i = 0; i < rule_count; i++)
        if (applies(&rules[i], failpoint, visit))
            answer = act(&rules[i]);
    return answer;
}

/* ---- the environment ---- */

static int failpoint_refuse(const char *text, const char *why) {
    return error_set(ERROR_USAGE,
                     "DML_FAILPOINT: %s: %s; write [ROLE[INDEX].]NAME[@NAME]:N:"
                     "kill|stop|eio|enospc|delay[:MS]|hit",
                     text, why);
}

static int failpoint_refuse_name(const char *text, const char *name) {
    char *known = memory_copy_string("");
    for (unsigned i = 0; i < rows_count(); i++) {
        char *longer = memory_format("%s %s", known, row_of(i)->name);
        free(known);
        known = longer;
    }
    int code = error_set(ERROR_USAGE, "DML_FAILPOINT: %s: there is no failpoint `%s`; there are:%s",
                         text, name, known);
    free(known);
    return code;
}

/* Takes "shard0." off the front of *name. */
static bool read_role(char **name, struct failpoint_rule *rule) {
    rule->index = -1;
    char *dot = strchr(*name, '.');
    if (!dot)
        return true;
    size_t length = strcspn(*name, "0123456789.");
    if (!length || length >= sizeof rule->role)
        return false;
    memcpy(rule->role, *name, length);
    char *end = *name + length;
    if (end != dot)
        rule->index = strtol(end, &end, 10);
    *name = dot + 1;
    return end == dot;
}

static bool read_rule_number(const char *text, long *number) {
    char *end;
    errno = 0;
    *number = text ? strtol(text, &end, 10) : 0;
    return text && !errno && end != text && !*end && *number > 0;
}

/* rows_count() if there is none. */
static unsigned failpoint_number(const char *name) {
    unsigned failpoint = 0;
    while (failpoint < rows_count() && strcmp(row_of(failpoint)->name, name))
        failpoint++;
    return failpoint;
}

/* NAME, or NAME@NAME, which is cut up. */
static int read_place(const char *text, char *name, struct failpoint_rule *rule) {
    char *at = strchr(name, '@');
    if (at)
        *at++ = '\0';
    rule->failpoint = failpoint_number(name);
    rule->after = at ? failpoint_number(at) : NOWHERE;
    if (rule->failpoint == rows_count())
        return failpoint_refuse_name(text, name);
    return rule->after == rows_count() ? failpoint_refuse_name(text, at) : 0;
}

/* Cuts `copy` up; `text` is what it was. */
static int read_rule(const char *text, char *copy) {
    if (rule_count == RULES_MAX)
        return failpoint_refuse(text, "too many of them");
    struct failpoint_rule *rule = &rules[rule_count];
    char *rest = NULL, *name = strtok_r(copy, ":", &rest), *visit = strtok_r(NULL, ":", &rest),
         *action = strtok_r(NULL, ":", &rest), *delay = strtok_r(NULL, ":", &rest);
    long number;
    *rule = (struct failpoint_rule){.delay_ms = DELAY_MS};
    if (!name || !read_role(&name, rule))
        return failpoint_refuse(text, "not a place");
    if (read_place(text, name, rule))
        return ERROR_USAGE;
    if (!read_rule_number(visit, &number))
        return failpoint_refuse(text, "visits count from 1");
    rule->visit = (unsigned long)number;
    const unsigned actions = sizeof action_names / sizeof *action_names;
    unsigned found = 0;
    while (found < actions && (!action || strcmp(action, action_names[found])))
        found++;
    if (found == actions)
        return failpoint_refuse(text, "not an action");
    rule->action = (enum action)found;
    enum failpoint_kind kind = row_of(rule->failpoint)->kind;
    bool fails = rule->action == ACTION_EIO || rule->action == ACTION_ENOSPC;
    if (fails ? kind != FAILPOINT_WRITE
              : (rule->action == ACTION_HIT) != (kind == FAILPOINT_SWITCH))
        return failpoint_refuse(text, "this failpoint cannot do that");
    if (delay && (rule->action != ACTION_DELAY || !read_rule_number(delay, &rule->delay_ms)))
        return failpoint_refuse(text, "only `delay` takes a number more, of milliseconds");
    rule_count++;
    return 0;
}

static int read_rules(const char *text) {
    char *copy = memory_copy_string(text), *rest = NULL;
    int code = 0;
    for (char *one = strtok_r(copy, ",", &rest); one && !code; one = strtok_r(NULL, ",", &rest)) {
        char *whole = memory_copy_string(one);
        code = read_rule(whole, one);
        free(whole);
    }
    free(copy);
    return code;
}

int failpoint_setup(const char *role, const struct failpoint_row *rows, unsigned count) {
    assert(FAILPOINTS + count <= FAILPOINTS_MAX);
    own_role = role;
    more_rows = rows;
    more_count = count;
    rule_count = 0;
    for (unsigned i = 0; i < FAILPOINTS_MAX; i++)
        atomic_store(&visits[i], 0);
    for (unsigned i = 0; i < RULES_MAX; i++)
        atomic_store(&visits_after[i], 0);
    const char *wanted = getenv("DML_FAILPOINT");
    log_path = getenv("DML_FAILPOINT_LOG");
    once_path = getenv("DML_FAILPOINT_ONCE");
    int code = wanted ? read_rules(wanted) : 0;
    failpoint_armed = !code && (rule_count || log_path);
    return code;
}

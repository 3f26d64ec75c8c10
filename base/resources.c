#define _GNU_SOURCE
#include "base/resources.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

/* ---- control groups: the limits of containers, services and batch jobs ---- */

#define TEXT_BYTES_MAX 65536
#define GROUPS_ROOT "/sys/fs/cgroup"

/* A value of the group whose folder that is; 0: none. */
typedef double group_value(const char *folder);

/* "" if it cannot be read. */
static char *text_of(const char *path) {
    char *text;
    size_t length;
    if (file_read(path, TEXT_BYTES_MAX, &text, &length) == 0)
        return text;
    error_clear();
    return memory_copy_string("");
}

static char *groups_own(void) {
    return text_of("/proc/self/cgroup");
}

static char *group_text(const char *folder, const char *name) {
    char *path = path_join(folder, name), *text = text_of(path);
    free(path);
    return text;
}

static double group_number(const char *folder, const char *name) {
    char *text = group_text(folder, name);
    double number = strtod(text, NULL);
    free(text);
    return number;
}

static double smaller(double a, double b) {
    return a > 0 && (!(b > 0) || a < b) ? a : b;
}

/* The least value of a group ("/a/b") and of all groups above it, or the nearest. Within a
 * container the group's folder may be missing: then `root` itself is the container's group. */
static double value_up(const char *root, const char *group, size_t length, group_value *value,
                       bool nearest) {
    double found = 0;
    char *folder = memory_format("%s%.*s", root, (int)length, group);
    for (size_t end = strlen(folder); end >= strlen(root) && !(nearest && found > 0); end--)
        if (end == strlen(root) || folder[end] == '/' || !folder[end]) {
            folder[end] = '\0';
            found = smaller(value(folder), found);
        }
    free(folder);
    return found;
}

/* Whether it is among the controllers of a line of version 1: "cpu,cpuacct". */
static bool has_controller(const char *controllers, size_t length, const char *controller) {
    size_t own = strlen(controller);
    for (const char *at = controllers; at < controllers + length; at += strcspn(at, ",:") + 1)
        if (strncmp(at, controller, own) == 0 && (at[own] == ',' || at[own] == ':'))
            return true;
    return false;
}

/* The least value above 0 of the groups that `groups` (groups_own()) names for a controller, and of
 * all groups above these; `nearest`: the first one upwards from the group itself. 0: there is none.
 * Version 2 has one hierarchy at `root`, version 1 one a controller below it. */
static double value_of_groups(const char *root, const char *groups, const char *controller,
                              group_value *value, bool nearest) {
    double found = 0;
    for (const char *line = groups; *line; line += strcspn(line, "\n"), line += *line != 0) {
        const char *controllers = strchr(line, ':');
        const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group > line + strcspn(line, "\n"))
            continue;
        size_t names = (size_t)(group - controllers - 1), length = strcspn(group + 1, "\n");
        if (names && !has_controller(controllers + 1, names, controller))
            continue;
        char *mount = names ? memory_format("%s/%.*s", root, (int)names, controllers + 1)
                            : memory_copy_string(root);
        found = smaller(value_up(mount, group + 1, length, value, nearest), found);
        free(mount);
    }
    return found;
}

/* ---- memory ---- */

/* Version 1 says so, about, if there is no limit. */
#define LIMIT_NONE 1e18

static struct memory_limit tighter(struct memory_limit a, struct memory_limit b) {
    return b.bytes < a.bytes ? b : a;
}

static struct memory_limit resource_limit(__rlimit_resource_t resource, const char *set) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return (struct memory_limit){INFINITY, set};
    return (struct memory_limit){(double)limit.rlim_cur, set};
}

struct memory_limit memory_limit_of_process(void) {
    return tighter(resource_limit(RLIMIT_AS, "ulimit -v"),
                   resource_limit(RLIMIT_DATA, "ulimit -d"));
}

static double limit_of_group(const char *folder) {
    double bytes = group_number(folder, "memory.max");
    if (!(bytes > 0))
        bytes = group_number(folder, "memory.limit_in_bytes");
    return bytes < LIMIT_NONE ? bytes : 0;
}

double memory_limit_of_groups(const char *root, const char *groups) {
    return value_of_groups(root, groups, "memory", limit_of_group, false);
}

/* The number after a word at the beginning of a line; below 0: there is none. */
static double behind(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, word, length) == 0 && strchr(" :\t", line[length]) && line[length])
            return strtod(line + length + 1, NULL);
    return -1;
}

struct memory_limit memory_limit_of_all(void) {
    char *groups = groups_own(), *machine = group_text("/proc", "meminfo");
    double group = memory_limit_of_groups(GROUPS_ROOT, groups);
    double available = behind(machine, "MemAvailable");
    struct memory_limit found = {group > 0 ? group : INFINITY, "the control group"};
    if (available >= 0)
        found =
            tighter(found, (struct memory_limit){available * 1024, "what the machine has free"});
    free(groups);
    free(machine);
    return found;
}

/* One more than there were, as 0 is for a group that does not count. */
static double kills_of_group(const char *folder) {
    char *text = group_text(folder, "memory.events");
    if (!*text) {
        free(text);
        text = group_text(folder, "memory.oom_control");
    }
    double kills = behind(text, "oom_kill");
    free(text);
    return kills + 1;
}

uint64_t memory_kills_of_groups(const char *root, const char *groups) {
    return (uint64_t)value_of_groups(root, groups, "memory", kills_of_group, true);
}

uint64_t memory_kills(void) {
    char *groups = groups_own(), *machine = group_text("/proc", "vmstat");
    uint64_t kills = memory_kills_of_groups(GROUPS_ROOT, groups);
    double all = behind(machine, "oom_kill");
    free(groups);
    free(machine);
    return kills ? kills : all > 0 ? (uint64_t)all : 0;
}

const char *memory_words(double bytes) {
    static _Thread_local char words[4][32];
    static _Thread_local unsigned next;
    char *text = words[next++ % 4];
    if (bytes >= 1e9)
        snprintf(text, sizeof words[0], "%.1f GB", bytes / 1e9);
    else
        snprintf(text, sizeof words[0], "%.0f MB", bytes / 1e6);
    return text;
}

/* A run on small data takes half of this; its threads may have arenas of their own. */
#define NEEDED_BYTES ((size_t)64 << 20)

int memory_suffices(void) {
    void *start = mmap(NULL, NEEDED_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return error_set(ERROR_UNAVAILABLE,
                         "%zu MiB of address space are needed and cannot be had: raise the limit "
                         "(ulimit -v), or make memory free",
                         NEEDED_BYTES >> 20);
    munmap(start, NEEDED_BYTES);
    return 0;
}

/* ---- CPUs ---- */

#define MASK_CPUS_MAX 65536 /* far beyond what a kernel is built for */

/* How many CPUs' worth of time one group may use; 0: no limit. Version 2 of control groups has the
 * file cpu.max with "QUOTA PERIOD" or "max PERIOD"; version 1 has a file for each number, and a
 * quota of −1 means no limit. */
static double quota_of(const char *folder) {
    double quota = 0, period = 0;
    char *text = group_text(folder, "cpu.max");
    if (sscanf(text, "%lf %lf", &quota, &period) != 2) {
        quota = group_number(folder, "cpu.cfs_quota_us");
        period = group_number(folder, "cpu.cfs_period_us");
    }
    free(text);
    return quota > 0 && period > 0 ? quota / period : 0;
}

unsigned cpus_quota(const char *root, const char *groups) {
    double least = value_of_groups(root, groups, "cpu", quota_of, false);
    return least > 0 && least < 1 ? 1 : (unsigned)least;
}

unsigned cpus_usable(void) {
    /* The mask: larger and larger sets are tried, as the kernel refuses one smaller than its own.
     */
    unsigned masked = 0;
    for (int cpus = CPU_SETSIZE; !masked && cpus <= MASK_CPUS_MAX; cpus *= 2) {
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (set && sched_getaffinity(0, size, set) == 0)
            masked = (unsigned)CPU_COUNT_S(size, set);
        CPU_FREE(set);
    }
    masked = masked ? masked : 1;
    char *groups = groups_own();
    unsigned quota = cpus_quota(GROUPS_ROOT, groups);
    free(groups);
    return quota && quota < masked ? quota : masked;
}

#include "base/memory_limit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/groups.h"

/* Version 1 says so, about, if there is no limit. */
#define LIMIT_NONE 1e18

static struct memory_limit smaller(struct memory_limit a, struct memory_limit b) {
    return b.bytes < a.bytes ? b : a;
}

static struct memory_limit resource_limit(int resource, const char *set) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return (struct memory_limit){INFINITY, set};
    return (struct memory_limit){(double)limit.rlim_cur, set};
}

struct memory_limit memory_limit_of_process(void) {
    return smaller(resource_limit(RLIMIT_AS, "ulimit -v"),
                   resource_limit(RLIMIT_DATA, "ulimit -d"));
}

static double limit_of_group(const char *folder) {
    double bytes = groups_number(folder, "memory.max");
    if (!(bytes > 0))
        bytes = groups_number(folder, "memory.limit_in_bytes");
    return bytes < LIMIT_NONE ? bytes : 0;
}

double memory_limit_of_groups(const char *root, const char *groups) {
    return groups_least(root, groups, "memory", limit_of_group);
}

/* The number behind a word at the beginning of a line; below 0: there is none. */
static double behind(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, word, length) == 0 && strchr(" :\t", line[length]) && line[length])
            return strtod(line + length + 1, NULL);
    return -1;
}

struct memory_limit memory_limit_of_all(void) {
    char *groups = groups_own(), *machine = groups_text("/proc", "meminfo");
    double group = memory_limit_of_groups(GROUPS_ROOT, groups);
    double available = behind(machine, "MemAvailable");
    struct memory_limit found = {group > 0 ? group : INFINITY, "the control group"};
    if (available >= 0)
        found =
            smaller(found, (struct memory_limit){available * 1024, "what the machine has free"});
    free(groups);
    free(machine);
    return found;
}

/* One more than there were, as 0 is for a group that does not count. */
static double kills_of_group(const char *folder) {
    char *text = groups_text(folder, "memory.events");
    if (!*text) {
        free(text);
        text = groups_text(folder, "memory.oom_control");
    }
    double kills = behind(text, "oom_kill");
    free(text);
    return kills + 1;
}

uint64_t memory_kills_of_groups(const char *root, const char *groups) {
    return (uint64_t)groups_nearest(root, groups, "memory", kills_of_group);
}

uint64_t memory_kills(void) {
    char *groups = groups_own(), *machine = groups_text("/proc", "vmstat");
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

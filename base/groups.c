#include "base/groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

#define TEXT_BYTES_MAX 65536

static char *text_of(const char *path) {
    char *text;
    size_t length;
    if (file_read(path, TEXT_BYTES_MAX, &text, &length) == 0)
        return text;
    error_clear();
    return memory_copy_string("");
}

char *groups_own(void) {
    return text_of("/proc/self/cgroup");
}

char *groups_text(const char *folder, const char *name) {
    char *path = path_join(folder, name), *text = text_of(path);
    free(path);
    return text;
}

double groups_number(const char *folder, const char *name) {
    char *text = groups_text(folder, name);
    double number = strtod(text, NULL);
    free(text);
    return number;
}

static double smaller(double a, double b) {
    return a > 0 && (!(b > 0) || a < b) ? a : b;
}

/* Of a group ("/a/b") and of all groups above it. Within a container the group's folder may be
 * missing: then `root` itself is the container's group. */
static double value_up(const char *root, const char *group, size_t length, groups_value *value,
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

static double find(const char *root, const char *groups, const char *controller,
                   groups_value *value, bool nearest) {
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

double groups_least(const char *root, const char *groups, const char *controller,
                    groups_value *value) {
    return find(root, groups, controller, value, false);
}

double groups_nearest(const char *root, const char *groups, const char *controller,
                      groups_value *value) {
    return find(root, groups, controller, value, true);
}

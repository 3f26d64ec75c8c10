#include "device/choose.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/device_choice.h"
#include "base/error.h"
#include "base/log.h"
#include "device/find.h"

/* Whether `auto` takes the emulated device. */
static bool emulates(void) {
    const char *text = getenv("DML_AUTO_DEVICE");
    return text && !strcmp(text, "emulated");
}

static void let_go(struct device **device) {
    device_close(*device);
    *device = NULL;
}

/* The name tells devices apart: it has the number. */
static bool is_open(const struct device *device, const struct device_found *found) {
    uint64_t bytes;
    return device && !device_is_lost(device) &&
           !strcmp(device_name(device), device_describe(found->kind, found->number, &bytes));
}

static int open_anew(const struct device_wish *wish, const struct device_found *found,
                     struct device **device) {
    let_go(device);
    int code = device_open(found->kind, found->number, device);
    if (!code)
        code = wish->prove(*device);
    if (!code)
        log_info("computes on %s", device_name(*device));
    return code;
}

static int open_and_use(const struct device_wish *wish, const struct device_found *found,
                        struct device **device) {
    int code = is_open(*device, found) ? 0 : open_anew(wish, found, device);
    if (!code && wish->use)
        code = wish->use(wish->context, *device);
    if (code)
        let_go(device);
    return code;
}

/* What is said of the processor is said once for each reason, which is a constant. */
static void say_cpu(enum log_level level, const char *why) {
    static const char *said;
    if (why != said)
        log_at(level, "computes on the CPU: %s", why);
    said = why;
}

/* Why no GPU is looked for, however many there are; NULL: one is. */
static const char *objection(const struct device_wish *wish) {
    if (wish->cannot)
        return wish->cannot;
    return wish->pays || emulates() ? NULL : "the work is too small for a GPU to pay";
}

/* Whether it is of interest that a GPU was not looked for: here may be one. */
static enum log_level interest(void) {
    return access("/dev/nvidiactl", F_OK) ? LOG_DEBUG : LOG_INFO;
}

/* Looking for a GPU wakes the driver, which may take seconds: only work that wants one waits. */
static int choose_freely(const struct device_wish *wish, struct device **device) {
    const struct device_choice gpu = {emulates() ? CHOICE_EMULATED : CHOICE_AUTO, -1};
    struct device_found found;
    const char *none = "", *why = objection(wish);
    if (why) {
        let_go(device);
        say_cpu(interest(), why);
    } else if (device_find(&gpu, wish->index, &found) || !found.any) {
        error_clear();
        let_go(device);
        if (!device_count(DEVICE_CUDA, &none))
            say_cpu(LOG_DEBUG, none);
    } else if (open_and_use(wish, &found, device)) {
        log_warning("computes on the CPU, as the device cannot be used: %s", error_text());
        error_clear();
    }
    return 0;
}

static int choose_as_asked(const struct device_wish *wish, const char *asked,
                           const struct device_choice *choice, struct device **device) {
    struct device_found found;
    int code = 0;
    if (wish->cannot)
        code = error_set(ERROR_CONFIG,
                         "device %s: %s; choose `cpu`, or `auto`, which takes a GPU "
                         "only where that can do the work",
                         asked, wish->cannot);
    else if (device_find(choice, wish->index, &found))
        code = ERROR_CONFIG; /* it will not be there at the next try either */
    if (!code)
        return open_and_use(wish, &found, device);
    let_go(device);
    return code;
}

static const char *asked_of(const struct device_wish *wish) {
    return wish->own ? wish->own : wish->asked;
}

bool device_wish_is_free(const struct device_wish *wish) {
    struct device_choice choice;
    return device_choice_read(asked_of(wish), &choice) && choice.kind == CHOICE_AUTO;
}

int device_choose(const struct device_wish *wish, struct device **device) {
    const char *asked = asked_of(wish);
    struct device_choice choice = {CHOICE_CPU, -1};
    bool known = device_choice_read(asked, &choice);
    if (choice.kind == CHOICE_AUTO)
        return choose_freely(wish, device);
    if (choice.kind != CHOICE_CPU)
        return choose_as_asked(wish, asked, &choice, device);
    let_go(device);
    return known ? 0 : error_set(ERROR_CONFIG, "device %s: not one of " DEVICE_CHOICES, asked);
}

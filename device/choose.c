#include "device/choose.h"

#include <stdlib.h>
#include <string.h>

#include "base/device_choice.h"
#include "base/error.h"
#include "base/log.h"
#include "device/find.h"

/* Whether `auto` takes the emulated device. */
static bool emulates(void) {
    const char *text = getenv("DML_AUTO_DEVICE");
    return text && !strcmp(text, "emulated");
}

static int open_and_use(const struct device_found *found, device_user *use, void *context,
                        struct device **device) {
    int code = device_open(found->kind, found->number, device);
    if (!code)
        code = use(context, *device);
    if (code) {
        device_close(*device);
        *device = NULL;
    } else {
        log_info("computes on %s", device_name(*device));
    }
    return code;
}

/* Why there is no GPU is said once: it does not change. */
static void say_no_gpu(void) {
    static bool said;
    const char *why = "";
    if (!said && !device_count(DEVICE_CUDA, &why))
        log_debug("computes on the CPU: %s", why);
    said = true;
}

/* Why a GPU that is there is not taken; NULL: it is taken. */
static const char *objection(const struct device_wish *wish, bool emulated) {
    if (wish->cannot)
        return wish->cannot;
    return wish->pays || emulated ? NULL : "the work is too small for a GPU to pay";
}

static int choose_freely(const struct device_wish *wish, device_user *use, void *context,
                         struct device **device) {
    const struct device_choice gpu = {emulates() ? CHOICE_EMULATED : CHOICE_AUTO, -1};
    struct device_found found;
    if (device_find(&gpu, wish->index, &found) || !found.any) {
        error_clear();
        say_no_gpu();
        return 0;
    }
    const char *why = objection(wish, found.kind == DEVICE_EMULATED);
    if (why) {
        log_info("computes on the CPU: %s", why);
    } else if (open_and_use(&found, use, context, device)) {
        log_warning("computes on the CPU, as the device cannot be used: %s", error_text());
        error_clear();
    }
    return 0;
}

static int choose_as_asked(const struct device_wish *wish, const char *asked,
                           const struct device_choice *choice, device_user *use, void *context,
                           struct device **device) {
    struct device_found found;
    if (wish->cannot)
        return error_set(ERROR_CONFIG,
                         "device %s: %s; choose `cpu`, or `auto`, which takes a GPU "
                         "only where that can do the work",
                         asked, wish->cannot);
    if (device_find(choice, wish->index, &found))
        return ERROR_CONFIG; /* it will not be there at the next try either */
    return open_and_use(&found, use, context, device);
}

int device_choose(const struct device_wish *wish, device_user *use, void *context,
                  struct device **device) {
    const char *asked = wish->own ? wish->own : wish->asked;
    struct device_choice choice;
    *device = NULL;
    if (!device_choice_read(asked, &choice))
        return error_set(ERROR_CONFIG, "device %s: not one of " DEVICE_CHOICES, asked);
    if (choice.kind == CHOICE_CPU)
        return 0;
    if (choice.kind == CHOICE_AUTO)
        return choose_freely(wish, use, context, device);
    return choose_as_asked(wish, asked, &choice, use, context, device);
}

#include "device/find.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

static const char *const names[] = {
    [CHOICE_AUTO] = "auto",
    [CHOICE_CPU] = "cpu",
    [CHOICE_CUDA] = "cuda",
    [CHOICE_EMULATED] = "emulated",
};

/* Digits to the end; −1 if there is anything else, or too large a number. */
static int read_number(const char *text) {
    int number = 0;
    for (const char *at = text; *at; at++) {
        if (!isdigit((unsigned char)*at))
            return -1;
        number = number * 10 + (*at - '0');
        if (number > DEVICE_NUMBER_MAX)
            return -1;
    }
    return *text ? number : -1;
}

bool device_choice_read(const char *text, struct device_choice *choice) {
    static const char numbered[] = "cuda:";
    if (!text || !*text)
        text = names[CHOICE_AUTO];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i])) {
            *choice = (struct device_choice){(enum device_choice_kind)i, -1};
            return true;
        }
    if (strncmp(text, numbered, sizeof numbered - 1) != 0)
        return false;
    int number = read_number(text + sizeof numbered - 1);
    if (number < 0)
        return false;
    *choice = (struct device_choice){CHOICE_CUDA, number};
    return true;
}

#define GIB (UINT64_C(1) << 30)

int device_find(const struct device_choice *choice, uint32_t index, struct device_found *found) {
    const char *why = "";
    *found = (struct device_found){0};
    if (choice->kind == CHOICE_CPU)
        return 0;
    if (choice->kind == CHOICE_EMULATED) {
        *found = (struct device_found){.any = true, .kind = DEVICE_EMULATED};
        return 0;
    }
    unsigned count = device_count(DEVICE_CUDA, &why);
    if (choice->kind == CHOICE_CUDA && !count)
        return error_set(ERROR_UNAVAILABLE,
                         "device cuda: there is none here: %s; take `cpu`, or `auto`, which takes "
                         "a GPU only where there is one",
                         why);
    if (choice->number >= 0 && (unsigned)choice->number >= count)
        return error_set(ERROR_UNAVAILABLE,
                         "device cuda:%d: this machine has %u GPU%s, numbered from cuda:0; "
                         "`dml-replica --devices` lists %s",
                         choice->number, count, count == 1 ? "" : "s", count == 1 ? "it" : "them");
    if (count)
        *found = (struct device_found){
            true, DEVICE_CUDA, choice->number >= 0 ? (unsigned)choice->number : index % count};
    return 0;
}

void device_list(FILE *out) {
    const char *why = "";
    unsigned count = device_count(DEVICE_CUDA, &why);
    for (unsigned i = 0; i < count; i++) {
        uint64_t bytes;
        const char *name = device_describe(DEVICE_CUDA, i, &bytes);
        char *unchecked = device_unchecked(DEVICE_CUDA, i);
        fprintf(out, "%s, %" PRIu64 " GiB%s%s\n", name, bytes / GIB,
                unchecked ? "; not for `auto`: " : "", unchecked ? unchecked : "");
        free(unchecked);
    }
    if (!count)
        fprintf(out, "no GPU: %s\n", why);
}

/* ---- choosing ---- */

/* For tests: whether `auto` takes the emulated device in place of a GPU. */
static bool emulates(void) {
    const char *text = getenv("DML_AUTO_DEVICE");
    return text && !strcmp(text, "emulated");
}

char *device_find_auto(uint32_t index, struct device_found *found) {
    const struct device_choice any = {emulates() ? CHOICE_EMULATED : CHOICE_AUTO, -1};
    const char *none = "";
    if (!device_find(&any, index, found) && found->any)
        return device_unchecked(found->kind, found->number);
    error_clear();
    (void)device_count(DEVICE_CUDA, &none);
    return memory_copy_string(none);
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

static int open_and_use(const struct device_wish *wish, const struct device_found *found,
                        struct device **device) {
    int code = 0;
    if (!is_open(*device, found)) {
        let_go(device);
        code = device_open(found->kind, found->number, device);
        if (!code)
            code = wish->prove(*device);
        if (!code)
            log_info("computes on %s", device_name(*device));
    }
    if (!code && wish->use)
        code = wish->use(wish->context, *device);
    if (code)
        let_go(device);
    return code;
}

/* Looking for a GPU wakes the driver, which may take seconds: only work that wants one waits. */
static int choose_freely(const struct device_wish *wish, struct device **device) {
    struct device_found found;
    /* Why no GPU is looked for, however many there are; NULL: one is. */
    const char *unsuited = wish->cannot               ? wish->cannot
                           : wish->pays || emulates() ? NULL
                                                      : "the work is too small for a GPU to pay";
    char *why = unsuited ? memory_copy_string(unsuited) : device_find_auto(wish->index, &found);
    if (why) {
        /* That none was looked for is of interest where there may be one. */
        const bool interesting = unsuited ? !access("/dev/nvidiactl", F_OK) : found.any;
        let_go(device);
        /* What is said of the processor is said once for each reason. */
        static char said[512];
        if (strncmp(why, said, sizeof said - 1) != 0)
            log_at(interesting ? LOG_INFO : LOG_DEBUG, "computes on the CPU: %s", why);
        snprintf(said, sizeof said, "%s", why);
    } else if (open_and_use(wish, &found, device)) {
        log_warning("computes on the CPU, as the device cannot be used: %s", error_text());
        error_clear();
    }
    free(why);
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

#include "base/device_choice.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

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

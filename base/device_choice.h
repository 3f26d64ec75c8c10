/* Which device a worker is to compute on, as users write it: "auto", "cpu", "cuda", "cuda:N" or
 * "emulated". */
#ifndef DML_BASE_DEVICE_CHOICE_H
#define DML_BASE_DEVICE_CHOICE_H

#include <stdbool.h>

enum device_choice_kind {
    CHOICE_AUTO,     /* a GPU if there is one and the work is large enough to pay, else the CPU */
    CHOICE_CPU,      /* the CPU */
    CHOICE_CUDA,     /* a GPU, or an error */
    CHOICE_EMULATED, /* what a GPU would do, in this machine's memory: slow, for tests */
};

#define DEVICE_NUMBER_MAX 1023

struct device_choice {
    enum device_choice_kind kind;
    int number; /* of the GPU; −1: the worker's index modulo the number of GPUs there are */
};

/* Reads a choice; "" and NULL are "auto". False if it is none: *choice is as it was then. */
bool device_choice_read(const char *text, struct device_choice *choice);

/* What device_choice_read() takes, for messages. */
#define DEVICE_CHOICES "`auto`, `cpu`, `cuda`, `cuda:NUMBER` or `emulated`"

#endif

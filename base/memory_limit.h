/* How much memory there may be, and whether somebody was killed for want of it. */
#ifndef DML_BASE_MEMORY_LIMIT_H
#define DML_BASE_MEMORY_LIMIT_H

#include <stdint.h>

struct memory_limit {
    double bytes;    /* infinity: none */
    const char *set; /* where, in words: "ulimit -v" */
};

/* For this process, and each that it starts: addresses, or data. */
struct memory_limit memory_limit_of_process(void);

/* For all processes of this control group, or of this machine: what is available of it now. */
struct memory_limit memory_limit_of_all(void);

/* The least limit of the groups alone, in bytes, as of groups_least(); 0: none. */
double memory_limit_of_groups(const char *root, const char *groups);

/* How many processes of this control group, or of the machine if that does not say, the system has
 * killed so far because memory had run out. */
uint64_t memory_kills(void);

/* The count of the groups alone. */
uint64_t memory_kills_of_groups(const char *root, const char *groups);

/* "1.4 GB". Valid until the fourth next call. */
const char *memory_words(double bytes);

#endif

/* Integer sums in a replica's memory, and what they hold between portions, flushes and evaluations.
 * The layout is that of the current evaluation; its elements are the first. */
#ifndef DML_REPLICA_SUM_H
#define DML_REPLICA_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rows.h"
#include "base/touched.h"

enum sum_state {
    SUM_ZERO,
    SUM_HELD, /* part of the sums that are being accrued */
    SUM_VOID, /* of an accrual that nobody wants any more */
};

/* Elements that rise, and what they are; all others are 0. Zeroed memory: none. */
struct sum_list {
    uint64_t count, capacity;
    uint32_t *element; /* owned, as are their values */
    int64_t *value;
};

struct sum {
    int64_t *element; /* `most` of them; owned */
    uint64_t most;
    enum sum_state state;
    struct touched columns; /* of a sum by parameters that looks: those of the data whose elements
                               it may have, besides what follows the elements of all columns */
    uint64_t weights, end;  /* elements of a column, and of all that sum_look() was told of */
    uint64_t noted;         /* values of the rows that it was told of */
    bool listed;            /* what it holds is in `list`; elements are zero */
    struct sum_list list;   /* stays as it is until another is made */
};

/* Where fewer than a share of the columns are touched, elements are looked up one by one. */
#define SUM_FEW 4

void sum_init(struct sum *sum, uint64_t most);
/* From now on it looks at so many columns, of `weights` elements each, the first of `end`. */
void sum_look(struct sum *sum, uint64_t columns, uint64_t weights, uint64_t end);
void sum_release(struct sum *sum); /* harmless on zeroed memory */

/* What it holds is of no use. */
void sum_void(struct sum *sum);

/* Prepares it for more of what is being accrued. */
void sum_hold(struct sum *sum);

/* Rows of data come next. Where they have too many values it stops looking. */
void sum_note(struct sum *sum, const struct rows *rows);

/* Lists what is held, if it looked at all rows. Best where it was added up last: that processor's
 * cache has it. */
void sum_list(struct sum *sum);

/* Puts it back. */
void sum_unlist(struct sum *sum);

/* Those of elements [first, first + count): a view of the list, with nothing of its own. */
struct sum_list sum_list_part(const struct sum_list *list, uint64_t first, uint64_t count);

/* Several, which are to be added up. */
struct sum_lists {
    const struct sum_list **items;
    unsigned count;
};

/* Adds them up: each element comes once in `all`, which holds none before. */
void sum_lists_add(const struct sum_lists *lists, struct sum_list *all);

void sum_list_release(struct sum_list *list); /* leaves zeroed memory */

/* Writes elements [first, end) of what `count` sums, not listed, hold together to `into`, and
 * zeroes them.
 * Threads may do this at once for ranges of their own; sums_gathered() comes after all of them. */
void sums_gather(struct sum *const *sums, unsigned count, uint64_t first, uint64_t end,
                 int64_t *into);

/* All that they held was gathered: they are zero now. */
void sums_gathered(struct sum *const *sums, unsigned count);

#endif

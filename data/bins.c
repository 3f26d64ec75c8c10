/* Bins of equal shares beside values that are frequent, as gradient boosting has them (Ke et al.
 * 2017, LightGBM). */
#include "data/bins.h"

#include <assert.h>
#include <stdbool.h>

/* Values that are alike. */
struct group {
    uint64_t first, count;
    bool frequent; /* it has a bin's share of all values */
};

struct parting {
    const double *value;
    uint64_t count;
    uint32_t bins;
};

/* That at place `first`; an empty one at the end. */
static struct group group_at(const struct parting *of, uint64_t first) {
    struct group group = {.first = first};
    while (first + group.count < of->count && of->value[first + group.count] == of->value[first])
        group.count++;
    group.frequent = group.count && group.count >= of->count / of->bins + 1;
    return group;
}

/* How many values are in no group that is frequent, and how many bins are left for them. */
static void count_others(const struct parting *of, uint64_t *others, uint32_t *bins) {
    *others = of->count;
    *bins = of->bins;
    for (struct group group = group_at(of, 0); group.count;
         group = group_at(of, group.first + group.count))
        if (group.frequent) {
            *others -= group.count;
            --*bins;
        }
}

/* The bin that is being filled. */
struct filling {
    uint64_t values, others; /* of them, those that are not frequent */
};

/* Whether a bin ends behind a group. The share of a bin is what is left over the bins that are
 * left. Before a frequent value half of it will do; less goes into that value's bin. */
static bool ends(const struct filling *bin, const struct group *group, const struct group *next,
                 uint64_t others, uint32_t left) {
    uint64_t share = (others + left - 1) / left;
    return group->frequent || bin->others >= share ||
           (next->frequent && bin->others >= (share + 1) / 2);
}

uint32_t bins_part(const double *value, uint64_t count, uint32_t bins, double *edge,
                   uint64_t *in_bin) {
    const struct parting of = {value, count, bins};
    struct filling bin = {0};
    uint64_t others;
    uint32_t left, edges = 0;
    assert(count && bins >= 2);
    count_others(&of, &others, &left);
    assert(left); /* each of the frequent ones has more than a share of all */
    for (struct group group = group_at(&of, 0), next; group.count; group = next) {
        next = group_at(&of, group.first + group.count);
        bin.values += group.count;
        bin.others += group.frequent ? 0 : group.count;
        if (!next.count || edges + 1 == bins || !ends(&bin, &group, &next, others, left))
            continue;
        in_bin[edges] = bin.values;
        edge[edges++] = value[next.first];
        others -= bin.others;
        left -= !group.frequent && left > 1;
        bin = (struct filling){0};
    }
    in_bin[edges] = bin.values;
    return edges;
}

/* Bins of equal shares beside values that are frequent, as gradient boosting has them (Ke et al.
 * 2017, LightGBM). */
#include "data/set/bins.h"

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

/* What is left to part: numbers that are not frequent lie in segments between those that are. */
struct left {
    uint64_t others;   /* values that are not frequent */
    uint32_t bins;     /* for them */
    uint32_t segments; /* that have such values, the present one included */
};

static struct left all_left(const struct parting *of) {
    struct left left = {of->count, of->bins, 0};
    bool inside = false; /* a segment */
    for (struct group group = group_at(of, 0); group.count;
         group = group_at(of, group.first + group.count)) {
        left.segments += !group.frequent && !inside;
        inside = !group.frequent;
        if (group.frequent) {
            left.others -= group.count;
            left.bins--;
        }
    }
    return left;
}

/* The bin that is being filled. */
struct filling {
    uint64_t values, others; /* of them, those that are not frequent */
};

/* Whether a bin ends after a group. The share of a bin is what is left over the bins that are
 * left. Where each segment can have a bin, one is kept for it, so that a frequent value is alone in
 * its own. Where there are too few, less than half a share before a frequent value goes into that
 * value's bin. */
static bool ends(const struct filling *bin, const struct group *group, const struct group *next,
                 const struct left *left, bool each) {
    const uint64_t share = (left->others + left->bins - 1) / left->bins;
    if (group->frequent || (each && next->frequent))
        return true;
    if (!each)
        return bin->others >= share || (next->frequent && bin->others >= (share + 1) / 2);
    return bin->others >= share && left->bins > left->segments;
}

uint32_t bins_part(const double *value, uint64_t count, uint32_t bins, double *edge,
                   uint64_t *in_bin) {
    const struct parting of = {value, count, bins};
    struct filling bin = {0};
    uint32_t edges = 0;
    assert(count && bins >= 2);
    struct left left = all_left(&of);
    assert(left.bins); /* each of the frequent ones has more than a share of all */
    const bool each = left.segments <= left.bins;
    for (struct group group = group_at(&of, 0), next; group.count; group = next) {
        next = group_at(&of, group.first + group.count);
        bin.values += group.count;
        bin.others += group.frequent ? 0 : group.count;
        if (!next.count || edges + 1 == bins || !ends(&bin, &group, &next, &left, each))
            continue;
        in_bin[edges] = bin.values;
        edge[edges++] = value[next.first];
        left.others -= bin.others;
        left.segments -= !group.frequent && next.frequent && left.segments;
        left.bins -= !group.frequent && left.bins > 1;
        bin = (struct filling){0};
    }
    in_bin[edges] = bin.values;
    return edges;
}

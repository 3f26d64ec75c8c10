/* Who touched a byte of memory last, to find threads that do so without a barrier between them. */
#ifndef DML_TESTS_PTX_MARKS_H
#define DML_TESTS_PTX_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC, ACCESSES };

/* Who made an access of each kind last; 0: nobody. */
struct mark {
    uint64_t last[ACCESSES];
};

/* Who: a thread between two barriers, in one number that is not 0. From the lowest bit on; what
 * does not fit is cut off, so that some conflicts are not seen. */
enum { MARK_THREAD_BITS = 10, MARK_PHASE_BITS = 14, MARK_BLOCK_BITS = 20, MARK_LAUNCH_BITS = 16 };
enum {
    MARK_PHASE_AT = MARK_THREAD_BITS,
    MARK_BLOCK_AT = MARK_PHASE_AT + MARK_PHASE_BITS,
    MARK_LAUNCH_AT = MARK_BLOCK_AT + MARK_BLOCK_BITS,
};

/* Several threads, of one block and phase or of several blocks. */
#define MARK_THREADS (UINT64_C(1) << 62)
#define MARK_BLOCKS (UINT64_C(1) << 63)

static inline uint64_t mark_part(uint64_t who, unsigned bits, unsigned at) {
    return who >> at & ((UINT64_C(1) << bits) - 1);
}

static inline uint64_t mark_who(uint64_t launch, uint32_t block, uint32_t phase, uint32_t thread) {
    uint64_t once = 1 + launch % ((UINT64_C(1) << MARK_LAUNCH_BITS) - 1);
    return once << MARK_LAUNCH_AT | mark_part(block, MARK_BLOCK_BITS, 0) << MARK_BLOCK_AT |
           mark_part(phase, MARK_PHASE_BITS, 0) << MARK_PHASE_AT |
           mark_part(thread, MARK_THREAD_BITS, 0);
}

/* Whether nothing keeps these two apart. */
static inline bool mark_beside(uint64_t before, uint64_t who) {
    uint64_t other = before ^ who;
    if (mark_part(other, MARK_LAUNCH_BITS, MARK_LAUNCH_AT))
        return false;
    if (before & MARK_BLOCKS || mark_part(other, MARK_BLOCK_BITS, MARK_BLOCK_AT))
        return true;
    return !mark_part(other, MARK_PHASE_BITS, MARK_PHASE_AT) &&
           (before & MARK_THREADS || mark_part(other, MARK_THREAD_BITS, 0));
}

/* Both who did so before and who does so now, if nothing keeps them apart. */
static inline uint64_t mark_together(uint64_t before, uint64_t who) {
    if (!mark_beside(before, who))
        return who;
    bool blocks = before & MARK_BLOCKS || mark_part(before ^ who, MARK_BLOCK_BITS, MARK_BLOCK_AT);
    return who | (blocks ? MARK_BLOCKS : MARK_THREADS);
}

/* Notes an access, and answers whether it conflicts with one before: that of another thread which
 * no barrier keeps apart, unless both only read or both are atomic. Of several bytes only each
 * fourth is looked at: the others are touched together with it. */
static inline bool mark_access(struct mark *marks, size_t bytes, enum access access, uint64_t who) {
    for (size_t i = 0; i < bytes; i += 4) {
        uint64_t *last = marks[i].last;
        if (last[access] == who)
            continue;
        for (enum access other = 0; other < ACCESSES; other++)
            if ((other != access || access == ACCESS_WRITE) && mark_beside(last[other], who))
                return true;
        last[access] = mark_together(last[access], who);
    }
    return false;
}

#endif

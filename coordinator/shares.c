#include "coordinator/shares.h"

#include <math.h>
#include <stdbool.h>

/* The end is found to 1/2^BISECTIONS of itself. */
#define BISECTIONS 12

/* Gives each what it can do within `ns`; whether that is all. */
static bool fill(struct share *shares, uint32_t count, uint32_t chunks, double flush_ns,
                 double ns) {
    uint32_t flushes = 0;
    for (uint32_t i = 0; i < count; i++) {
        double able = (ns - flush_ns * (flushes + 1)) * shares[i].chunks_per_ns;
        shares[i].chunks = able >= chunks ? chunks : able >= 1 ? (uint32_t)able : 0;
        chunks -= shares[i].chunks;
        flushes += shares[i].chunks > 0;
    }
    return chunks == 0;
}

double shares_divide(struct share *shares, uint32_t count, uint32_t chunks, double flush_ns) {
    double fastest = 0, least = 0;
    for (uint32_t i = 0; i < count; i++)
        fastest = fmax(fastest, shares[i].chunks_per_ns);
    /* Half a chunk more, so that rounding leaves nothing over for the fastest alone. */
    double enough = flush_ns * count + (chunks + 0.5) / fastest;
    for (unsigned i = 0; i < BISECTIONS; i++) {
        double middle = (least + enough) / 2;
        if (fill(shares, count, chunks, flush_ns, middle))
            enough = middle;
        else
            least = middle;
    }
    fill(shares, count, chunks, flush_ns, enough);
    return enough;
}

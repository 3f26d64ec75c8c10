#include "coordinator/job/sizing.h"

#include <assert.h>
#include <math.h>

#include "base/limits.h"

#define FLUSH_MS_MAX 1e6

/* Every host fetches the point and sends its gradient, so shards take and send so many bytes for
 * each parameter and host, each its part; and each flush costs the coordinator two messages a
 * shard. The sum of both times is least with √(parameters·bytes·STREAM_NS/(2·MESSAGE_NS)) shards,
 * however many hosts there are. doc/SCALE.md has the figures. */
#define STREAM_NS 1.4   /* for a byte between hosts, through TLS */
#define MESSAGE_NS 500. /* of the coordinator, for one message that lists many flushes */

/* What is lost with a host, the work since its last flush, must not cost more than it saves: while
 * nobody is lost, at most this share of the shards' time goes into such flushes. */
#define FLUSH_SHARE 0.05

uint32_t sizing_flush_ms(const struct job *job, uint64_t parameters, const struct sizing *sizing) {
    double bytes = (double)sizing->replicas * (double)parameters * sizeof(int64_t);
    double least_ms = bytes * STREAM_NS / sizing->shards / FLUSH_SHARE / 1e6;
    return least_ms > job->flush_ms ? (uint32_t)fmin(least_ms, FLUSH_MS_MAX) : job->flush_ms;
}

void sizing_on_hosts(const struct job *job, const struct set_info *data, uint64_t parameters,
                     uint32_t hosts, struct sizing *sizing) {
    /* A host with sparse rows fetches and sends only the columns that its rows have: at most one
     * for each value. What is sent names them. */
    const double dense = 2 * sizeof(double), sparse = dense + sizeof(uint32_t);
    double columns = (double)data->features * hosts;
    double share = data->dense || !(columns > 0) ? 1 : fmin((double)data->values / columns, 1);
    double bytes = (double)parameters * fmin(dense, sparse * share);
    double best = sqrt(bytes * STREAM_NS / (2 * MESSAGE_NS));
    uint64_t blocks = (parameters + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    double most = fmin(fmin(hosts, SHARDS_MAX), (double)blocks);
    assert(hosts > 0);
    sizing->shards = job->shards ? job->shards : (uint32_t)fmax(fmin(best, most), 1);
    sizing->replicas = job->replicas ? job->replicas : hosts;
    sizing->threads = job->threads;
}

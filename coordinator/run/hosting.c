#include "coordinator/run/hosting.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "coordinator/job/host_list.h"
#include "coordinator/run/slurm_allocation.h"

/* ---- which there are ---- */

static int ask_slurm(void *context) {
    return slurm_allocation_find(context);
}

static int add_slurm(struct loop *loop, struct hosts *hosts) {
    struct slurm_allocation allocation = {0};
    int code = loop_beside(loop, STAGE_STARTING, ask_slurm, &allocation);
    for (uint32_t i = 0; !code && i < allocation.count; i++) {
        const struct slurm_host *host = &allocation.hosts[i];
        hosts_add(hosts, host->name, host->address, host->cpus);
    }
    slurm_allocation_release(&allocation);
    return code;
}

int hosting_find(const struct job *job, struct loop *loop, struct hosts *hosts) {
    int code = 0;
    if (hosts->count)
        return 0;
    if (host_list_is_slurm(job))
        code = add_slurm(loop, hosts);
    else if (host_list_is_given(job))
        host_list_add(job, hosts);
    for (uint32_t i = 0; i < hosts->count; i++)
        if (!hosts->items[i].threads)
            hosts->items[i].threads = job->threads;
    return code;
}

/* ---- what becomes of them ---- */

static int none_left(const struct hosts *hosts) {
    for (uint32_t i = 0; i < hosts->count; i++)
        log_warning("host %s: %s", hosts->items[i].name,
                    *hosts->items[i].why ? hosts->items[i].why : "has no worker that is needed");
    return error_set(
        ERROR_UNAVAILABLE,
        "no host is left that workers can be started on: the lines above say why; each "
        "host needs the programs, and the state folder under the same path; what is "
        "durable is kept: run the same command again to go on");
}

int hosting_next(struct hosts *hosts, uint32_t worker, const char *why, int64_t *delay_ms) {
    int64_t now_ns = clock_monotonic_ns();
    bool lost = hosts->lost;
    int64_t when_ns = hosts_failed(hosts, worker, why, now_ns);
    if (when_ns == INT64_MAX)
        return none_left(hosts);
    if (hosts->lost && !lost)
        log_warning("no host answers: is the network of this machine down? They are tried again "
                    "for %d s",
                    HOSTS_LOST_SECONDS);
    *delay_ms = (when_ns - now_ns) / NS_PER_MS;
    return 0;
}

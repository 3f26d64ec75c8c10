#define _GNU_SOURCE

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/host_list.h"
#include "coordinator/run/host_lookup.h"
#include "coordinator/run/loop.h"

#define ANSWER_MS 10000         /* Slurm itself gives up after ten seconds, as a rule */
#define ANSWER_BYTES (8u << 20) /* far more than the lines of REPLICAS_MAX nodes */
#define CPUS_MAX 1000000        /* of one node: a larger number is a mistake */

/* ---- what the texts say ---- */

int slurm_read_names(struct slurm_allocation *allocation, const char *names) {
    uint32_t capacity = 0;
    while (*names) {
        size_t length = strcspn(names, "\n");
        if (length && allocation->count == REPLICAS_MAX)
            return error_set(ERROR_UNAVAILABLE,
                             "the allocation has more than %d nodes, the most that a job can use: "
                             "ask for fewer",
                             REPLICAS_MAX);
        if (length) {
            MEMORY_ROOM(allocation->hosts, allocation->count, capacity);
            char *name = memory_format("%.*s", (int)length, names);
            allocation->hosts[allocation->count++] =
                (struct slurm_host){.name = name, .address = memory_copy_string(name)};
        }
        names += length + (names[length] == '\n');
    }
    return allocation->count ? 0
                             : error_set(ERROR_UNAVAILABLE, "the Slurm allocation has no nodes");
}

/* A number from 1 to `most` at the start of the text, and what follows it; 0 if there is none. */
static uint32_t read_count(const char *text, uint32_t most, const char **rest) {
    uint32_t number = 0;
    for (*rest = text; **rest >= '0' && **rest <= '9' && number <= most; ++*rest)
        number = number * 10 + (uint32_t)(**rest - '0');
    return number <= most ? number : 0;
}

/* "CPUS" or "CPUS(xTIMES)", up to a comma or the end. */
static bool read_item(const char **text, uint32_t *cpus, uint32_t *times) {
    const char *at;
    *times = 1;
    *cpus = read_count(*text, CPUS_MAX, &at);
    if (*cpus && at[0] == '(' && at[1] == 'x') {
        *times = read_count(at + 2, REPLICAS_MAX, &at);
        if (!*times || *at++ != ')')
            return false;
    }
    if (*at == ',' && at[1])
        at++;
    else if (*at)
        return false;
    *text = at;
    return *cpus != 0;
}

int slurm_read_cpus(struct slurm_allocation *allocation, const char *cpus) {
    uint32_t host = 0;
    bool fits = true;
    for (const char *at = cpus; fits && *at;) {
        uint32_t each, times;
        fits = read_item(&at, &each, &times) && times <= allocation->count - host;
        assert(host <= allocation->count);
        for (uint32_t i = 0; fits && i < times; i++)
            allocation->hosts[host++].cpus = each < THREADS_MAX ? each : THREADS_MAX;
    }
    if (fits && host == allocation->count)
        return 0;
    return error_set(ERROR_UNAVAILABLE,
                     "SLURM_JOB_CPUS_PER_NODE is \"%.200s\": these are no CPUs of %u nodes; unset "
                     "it, and each worker uses the CPUs that it finds",
                     cpus, allocation->count);
}

/* The value of " KEY=VALUE " in a line, up to the next blank; NULL if it is not there. */
static char *read_value(const char *line, size_t length, const char *key) {
    size_t key_length = strlen(key);
    for (const char *at = line; at < line + length; at++) {
        size_t word = strcspn(at, " \n");
        if (word > key_length && !strncmp(at, key, key_length))
            return memory_format("%.*s", (int)(word - key_length), at + key_length);
        at += word;
    }
    return NULL;
}

void slurm_read_addresses(struct slurm_allocation *allocation, const char *nodes) {
    while (*nodes) {
        size_t length = strcspn(nodes, "\n");
        char *name = read_value(nodes, length, "NodeName=");
        char *address = read_value(nodes, length, "NodeAddr=");
        if (name && address) {
            for (uint32_t i = 0; i < allocation->count; i++)
                if (!strcmp(allocation->hosts[i].name, name)) {
                    free(allocation->hosts[i].address);
                    allocation->hosts[i].address = memory_copy_string(address);
                }
        }
        free(name);
        free(address);
        nodes += length + (nodes[length] == '\n');
    }
}

void slurm_allocation_release(struct slurm_allocation *allocation) {
    for (uint32_t i = 0; i < allocation->count; i++) {
        free(allocation->hosts[i].name);
        free(allocation->hosts[i].address);
    }
    free(allocation->hosts);
    *allocation = (struct slurm_allocation){0};
}

/* ---- asking Slurm ---- */

/* Reads up to the end, for a while. Whether the end came. */
static bool read_answer(int descriptor, char *text) {
    int64_t end_ns = clock_monotonic_ns() + ANSWER_MS * NS_PER_MS;
    size_t length = 0;
    for (;;) {
        int64_t left_ms = (end_ns - clock_monotonic_ns()) / NS_PER_MS;
        struct pollfd wait = {.fd = descriptor, .events = POLLIN};
        if (left_ms <= 0 || length == ANSWER_BYTES)
            return false;
        if (poll(&wait, 1, (int)left_ms) <= 0)
            continue; /* a signal, or the time is over */
        ssize_t got = read(descriptor, text + length, ANSWER_BYTES - length);
        if (got == 0)
            return true;
        if (got > 0)
            length += (size_t)got;
        else if (errno != EINTR)
            return false;
        text[length] = '\0';
    }
}

/* What the command prints on standard output. Free it. */
static int ask(char *const arguments[], char **answer) {
    int ends[2], status = 0;
    pid_t pid;
    *answer = NULL;
    if (pipe2(ends, O_CLOEXEC))
        return error_set_errno(ERROR_UNAVAILABLE, "cannot make a pipe");
    const struct loop_child how = {.output = ends[1], .errors = -1};
    errno = loop_spawn(arguments[0], arguments, environ, &how, &pid);
    close(ends[1]);
    if (errno) {
        int code = error_set_errno(ERROR_UNAVAILABLE, "cannot run %s", arguments[0]);
        close(ends[0]);
        return code;
    }
    *answer = memory_new(ANSWER_BYTES + 1, 1);
    bool ended = read_answer(ends[0], *answer);
    close(ends[0]);
    if (!ended)
        kill(-pid, SIGKILL); /* it may be a script */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (ended && WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    return error_set(ERROR_UNAVAILABLE, "%s %s %s %s", arguments[0], arguments[1], arguments[2],
                     ended ? "failed" : "does not answer");
}

/* The name of a node need not be one that the network knows: Slurm itself reaches it at NodeAddr.
 * By default that is the name, so without an answer the names are the best guess. */
int slurm_allocation_find(struct slurm_allocation *allocation) {
    char *nodes = getenv("SLURM_JOB_NODELIST");
    const char *cpus = getenv("SLURM_JOB_CPUS_PER_NODE");
    *allocation = (struct slurm_allocation){0};
    if (!nodes || !*nodes)
        return error_set(ERROR_UNAVAILABLE,
                         "hosts = slurm, but this is no Slurm job (SLURM_JOB_NODELIST is not set): "
                         "submit it with sbatch or run it under salloc, or set hosts = local");
    char *names, *shown = NULL;
    char *ask_names[] = {"scontrol", "show", "hostnames", nodes, NULL};
    char *ask_addresses[] = {"scontrol", "show", "node", "--oneliner", nodes, NULL};
    int code = ask(ask_names, &names);
    if (!code)
        code = slurm_read_names(allocation, names);
    free(names);
    if (!code && cpus)
        code = slurm_read_cpus(allocation, cpus);
    if (code)
        return code;
    if (!ask(ask_addresses, &shown)) {
        slurm_read_addresses(allocation, shown);
    } else {
        log_warning("%s: the nodes are tried by their names", error_text());
        error_clear();
    }
    free(shown);
    return 0;
}

/* ---- which there are ---- */

static int ask_slurm(void *context) {
    return slurm_allocation_find(context);
}

int hosts_look_up(const struct job *job, struct loop *loop, struct hosts *hosts) {
    struct slurm_allocation allocation = {0};
    int code = 0;
    if (hosts->count)
        return 0;
    if (host_list_is_slurm(job))
        code = loop_beside(loop, STAGE_STARTING, ask_slurm, &allocation);
    else if (host_list_is_given(job))
        host_list_add(job, hosts);
    for (uint32_t i = 0; !code && i < allocation.count; i++) {
        const struct slurm_host *host = &allocation.hosts[i];
        hosts_add(hosts, host->name, host->address, host->cpus);
    }
    slurm_allocation_release(&allocation);
    for (uint32_t i = 0; i < hosts->count; i++)
        if (!hosts->items[i].threads)
            hosts->items[i].threads = job->threads;
    return code;
}

/* ---- what becomes of them ---- */

int hosts_next_start(struct hosts *hosts, uint32_t worker, const char *why, int64_t *delay_ms) {
    int64_t now_ns = clock_monotonic_ns();
    bool lost = hosts->lost;
    int64_t when_ns = hosts_failed(hosts, worker, why, now_ns);
    if (when_ns == INT64_MAX) {
        for (uint32_t i = 0; i < hosts->count; i++)
            log_warning("host %s: %s", hosts->items[i].name,
                        *hosts->items[i].why ? hosts->items[i].why
                                             : "has no worker that is needed");
        return error_set(
            ERROR_UNAVAILABLE,
            "no host is left that workers can be started on: the lines above say why; each "
            "host needs the programs, and the state folder under the same path; what is "
            "durable is kept: run the same command again to go on");
    }
    if (hosts->lost && !lost)
        log_warning("no host answers: is the network of this machine down? They are tried again "
                    "for %d s",
                    HOSTS_LOST_SECONDS);
    *delay_ms = (when_ns - now_ns) / NS_PER_MS;
    return 0;
}

/* The keys `hosts` and `launch`: on which hosts workers are started, and by which command. */
#ifndef DML_COORDINATOR_JOB_HOST_LIST_H
#define DML_COORDINATOR_JOB_HOST_LIST_H

#include <stdbool.h>

#include "coordinator/job/job.h"
#include "coordinator/machine/hosts.h"

/* Commands that start a worker on a host. No one answers a password; a host that does not answer
 * is given up soon, and so is a connection to one that is gone. */
#define LAUNCH_SSH                                                                                 \
    "ssh -o BatchMode=yes -o ConnectTimeout=5 -o ServerAliveInterval=10 -o LogLevel=ERROR %h"
#define LAUNCH_SLURM                                                                               \
    "srun --overlap --nodes=1 --ntasks=1 --exact --cpus-per-task=%c --nodelist=%h --no-kill "      \
    "--kill-on-bad-exit=0 --export=ALL --mpi=none --quiet"

/* Whether an element of `hosts` is one: "local", "slurm", HOST or HOST:THREADS. A name that begins
 * with "-" is none: a command would take it for an option. */
bool host_list_fits(const char *text);

/* Whether `launch` is a command with %h in it. */
bool launch_fits(const char *text);

/* The words of `launch` for a host and its threads (0: 1), NULL at the end; NULL if launch_fits()
 * does not hold. Words end at blanks; "…" and '…' hold blanks, \ takes the next character as it is;
 * nothing else means anything: no shell is run. Free with launch_words_free(). */
char **launch_words(const char *text, const char *host, uint32_t threads);
void launch_words_free(char **words);

/* Checks both keys together with others. ERROR_CONFIG. */
int host_list_check(const struct job *job);

/* Whether workers are started on hosts, not just here; and whether those are Slurm's. */
bool host_list_is_given(const struct job *job);
bool host_list_is_slurm(const struct job *job);

/* Adds the hosts of a list, which is not Slurm's. */
void host_list_add(const struct job *job, struct hosts *hosts);

/* The job's `launch`, or the default. */
const char *host_list_launch(const struct job *job);

#endif

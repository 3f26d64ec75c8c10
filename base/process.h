/* What all programs have in common: their beginning and end, and threads. */
#ifndef DML_BASE_PROCESS_H
#define DML_BASE_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* The first call of main(). Descriptors 0 to 2 that are closed are opened on /dev/null, so that no
 * file or socket takes their place and gets what is printed. A file that may not grow (ulimit -f)
 * is an error of the write, and no signal. Threads get stacks of STACK_BYTES at least, and so does
 * this one as far as the system allows: ERROR_UNAVAILABLE if that is less than STACK_BYTES_LEAST.
 * Where there is no memory for a JSON value, the process ends as memory_exhausted() does. */
int process_begin(void);

/* Makes the system end this process before others of its user if memory runs out. */
void process_end_first(void);

/* A number that no other process has, not even on another host: for names in folders that are
 * shared. The process's id does not do, as in containers many have the same. */
unsigned long long process_number(void);

/* The path of a program beside this one; its name alone, for the search in PATH, if it is not
 * there. Free it. */
char *process_beside(const char *name);

/* Asks for this many descriptors, as far as the system allows. */
void process_raise_descriptors(unsigned wanted);

/* Whether this process ignores a signal, as nohup and shells have the processes do that they start.
 */
bool process_ignores(int number);

/* Waits up to `patience_ms` until no process of a group is left, also of those that are no children
 * of this process: SIGKILL only asks for the end of a process, which may come later. Whether none
 * is left. Where nobody reaps orphans, as in a container without an init, their zombies count. */
bool process_group_ended(pid_t group, int patience_ms);

/* The last call: 0 or an error code. If there is none yet, what was printed on standard output must
 * have been written: else ERROR_IO is recorded and answered. */
int process_end(int code);

/* Starts a thread that serves this process and takes no signals: they go to the threads that were
 * there before. Returns 0, or ERROR_UNAVAILABLE if the system has no more threads. */
int thread_start(pthread_t *thread, void *(*work)(void *context), void *context);

/* Runs `work` on up to `threads` threads at once, this one among them, and waits for all; on fewer
 * if the system has no more. What `work` returns does not count. */
void threads_run(unsigned threads, void *(*work)(void *context), void *context);

/* Does each of `parts` parts of a work once, on up to `threads` threads at once, as above. */
typedef void parts_function(unsigned threads, unsigned parts,
                            void (*work)(void *context, unsigned part), void *context);
parts_function threads_share;

/* Shares work that can fail: `work` returns 0 or records an error. After the first failure in time
 * no part is begun; it is recorded and answered. */
int threads_try(unsigned threads, unsigned parts, int (*work)(void *context, unsigned part),
                void *context);

#endif

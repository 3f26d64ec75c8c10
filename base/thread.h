/* Threads that serve a process whose first thread takes its signals. */
#ifndef DML_BASE_THREAD_H
#define DML_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that takes no signals: they go to the threads that were there before. Answers 0,
 * or ERROR_UNAVAILABLE if the system has no more threads. */
int thread_start(pthread_t *thread, void *(*work)(void *context), void *context);

#endif

/* Tells the service manager that started this program how it is: the protocol of sd_notify(3), a
 * datagram to the socket that NOTIFY_SOCKET names. Where no manager asks for it nothing happens,
 * and a manager that does not listen, or takes nothing for a second, is no error. */
#ifndef DML_BASE_NOTIFY_H
#define DML_BASE_NOTIFY_H

#include <stdint.h>

void notify_ready(void);
void notify_alive(void); /* for the watchdog */
void notify_stopping(void);

/* How often notify_alive() is to be called, in ms: twice within the time after which the manager
 * ends a program that is silent. 0: it does not watch this one. */
uint64_t notify_interval_ms(void);

#endif

/* An objective that replaces objective/ in a test, on the processor and on a device: what comes out
 * of a chunk follows from its label, and the device from the contract of objective/on_device.h. */
#ifndef DML_TESTS_UNIT_MADE_UP_OBJECTIVE_H
#define DML_TESTS_UNIT_MADE_UP_OBJECTIVE_H

#include <stdint.h>

#include "objective/on_device.h"

/* How often a device was given a point; and what it fails with from now on, or NULL. */
extern uint32_t made_up_points;
extern const char *made_up_failure;

/* Parameters of the layers above the first. */
enum { MADE_UP_UPPER = 20 };

#endif

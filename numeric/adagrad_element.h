/* The steps of Adagrad for one element, for processor and device: what the kernels of
 * numeric/adagrad.h do to each, to the same bits. */
#ifndef DML_NUMERIC_ADAGRAD_ELEMENT_H
#define DML_NUMERIC_ADAGRAD_ELEMENT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "device/portable.h"

#define NAME(function) adagrad_element_##function
#define STEP PORTABLE
#define NUMBERS double
#define WORDS uint64_t
#define ROOT(out, of) (*(out) = sqrt(*(of)))
#include "numeric/adagrad_steps.def"
#undef NAME
#undef STEP
#undef NUMBERS
#undef WORDS
#undef ROOT

#endif

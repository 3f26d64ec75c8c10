/* The steps of orthant-wise minimisation and of Adagrad for one element, for processor and device:
 * what the kernels of numeric/steps.h do to each, to the same bits. NaNs may differ in their sign.
 */
#ifndef DML_NUMERIC_STEP_ELEMENT_H
#define DML_NUMERIC_STEP_ELEMENT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "device/kernel.h"

#define NAME(function) element_##function
#define STEP PORTABLE
#define NUMBERS double
#define WORDS uint64_t
#define ALL(number) number
#define ROOT(out, of) (*(out) = sqrt(*(of)))
#include "numeric/steps.def"
#undef NAME
#undef STEP
#undef NUMBERS
#undef WORDS
#undef ALL
#undef ROOT

#endif

/* The steps of orthant-wise minimisation for one element, for processor and device: what the
 * kernels of numeric/orthant.h do to each, to the same bits. NaNs may differ in their sign. */
#ifndef DML_NUMERIC_ORTHANT_ELEMENT_H
#define DML_NUMERIC_ORTHANT_ELEMENT_H

#include <stdint.h>
#include <string.h>

#include "device/portable.h"

#define NAME(function) orthant_element_##function
#define STEP PORTABLE
#define NUMBERS double
#define WORDS uint64_t
#define ALL(number) number
#include "numeric/orthant_steps.def"
#undef NAME
#undef STEP
#undef NUMBERS
#undef WORDS
#undef ALL

#endif

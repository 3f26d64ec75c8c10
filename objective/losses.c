/* Losses over arrays of rows, in lanes. */
#include <math.h>
#include <string.h>

#include "numeric/clones.h"
#include "numeric/special.h"
#include "objective/judge.h"
#include "objective/parts.h"

#define LOSS
#define NAME(function) function
#define LOSS_PIECE 64
#define NUMBERS lanes
#define WORDS word_lanes
#define ALL(number) ((lanes){0} + (number))
#define ABOVE lanes_above
#define CHOOSE lanes_choose
#define FUNCTION LANES_INLINE
#define CLONED VECTOR_CLONES static
#include "objective/losses.def"

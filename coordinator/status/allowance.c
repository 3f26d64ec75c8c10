#include "coordinator/status/allowance.h"

#include <math.h>

bool allowance_take(struct allowance *allowance, int64_t now_ns) {
    double gained = (double)(now_ns - allowance->counted_ns) / 1e9 * allowance->per_second;
    allowance->left = fmin(allowance->left + gained, allowance->at_once_most);
    allowance->counted_ns = now_ns;
    if (allowance->left < 1)
        return false;
    allowance->left -= 1;
    return true;
}

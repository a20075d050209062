/* Division that floors. */
#include "sdk/base/checked.h"

bool checked_floordiv(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    int64_t q = a / b;
    *out = a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
    return true;
}

bool checked_floormod(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    int64_t r = a % b;
    *out = r != 0 && (r < 0) != (b < 0) ? r + b : r;
    return true;
}

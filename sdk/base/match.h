/* Close matches of a name, by the measure of Python's difflib (twice the matched characters over both lengths). */
#ifndef BASE_MATCH_H
#define BASE_MATCH_H
#include "sdk/base/str.h"

double match_ratio(str a, str b); /* 0 to 1 */
/* Picks the best of `names` with ratio >= cutoff, best first, at most cap; returns how many. */
uint32_t match_close(str name, const char *const *names, uint32_t n, double cutoff, uint32_t cap, const char **out);
#endif

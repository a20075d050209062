/* The ratio of difflib's SequenceMatcher, without its guesses on junk: the longest common run (leftmost in a, then in
 * b), then the same to its left and to its right. */
#include "sdk/base/match.h"
#include <stdlib.h>
#include <string.h>

typedef struct { size_t a, b, n; } run;

/* Longest common run of a and b. row: b.n + 1 counters. */
static run longest_run(str a, str b, uint32_t *row)
{
    run best = {0, 0, 0};
    memset(row, 0, (b.n + 1) * sizeof *row);
    for (size_t i = 0; i < a.n; i++) {
        for (size_t j = b.n; j-- > 0;) { /* backwards: row[j] is still that of the character before */
            row[j + 1] = a.s[i] == b.s[j] ? row[j] + 1 : 0;
            size_t n = row[j + 1];
            if (n > best.n || (n == best.n && n && i + 1 - n == best.a))
                best = (run){i + 1 - n, j + 1 - n, n};
        }
    }
    return best;
}

static size_t count_matched(str a, str b, uint32_t *row)
{
    size_t total = 0;
    while (a.n && b.n) {
        run r = longest_run(a, b, row);
        if (!r.n)
            break;
        total += r.n + count_matched((str){a.s, r.a}, (str){b.s, r.b}, row);
        a = (str){a.s + r.a + r.n, a.n - r.a - r.n};
        b = (str){b.s + r.b + r.n, b.n - r.b - r.n};
    }
    return total;
}

double match_ratio(str a, str b)
{
    uint32_t fixed[256], *row = fixed;
    if (a.n + b.n == 0)
        return 1.0;
    if (b.n >= 256)
        row = b.n < UINT32_MAX ? malloc((b.n + 1) * sizeof *row) : NULL;
    if (!row)
        return str_eq(a, b) ? 1.0 : 0.0;
    size_t matched = count_matched(a, b, row);
    if (row != fixed)
        free(row);
    return 2.0 * (double)matched / (double)(a.n + b.n);
}

uint32_t match_close(str name, const char *const *names, uint32_t n, double cutoff, uint32_t cap, const char **out)
{
    uint32_t found = 0;
    double scores[16];
    cap = cap < 16 ? cap : 16;
    for (uint32_t i = 0; i < n; i++) {
        double score = match_ratio(str_of(names[i]), name);
        if (score < cutoff)
            continue;
        uint32_t at = found;
        while (at && (score > scores[at - 1] || (score == scores[at - 1] && strcmp(names[i], out[at - 1]) > 0)))
            at--;
        if (at >= cap)
            continue;
        found += found < cap;
        for (uint32_t k = found - 1; k > at; k--)
            scores[k] = scores[k - 1], out[k] = out[k - 1];
        scores[at] = score;
        out[at] = names[i];
    }
    return found;
}

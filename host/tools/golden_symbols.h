/* Shape rules of recorded operator cases, run with symbols for sizes. */
#ifndef HOST_TOOLS_GOLDEN_SYMBOLS_H
#define HOST_TOOLS_GOLDEN_SYMBOLS_H
#include "host/tools/golden_case.h"

/* Of a row's cases, SymInts being symbols too: their symbols, and those of which one number is left. */
typedef struct { uint32_t symbols, pinned; } symbolic_seen;
/* Runs without a symbol; those in which all stay symbols, some do, all become numbers. */
typedef struct { uint64_t none, stayed, in_part, pinned; } symbolic_runs;
/* Equal sizes are one symbol, and numbers among the arguments stay what they are; SymInts become symbols too; or every
 * size is a symbol of its own. */
enum symbolic_mode { MODE_NUMBERS, MODE_SYMINTS, MODE_APART };
struct golden_symbols {
    symbolic_seen *rows;             /* one an operator */
    symbolic_runs runs[3];           /* by symbolic_mode */
    uint64_t others;                 /* other sizes at which rules were compared */
};

golden_symbols *golden_symbols_new(void); /* NULL: no memory */
void golden_symbols_free(golden_symbols *g);
/* Unsupported: sizes depend on data. Skipped: graphs, and operators that give a value. */
golden_verdict golden_check_rule(golden_case *k, const json_t *j, golden_symbols *seen, buf *why);
#endif

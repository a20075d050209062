/* The page of an operator, from its row alone. */
#include "host/op/op.h"
#include <string.h>

static const struct { uint32_t flag; const char *words; } flags[] = {
#define OP_FLAG(name, bit, words) {OP_##name, words},
#include "host/op/flags.def"
#undef OP_FLAG
};

static void print_flags(uint32_t set, buf *out)
{
    const char *gap = "  kind      ";
    for (uint32_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!(set & flags[i].flag))
            continue;
        buf_printf(out, "%s%s", gap, flags[i].words);
        gap = "; ";
    }
    buf_puts(out, *gap == ';' ? "\n" : "");
}

/* Defaults and what is written are in the schema; what a caller of the C function must know is how they are given. */
static void print_c(const op_row *op, buf *out)
{
    if (op->flags & OP_HIGHER) /* over graphs, which captures make of functions */
        buf_puts(out, "  in C      bp_cond and kin, of <backplane/flow.h>\n");
    else
        buf_printf(out, "  in C      bp_aten_%s, of <backplane/aten.h>\n", op->id);
    if (op->functional)
        buf_printf(out, "  writes    the result of %s into %s\n", op->functional->target,
                   op->schema->inplace ? "its first argument" : "its out arguments");
}

bool op_print_page(const op_row *op, buf *out)
{
    buf_printf(out, "%s\n  %s\n  schema    ", op->target, op->doc);
    schema_print(op->schema, out);
    buf_puts(out, "\n");
    print_c(op, out);
    print_flags(op->flags, out);
    return !out->failed;
}

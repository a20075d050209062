/* The functions bp_aten_<id>: prototypes for aten.h, definitions for aten_calls.c. */
#include "host/op/gen/gen.h"
#include <string.h>

enum { COLUMNS = 116 };

/* Puts `piece` behind a comma, on a new line when the line would grow too long. */
static void put_item(buf *out, const char *piece, bool first, size_t *column, size_t indent)
{
    if (!first) {
        buf_putc(out, ',');
        *column += 2;
        if (*column + strlen(piece) > COLUMNS) {
            buf_putc(out, '\n');
            buf_pad(out, indent, ' ');
            *column = indent;
        } else {
            buf_putc(out, ' ');
        }
    }
    buf_puts(out, piece);
    *column += strlen(piece);
}

void gen_prototype(buf *out, const gen_row *r, bool exported)
{
    char type[32];
    size_t from = out->n;
    buf_puts(out, exported ? "BP_EXPORT " : "");
    buf name = {0};
    buf_printf(&name, "bp_aten_%s(", r->id);
    carrier_declare(out, result_type(r->s, r->result, type, sizeof type), buf_text(&name));
    buf_fini(&name);
    size_t column = out->n - from, indent = column;
    put_item(out, "bp_ctx *c", true, &column, indent);
    for (uint32_t i = 0; i < r->s->nargs; i++) {
        enum carrier k = carrier_of(&r->s->args[i].ty);
        if (k == CARRY_NONE)
            continue;
        buf piece = {0};
        carrier_declare(&piece, carrier_type(k), r->s->args[i].name);
        put_item(out, buf_text(&piece), false, &column, indent);
        buf_fini(&piece);
    }
    buf_putc(out, ')');
}

static void put_pack(buf *out, const gen_row *r, uint32_t i)
{
    enum carrier k = carrier_of(&r->s->args[i].ty);
    if (k == CARRY_NONE)
        buf_puts(out, "        value_none(),\n");
    else
        buf_printf(out, "        %s(&k_, %u, %s),\n", carrier_pack(k), i, r->s->args[i].name);
}

void gen_definition(buf *out, const gen_row *r)
{
    static const char *const finish[] = {
        [RESULT_TENSOR] = "aten_tensor", [RESULT_LIST] = "aten_list", [RESULT_SCALAR] = "aten_scalar",
        [RESULT_DIM] = "aten_dim",       [RESULT_FLOAT] = "aten_float", [RESULT_BOOL] = "aten_bool",
        [RESULT_STATUS] = "aten_status",
    };
    gen_prototype(out, r, false);
    buf_printf(out, "\n{\n    aten_call k_ = aten_begin(c, ROW_%s);\n    const bp_value args_[] = {\n", r->id);
    for (uint32_t i = 0; i < r->s->nargs; i++)
        put_pack(out, r, i);
    buf_puts(out, "    };\n");
    if (r->result == RESULT_TENSORS)
        buf_printf(out, "    bp_tensor%u r_;\n    aten_tensors(&k_, args_, %u, r_.at);\n    return r_;\n}\n\n",
                   r->s->nreturns,
                   r->s->nreturns);
    else
        buf_printf(out, "    return %s(&k_, args_);\n}\n\n", finish[r->result]);
}

/* Values as Python prints them: what torch.fx's tables and readable code show. */
#include "host/graph/print.h"
#include <math.h>
#include <string.h>

const char *print_opcode(int32_t op)
{
    switch (op) {
    case BP_NODE_PLACEHOLDER: return "placeholder";
    case BP_NODE_GET_ATTR: return "get_attr";
    case BP_NODE_CALL_FUNCTION: return "call_function";
    case BP_NODE_OUTPUT: return "output";
    default: return "?";
    }
}

const char *print_device_kind(int32_t kind)
{
    switch (kind) {
    case BP_CPU: return "cpu";
    case BP_CUDA: return "cuda";
    case BP_FAKE_DEVICE: return "fake";
    default: return "?";
    }
}

const char *print_memory_format(int32_t format, bool brief)
{
    switch (format) {
    case BP_CONTIGUOUS: return brief ? "contiguous" : "contiguous_format";
    case BP_PRESERVE: return brief ? "preserve" : "preserve_format";
    case BP_CHANNELS_LAST: return "channels_last";
    case BP_CHANNELS_LAST_3D: return "channels_last_3d";
    default: return "?";
    }
}

void print_dim(buf *out, bp_dim d)
{
    if (dim_is_const(d))
        buf_printf(out, "%lld", (long long)d.value);
    else
        sym_print(sym_current(), d, false, out);
}

void print_begin(print_scope *s, const graph *g)
{
    *s = (print_scope){0};
    s->scope = sym_push(g->syms, &s->c);
}

void print_end(print_scope *s)
{
    sym_pop(s->scope);
    arena_fini(&s->c.scratch);
}

/* A float inside a complex number: 1, not 1.0. */
static void add_part(buf *out, double v)
{
    buf part = {0};
    buf_double(&part, v);
    size_t n = part.n;
    if (n > 2 && !strcmp(part.s + n - 2, ".0"))
        n -= 2;
    buf_add(out, buf_text(&part), n);
    out->failed |= part.failed;
    buf_fini(&part);
}

static void add_complex(buf *out, double re, double im, enum print_how how)
{
    if (how == PRINT_SOURCE && (re == 0 || im == 0 || !isfinite(re) || !isfinite(im))) {
        buf_puts(out, "complex(");
        buf_double(out, re);
        buf_puts(out, ", ");
        buf_double(out, im);
        buf_putc(out, ')');
        return;
    }
    bool bare = re == 0 && !signbit(re);
    if (!bare) {
        buf_putc(out, '(');
        add_part(out, re);
        if (isnan(im) || !signbit(im))
            buf_putc(out, '+');
    }
    add_part(out, im);
    buf_puts(out, bare ? "j" : "j)");
}

static void add_device(buf *out, bp_device d)
{
    if (d.kind == BP_CPU)
        buf_puts(out, "device(type='cpu')");
    else
        buf_printf(out, "device(type='%s', index=%d)", print_device_kind(d.kind), d.index);
}

static void add_list(buf *out, const graph *g, const bp_value *v, enum print_how how)
{
    buf_putc(out, '[');
    for (uint32_t i = 0; i < v->count; i++) {
        buf_puts(out, i ? ", " : "");
        print_value(out, g, &v->v.items[i], how);
    }
    buf_putc(out, ']');
}

void print_value(buf *out, const graph *g, const bp_value *v, enum print_how how)
{
    switch (v->kind) {
    case BP_VALUE_NODE: buf_puts(out, graph_get(g, v->v.node)->name); return;
    case BP_VALUE_BOOL: buf_puts(out, v->v.i ? "True" : "False"); return;
    case BP_VALUE_INT: print_dim(out, v->v.dim); return;
    case BP_VALUE_FLOAT: buf_double(out, v->v.f[0]); return;
    case BP_VALUE_COMPLEX: add_complex(out, v->v.f[0], v->v.f[1], how); return;
    case BP_VALUE_STRING: buf_quote(out, v->v.str); return;
    case BP_VALUE_DTYPE: buf_printf(out, "torch.%s", dtype_get((bp_dtype)v->v.i)->torch); return;
    case BP_VALUE_LAYOUT: buf_puts(out, "torch.strided"); return;
    case BP_VALUE_DEVICE: add_device(out, v->v.device); return;
    case BP_VALUE_MEMORY_FORMAT:
        buf_printf(out, "torch.%s", print_memory_format((int32_t)v->v.i, false));
        return;
    case BP_VALUE_LIST: add_list(out, g, v, how); return;
    default: buf_puts(out, "None"); return;
    }
}

void print_tuple(buf *out, const graph *g, const bp_value *v, uint32_t n, enum print_how how)
{
    buf_putc(out, '(');
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        print_value(out, g, &v[i], how);
    }
    buf_puts(out, n == 1 ? ",)" : ")");
}

/* bp_print: a tensor as text in the context's sink. Under capture it is an opaque step, which prints once a call. */
#include "host/compile/callable.h"
#include <stdio.h>

enum { PRINT_MOST = 1000 };

static void print_number(const bp_tensor *t, const char *p, buf *out)
{
    num v = dtype_load(t->dtype, p);
    if (t->dtype == BP_BOOL)
        buf_puts(out, v.i ? "true" : "false");
    else if (v.kind == NUM_INT)
        buf_printf(out, "%lld", (long long)v.i);
    else
        buf_double(out, v.f);
    if (v.kind == NUM_COMPLEX)
        buf_printf(out, "%+gi", v.im);
}

/* Elements in row-major order, the first thousand of them; a bracket a dimension. */
static void print_elements(const bp_tensor *dense, buf *out)
{
    int64_t n = tensor_nelem(dense), shown = n < PRINT_MOST ? n : PRINT_MOST;
    size_t size = dtype_size(dense->dtype);
    for (int64_t i = 0; i < shown; i++) {
        int64_t block = 1;
        for (uint32_t d = dense->rank; d-- > 0; ) {
            block *= tensor_dim(dense, d);
            buf_puts(out, i % block == 0 ? "[" : "");
        }
        print_number(dense, (const char *)tensor_ptr(dense) + (size_t)i * size, out);
        block = 1;
        for (uint32_t d = dense->rank; d-- > 0; ) {
            block *= tensor_dim(dense, d);
            buf_puts(out, (i + 1) % block == 0 ? "]" : "");
        }
        buf_puts(out, i + 1 < shown ? ", " : "");
    }
    if (shown < n)
        buf_printf(out, " ... (%lld more)", (long long)(n - shown));
}

static bp_status print_now(bp_ctx *c, bp_tensor *t, const char *label)
{
    char shape[128];
    buf text = {0};
    bp_tensor *dense = tensor_to_contiguous(c, t);
    if (!dense)
        return c->diag.code;
    buf_printf(&text, "%s%s%s ", label ? label : "", label ? ": " : "", tensor_describe(t, shape, sizeof shape));
    print_elements(dense, &text);
    buf_putc(&text, '\n');
    tensor_unref(dense);
    if (text.failed)
        ctx_nomem(c);
    else if (c->sink)
        c->sink(c->sink_arg, text.s, text.n);
    else if (fwrite(text.s, 1, text.n, stdout) != text.n || fflush(stdout) != 0)
        ctx_fail(c, BP_DATA_LOSS, "bp_print: standard output takes no more");
    buf_fini(&text);
    return c->diag.code;
}

/* The step itself. */
static void print_fn(bp_ctx *c, bp_frame *f)
{
    const char *label = bp_arg_count(f) > 1 ? bp_arg_str(f, 1, "label") : NULL;
    bp_tensor *t = bp_arg(f, 0, "t");
    if (t)
        print_now(c, t, label);
}

bp_status bp_print_at(bp_ctx *c, bp_tensor *t, const char *label, const char *file, int32_t line)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_print: the tensor is NULL");
    c->site_file = file;
    c->site_line = line;
    trace *at = capture_current(c);
    if (!at)
        return print_now(c, capture_real(c, t), label);
    bp_value args[2] = {value_tensor(t), bp_arg_of_str(label ? label : "")};
    step_spec s = {.fn = print_fn, .args = args, .nargs = label ? 2 : 1, .reason = "bp_print is called"};
    bp_tensor **results;
    uint32_t n;
    return trace_step(at, &s, &results, &n);
}

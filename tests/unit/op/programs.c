/* Random programs of shapes (programs.h): the writer, the runner, the printer. */
#include "tests/unit/op/programs.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* -- running ------------------------------------------------------------------------------------------------------- */

static bp_dim number_of(bp_ctx *c, const run *r, const number *n)
{
    if (n->of < 0)
        return dim_const(n->add);
    bp_dim d = dim_add(c, dim_mul(c, r->t[n->of]->sizes[n->dim], dim_const(n->mul)), dim_const(n->add));
    return n->div == 1 ? d : dim_floordiv(c, d, dim_const(n->div));
}

static bp_value word_value(bp_ctx *c, const run *r, const word *w)
{
    bp_value *items;
    switch (w->kind) {
    case WORD_NONE: return value_none();
    case WORD_TENSOR: return value_tensor(r->t[w->at[0].of]);
    case WORD_NUMBER: return value_dim(number_of(c, r, &w->at[0]));
    case WORD_BOOL: return value_bool(w->at[0].add != 0);
    case WORD_TENSORS:
    case WORD_NUMBERS: break;
    }
    items = arena_array(&c->scratch, w->n, sizeof *items);
    for (uint32_t i = 0; items && i < w->n; i++)
        items[i] = w->kind == WORD_TENSORS ? value_tensor(r->t[w->at[i].of])
                                           : value_dim(number_of(c, r, &w->at[i]));
    return value_list(items, items ? w->n : 0);
}

static bp_status run_step(bp_ctx *c, const step *s, bool bend, run *r)
{
    bp_value values[PROGRAM_ARGS], *args;
    for (uint32_t i = 0; i < s->n; i++)
        values[i] = word_value(c, r, &s->args[i]);
    if (bend && !strcmp(s->row->target, "aten.slice.Tensor") && !dim_same_as(values[3].v.dim, 0))
        values[3].v.dim = dim_sub(c, values[3].v.dim, dim_const(1));
    TRY(c->diag.code);
    TRY(op_bind_ordered(c, s->row, s->n, values, &args));
    op_call k = {.op = s->row, .args = args};
    TRY(op_run_fake(c, &k));
    for (uint32_t i = 0; i < k.nout; i++) {
        if (i == s->take)
            r->t[r->n] = k.out[i];
        else
            tensor_unref(k.out[i]);
    }
    if (s->take >= k.nout)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "there are %u results", k.nout);
    r->n++;
    return BP_OK;
}

static bp_tensor *make_input(symbolic *s, const input *in, const int64_t *values)
{
    bp_dim sizes[4], strides[4];
    for (uint32_t d = 0; d < in->rank; d++)
        sizes[d] = in->symbol[d] < 0 ? dim_const(in->size[d])
                   : s->e            ? sym_dim_of(s->e, (uint32_t)in->symbol[d])
                                     : dim_const(values[in->symbol[d]]);
    layout_contiguous(s->c, in->rank, sizes, strides);
    return tensor_new_fake(s->c, &(tensor_meta){BP_F32, {BP_CPU, 0}, in->rank, sizes, strides, {0}});
}

bp_status program_run(symbolic *s, const program *p, const int64_t *values, bool bend, run *out)
{
    sym_scope former = sym_push(s->e, s->c);
    arena_mark mark = arena_get_mark(&s->c->scratch);
    *out = (run){.n = 0};
    for (uint32_t i = 0; i < p->nin && ctx_ok(s->c); i++)
        if ((out->t[i] = make_input(s, &p->in[i], values)))
            out->n++;
    for (uint32_t i = 0; i < p->n && ctx_ok(s->c); i++)
        (void)run_step(s->c, &p->at[i], bend, out);
    arena_reset(&s->c->scratch, mark);
    sym_pop(former);
    return s->c->diag.code;
}

void run_fini(run *r)
{
    for (uint32_t i = 0; i < PROGRAM_TENSORS; i++)
        tensor_unref(r->t[i]);
    *r = (run){.n = 0};
}

bool program_symbols(bp_ctx *c, const program *p, const int64_t *hints, symbolic *s)
{
    if (!symbolic_begin(c, 1, s))
        return false;
    for (uint32_t k = 0; k < p->nsymbols; k++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", k);
        sym_add_symbol(s->e, c, &(sym_symbol){.name = name, .hint = hints[k], .min = 2, .max = INT64_MAX,
                                              .source = {.at = SYM_NO_SOURCE}});
    }
    return ctx_ok(c);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

typedef struct { symbolic s; program *p; run now; } writer; /* now: on numbers, at the hints */

static int64_t any(writer *w, int64_t low, int64_t high)
{
    return low + (int64_t)symbolic_random(&w->s, (uint64_t)(high - low + 1));
}

static number plain(int64_t v) { return (number){-1, 0, 0, v, 1}; }
static number size_of(int32_t t, uint32_t d) { return (number){t, d, 1, 0, 1}; }
static word one(enum word_kind kind, number n) { return (word){kind, 1, {n}}; }
static word tensor(int32_t t) { return one(WORD_TENSOR, (number){.of = t}); }
static word integer(int64_t v) { return one(WORD_NUMBER, plain(v)); }
static word flag(bool b) { return one(WORD_BOOL, plain(b)); }

static word integers(uint32_t n, int64_t a, int64_t b)
{
    word w = {WORD_NUMBERS, n, {plain(a)}};
    for (uint32_t i = 1; i < n; i++)
        w.at[i] = plain(b);
    return w;
}

/* Some tensor of at least this rank; the last ones more often. */
static int32_t some(writer *w, uint32_t least)
{
    for (int i = 0; i < 8; i++) {
        int32_t t = (int32_t)any(w, any(w, 0, 1) ? w->now.n - 1 : 0, w->now.n - 1);
        if (w->now.t[t]->rank >= least)
            return t;
    }
    return -1;
}

static uint32_t rank(const writer *w, int32_t t) { return w->now.t[t]->rank; }
static uint32_t some_dim(writer *w, int32_t t) { return (uint32_t)any(w, 0, (int64_t)rank(w, t) - 1); }

/* Runs it on numbers; a step that fails there, or grows too large, is no step. */
static bool append(writer *w, const char *target, uint32_t n, const word *args, uint32_t take)
{
    step *s = &w->p->at[w->p->n];
    if (w->p->n == PROGRAM_STEPS)
        return false;
    *s = (step){.row = op_by_target(target), .n = n, .take = take};
    memcpy(s->args, args, n * sizeof *args);
    arena_mark mark = arena_get_mark(&w->s.c->scratch);
    uint32_t before = w->now.n;
    bool ok = s->row && run_step(w->s.c, s, false, &w->now) == BP_OK;
    arena_reset(&w->s.c->scratch, mark);
    diag_clear(&w->s.c->diag);
    if (ok && (w->now.t[before]->rank > 5 || tensor_nelem(w->now.t[before]) > 200000)) {
        tensor_unref(w->now.t[before]);
        w->now.t[before] = NULL;
        w->now.n--;
        ok = false;
    }
    w->p->n += ok;
    return ok;
}

#define APPEND(w, target, take, ...) \
    append(w, target, sizeof((word[]){__VA_ARGS__}) / sizeof(word), (word[]){__VA_ARGS__}, take)

static bool write_pointwise(writer *w)
{
    int32_t a = some(w, 0), b = some(w, 0);
    switch (any(w, 0, 3)) {
    case 0: return APPEND(w, "aten.relu.default", 0, tensor(a));
    case 1: return APPEND(w, "aten.clone.default", 0, tensor(a));
    case 2: return APPEND(w, "aten.mul.Tensor", 0, tensor(a), tensor(a));
    default: return APPEND(w, "aten.add.Tensor", 0, tensor(a), tensor(b));
    }
}

static bool write_order(writer *w)
{
    int32_t t = some(w, 2);
    if (t < 0)
        return false;
    uint32_t a = some_dim(w, t), b = some_dim(w, t);
    word order = {WORD_NUMBERS, rank(w, t), {{0}}};
    for (uint32_t i = 0; i < rank(w, t) && i < PROGRAM_LIST; i++)
        order.at[i] = plain(rank(w, t) - 1 - i);
    switch (any(w, 0, 3)) {
    case 0: return APPEND(w, "aten.transpose.int", 0, tensor(t), integer(a), integer(b));
    case 1: return APPEND(w, "aten.permute.default", 0, tensor(t), order);
    case 2: return APPEND(w, "aten.contiguous.default", 0, tensor(t));
    default: return APPEND(w, "aten.diagonal.default", 0, tensor(t), integer(any(w, -2, 2)), integer(a), integer(b));
    }
}

static bool write_cut(writer *w)
{
    int32_t t = some(w, 1);
    if (t < 0)
        return false;
    uint32_t d = some_dim(w, t);
    number end[] = {plain(any(w, -3, 6)), plain(INT64_MAX), {t, d, 1, -any(w, 0, 2), 1}, {t, d, 1, 1, 2}};
    number start[] = {plain(any(w, -4, 3)), plain(0), plain(1), {t, d, 1, 0, 3}};
    word from = one(WORD_NUMBER, start[any(w, 0, 3)]), to = one(WORD_NUMBER, end[any(w, 0, 3)]);
    switch (any(w, 0, 5)) {
    case 0: return APPEND(w, "aten.select.int", 0, tensor(t), integer(d), integer(any(w, -2, 2)));
    case 1: return APPEND(w, "aten.narrow.default", 0, tensor(t), integer(d), from, one(WORD_NUMBER, end[3]));
    case 2:
        return APPEND(w, "aten.unfold.default", 0, tensor(t), integer(d), integer(any(w, 1, 3)), integer(any(w, 1, 2)));
    default:
        return APPEND(w, "aten.slice.Tensor", 0, tensor(t), integer(d), from, to, integer(any(w, 0, 3) ? 1 : 2));
    }
}

static bool write_pieces(writer *w)
{
    int32_t t = some(w, 1);
    if (t < 0)
        return false;
    uint32_t d = some_dim(w, t), take = (uint32_t)any(w, 0, 1);
    switch (any(w, 0, 2)) {
    case 0: return APPEND(w, "aten.chunk.default", take, tensor(t), integer(any(w, 1, 3)), integer(d));
    case 1: return APPEND(w, "aten.split.Tensor", take, tensor(t), integer(any(w, 1, 4)), integer(d));
    default: return APPEND(w, "aten.tensor_split.sections", take, tensor(t), integer(any(w, 1, 3)), integer(d));
    }
}

/* Sizes of t with a dimension split in two, two merged, or all flat. */
static bool write_reshape(writer *w)
{
    static const char *const rows[] = {"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"};
    int32_t t = some(w, 1);
    if (t < 0 || rank(w, t) > 4)
        return false;
    const char *row = rows[any(w, 0, 2)];
    uint32_t d = some_dim(w, t), n = 0;
    word sizes = {WORD_NUMBERS, 0, {{0}}};
    int64_t how = any(w, 0, 3);
    for (uint32_t i = 0; i < rank(w, t); i++) {
        if (i == d && how == 0) {
            sizes.at[n++] = plain(any(w, 2, 3));
            sizes.at[n++] = plain(-1);
        } else if (i == d && how == 1 && i + 1 < rank(w, t)) {
            sizes.at[n++] = plain(-1);
            i++;
        } else if (how != 2) {
            sizes.at[n++] = size_of(t, i);
        }
    }
    sizes.n = n;
    if (how == 2)
        return APPEND(w, row, 0, tensor(t), integers(1, -1, -1));
    return how == 3 ? APPEND(w, "aten.flatten.using_ints", 0, tensor(t), integer(0), integer(d))
                    : APPEND(w, row, 0, tensor(t), sizes);
}

static bool write_expand(writer *w)
{
    int32_t t = some(w, 0), other = some(w, 1);
    uint32_t lead = (uint32_t)any(w, 0, 1), n = 0;
    if (t < 0 || other < 0 || rank(w, t) > 4)
        return false;
    number wide = any(w, 0, 1) ? size_of(other, some_dim(w, other)) : plain(any(w, 1, 3));
    word sizes = {WORD_NUMBERS, 0, {{0}}};
    if (lead)
        sizes.at[n++] = wide;
    for (uint32_t d = 0; d < rank(w, t); d++)
        sizes.at[n++] = dim_same_as(w->now.t[t]->sizes[d], 1) ? wide : any(w, 0, 1) ? plain(-1) : size_of(t, d);
    sizes.n = n;
    uint32_t d = (uint32_t)any(w, 0, rank(w, t));
    switch (any(w, 0, 3)) {
    case 0: return APPEND(w, "aten.unsqueeze.default", 0, tensor(t), integer(d));
    case 1: return APPEND(w, "aten.squeeze.default", 0, tensor(t));
    default: return APPEND(w, "aten.expand.default", 0, tensor(t), sizes);
    }
}

static bool write_join(writer *w)
{
    int32_t a = some(w, 1), b = some(w, 1);
    if (a < 0 || b < 0)
        return false;
    b = any(w, 0, 1) ? a : b;
    word both = {WORD_TENSORS, 2, {{.of = a}, {.of = b}}};
    uint32_t d = some_dim(w, a);
    return any(w, 0, 2) ? APPEND(w, "aten.cat.default", 0, both, integer(d))
                        : APPEND(w, "aten.stack.default", 0, both, integer(any(w, 0, 1)));
}

static bool write_product(writer *w)
{
    int32_t a = some(w, 1), b = some(w, 1);
    if (a < 0 || b < 0)
        return false;
    if (any(w, 0, 1))
        return APPEND(w, "aten.matmul.default", 0, tensor(a), tensor(b));
    if (rank(w, a) < 2)
        return false;
    int32_t turned = (int32_t)w->now.n;
    return APPEND(w, "aten.transpose.int", 0, tensor(a), integer(-1), integer(-2)) &&
           APPEND(w, "aten.matmul.default", 0, tensor(a), tensor(turned));
}

/* A weight with the channels of t, made first. */
static bool write_conv(writer *w, int32_t t)
{
    int32_t weight = (int32_t)w->now.n;
    word sizes = {WORD_NUMBERS, 4, {plain(any(w, 1, 3)), size_of(t, 1), plain(any(w, 1, 3)), plain(any(w, 1, 3))}};
    return APPEND(w, "aten.zeros.default", 0, sizes) &&
           APPEND(w, "aten.conv2d.default", 0, tensor(t), tensor(weight), one(WORD_NONE, plain(0)),
                  integers(2, any(w, 1, 2), any(w, 1, 2)), integers(2, any(w, 0, 1), any(w, 0, 1)));
}

static bool write_window(writer *w)
{
    int32_t t = some(w, 4);
    if (t < 0 || rank(w, t) != 4)
        return false;
    int64_t k = any(w, 1, 3), pad = any(w, 0, k / 2);
    word kernel = integers(2, k, k), stride = integers(2, any(w, 1, 2), any(w, 1, 2)), pads = integers(2, pad, pad);
    word wide = {WORD_NUMBERS, 2, {{t, 2, 2, 0, 1}, {t, 3, 3, 0, 2}}};
    switch (any(w, 0, 3)) {
    case 0: return write_conv(w, t);
    case 1:
        return APPEND(w, "aten.max_pool2d.default", 0, tensor(t), kernel, stride, pads, integers(2, 1, 1),
                      flag(any(w, 0, 1)));
    case 2: return APPEND(w, "aten.avg_pool2d.default", 0, tensor(t), kernel, stride, pads, flag(any(w, 0, 1)));
    default: return APPEND(w, "aten.upsample_nearest2d.default", 0, tensor(t), wide);
    }
}

static bool write_copy(writer *w)
{
    int32_t t = some(w, 1), other = some(w, 1);
    if (t < 0 || other < 0)
        return false;
    uint32_t d = some_dim(w, t), n = rank(w, t) < PROGRAM_LIST ? rank(w, t) : PROGRAM_LIST;
    number often = any(w, 0, 1) ? plain(any(w, 1, 2)) : size_of(other, some_dim(w, other));
    word pad = {WORD_NUMBERS, 2, {plain(any(w, -1, 2)), any(w, 0, 1) ? plain(any(w, -2, 2)) : often}};
    word repeats = integers(n, 1, 1);
    repeats.at[any(w, 0, n - 1)] = often;
    switch (any(w, 0, 3)) {
    case 0: return APPEND(w, "aten.repeat.default", 0, tensor(t), repeats);
    case 1: return APPEND(w, "aten.constant_pad_nd.default", 0, tensor(t), pad);
    case 2:
        return APPEND(w, "aten.sum.dim_IntList", 0, tensor(t), integers(1, d, d), flag(any(w, 0, 1)));
    default: {
        int32_t index = (int32_t)w->now.n;
        return APPEND(w, "aten.arange.default", 0, one(WORD_NUMBER, (number){t, d, 1, 0, 2})) &&
               APPEND(w, "aten.index_select.default", 0, tensor(t), integer(d), tensor(index));
    }
    }
}

/* Inputs of equal and of other sizes; some are 1. */
static void write_inputs(writer *w)
{
    static const uint32_t ranks[] = {1, 2, 2, 3, 4, 4};
    program *p = w->p;
    p->nin = (uint32_t)any(w, 1, PROGRAM_INPUTS);
    for (uint32_t i = 0; i < p->nin; i++) {
        input *in = &p->in[i];
        *in = (input){.rank = ranks[any(w, 0, 5)]};
        for (uint32_t d = 0; d < in->rank; d++) {
            int64_t how = any(w, 0, 9);
            in->symbol[d] = -1;
            in->size[d] = how == 0 ? 1 : 3;
            if (how < 2)
                continue;
            bool again = p->nsymbols && (how < 6 || p->nsymbols == PROGRAM_SYMBOLS);
            in->symbol[d] = (int32_t)(again ? any(w, 0, (int64_t)p->nsymbols - 1) : p->nsymbols++);
            if (!again)
                p->hints[in->symbol[d]] = any(w, 2, 8);
        }
        w->now.t[w->now.n++] = make_input(&w->s, in, p->hints);
    }
}

void program_make(bp_ctx *c, uint64_t seed, program *p)
{
    static bool (*const writers[])(writer *w) = {write_pointwise, write_order, write_cut, write_cut, write_pieces,
                                                 write_reshape, write_reshape, write_expand, write_join, write_product,
                                                 write_window, write_window, write_copy};
    writer w = {.s = {.c = c, .random = seed * 0x9e3779b97f4a7c15u | 1}, .p = p};
    *p = (program){.nin = 0};
    for (int i = 0; i < 4; i++) /* small seeds begin alike */
        (void)symbolic_random(&w.s, 2);
    write_inputs(&w);
    int64_t wanted = any(&w, 3, PROGRAM_STEPS - 1);
    for (int i = 0; i < 60 && p->n < wanted; i++)
        (void)writers[any(&w, 0, sizeof writers / sizeof *writers - 1)](&w);
    run_fini(&w.now);
}

/* -- printing ------------------------------------------------------------------------------------------------------ */

static void print_number(const number *n, buf *out)
{
    if (n->of < 0) {
        buf_printf(out, "%" PRId64, n->add);
        return;
    }
    buf_printf(out, "(size(t%d, %u)*%" PRId64 " + %" PRId64 ")//%" PRId64, n->of, n->dim, n->mul, n->add, n->div);
}

static void print_word(const word *w, buf *out)
{
    bool list = w->kind == WORD_TENSORS || w->kind == WORD_NUMBERS;
    if (w->kind == WORD_NONE) {
        buf_puts(out, "None");
        return;
    }
    buf_puts(out, list ? "[" : "");
    for (uint32_t i = 0; i < w->n; i++) {
        buf_puts(out, i ? ", " : "");
        if (w->kind == WORD_TENSOR || w->kind == WORD_TENSORS)
            buf_printf(out, "t%d", w->at[i].of);
        else
            print_number(&w->at[i], out);
    }
    buf_puts(out, list ? "]" : "");
}

void program_print(const program *p, buf *out)
{
    for (uint32_t i = 0; i < p->nin; i++) {
        buf_printf(out, "  t%u: [", i);
        for (uint32_t d = 0; d < p->in[i].rank; d++)
            if (p->in[i].symbol[d] < 0)
                buf_printf(out, "%s%" PRId64, d ? ", " : "", p->in[i].size[d]);
            else
                buf_printf(out, "%ss%d = %" PRId64, d ? ", " : "", p->in[i].symbol[d], p->hints[p->in[i].symbol[d]]);
        buf_puts(out, "]\n");
    }
    for (uint32_t i = 0; i < p->n; i++) {
        buf_printf(out, "  t%u = %s(", p->nin + i, p->at[i].row->target);
        for (uint32_t k = 0; k < p->at[i].n; k++) {
            buf_puts(out, k ? ", " : "");
            print_word(&p->at[i].args[k], out);
        }
        buf_printf(out, ")[%u]\n", p->at[i].take);
    }
}

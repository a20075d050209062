/* Shape rules with symbols: an operator's rule is run on fakes whose sizes are symbols, one for each number.
 *
 * What it says must be, at the recorded sizes, what the rule says of numbers; and so it must at other sizes for which
 * the facts hold that the rule asked for. Each case runs in every symbolic_mode. */
#include "host/tools/golden_symbols.h"
#include "host/tools/symbolic.h"
#include <inttypes.h>
#include <string.h>

enum { OTHERS = 3, VALUES = 256, DEEPEST = 4 };

golden_symbols *golden_symbols_new(void)
{
    golden_symbols *g = calloc(1, sizeof *g);
    uint32_t n = op_table_ready() ? op_count() : 0;
    if (g && !(g->rows = calloc(n ? n : 1, sizeof *g->rows))) {
        free(g);
        return NULL;
    }
    return g;
}

void golden_symbols_free(golden_symbols *g)
{
    if (g)
        free(g->rows);
    free(g);
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

typedef struct {
    golden_case *k;
    symbolic s;
    const op_row *row;
    enum symbolic_mode mode;
    VEC(bp_tensor *) from, to;          /* real tensors and their fakes */
    const int64_t *values;              /* NULL: symbols are made; else what is symbolic is evaluated */
} mapping;

static bp_tensor *mapped_tensor(mapping *m, bp_tensor *t)
{
    tensor_meta meta;
    for (uint32_t i = 0; i < m->from.len; i++)
        if (m->from.at[i] == t)
            return m->to.at[i];
    tensor_get_meta(t, &meta);
    bp_tensor *out = m->values ? symbolic_tensor_at(&m->s, t, m->values) : symbolic_fake(&m->s, &meta);
    if (!out || !vec_push(&m->from, t) || !vec_push(&m->to, out)) {
        tensor_unref(out);
        ctx_nomem(m->k->c);
        return NULL;
    }
    out->flags = t->flags;
    return out;
}

static bp_value mapped_number(mapping *m, bp_dim d, bool symint)
{
    int64_t v;
    if (m->values)
        return symbolic_at(&m->s, d, m->values, &v) ? value_int(v) : value_int(0);
    return symint && m->mode == MODE_SYMINTS ? value_dim(symbolic_number(&m->s, d.value)) : value_dim(d);
}

static bp_value mapped_value(mapping *m, const bp_value *v, bool symint, uint32_t depth)
{
    if (v->kind == BP_VALUE_TENSOR)
        return value_tensor(mapped_tensor(m, v->v.tensor));
    if (v->kind == BP_VALUE_INT)
        return mapped_number(m, v->v.dim, symint);
    if (v->kind != BP_VALUE_LIST || depth == DEEPEST)
        return *v;
    bp_value *items = arena_array(&m->k->memory, v->count, sizeof *items);
    if (!items) {
        ctx_nomem(m->k->c);
        return value_none();
    }
    for (uint32_t i = 0; i < v->count; i++)
        items[i] = mapped_value(m, &v->v.items[i], symint, depth + 1);
    return value_list(items, v->count);
}

static bp_value *mapped_args(mapping *m, const bp_value *args)
{
    const schema *s = m->row->schema;
    bp_value *out = arena_array(&m->k->memory, s->nargs, sizeof *out);
    for (uint32_t i = 0; out && i < s->nargs; i++)
        out[i] = mapped_value(m, &args[i], s->args[i].ty.type == TYPE_SYMINT, 0);
    return ctx_ok(m->k->c) ? out : NULL;
}

static void mapping_fini(mapping *m)
{
    for (uint32_t i = 0; i < m->to.len; i++)
        tensor_unref(m->to.at[i]);
    vec_fini(&m->from);
    vec_fini(&m->to);
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */

static bool dims_agree(const mapping *m, const char *what, uint32_t n, const bp_dim *sym, const bp_dim *want,
                       const int64_t *values, buf *why)
{
    for (uint32_t d = 0; d < n; d++) {
        int64_t v = 0;
        if (symbolic_at(&m->s, sym[d], values, &v) && v == want[d].value)
            continue;
        buf_printf(why, "%s %u is ", what, d);
        sym_print(m->s.e, sym[d], false, why);
        buf_printf(why, " = %" PRId64 ", the rule says %" PRId64, v, want[d].value);
        return false;
    }
    return true;
}

static bool outs_agree(const mapping *m, const shape_out *sym, const shape_out *want, const int64_t *values, buf *why)
{
    const tensor_meta *a = &sym->meta, *b = &want->meta;
    if (sym->absent != want->absent || sym->unknown != want->unknown || sym->alias_of != want->alias_of ||
        sym->alias_item != want->alias_item || sym->is_argument != want->is_argument) {
        buf_puts(why, "absent, unknown, alias or argument differ");
        return false;
    }
    if (sym->absent || sym->unknown)
        return true;
    if (a->dtype != b->dtype || a->rank != b->rank) {
        buf_puts(why, "type or rank differ");
        return false;
    }
    return dims_agree(m, "size", a->rank, a->sizes, b->sizes, values, why) &&
           dims_agree(m, "stride", a->rank, a->strides, b->strides, values, why) &&
           dims_agree(m, "offset", 1, &a->offset, &b->offset, values, why);
}

static bool calls_agree(const mapping *m, const shape_call *sym, const shape_call *want, const int64_t *values,
                        buf *why)
{
    if (sym->nout != want->nout) {
        buf_printf(why, "%u results, the rule says %u", sym->nout, want->nout);
        return false;
    }
    for (uint32_t i = 0; i < sym->nout; i++)
        if (!outs_agree(m, &sym->out[i], &want->out[i], values, why))
            return false;
    return true;
}

/* -- one case ------------------------------------------------------------------------------------------------------ */

static bp_status infer(const mapping *m, sym_env *e, const bp_value *args, shape_call *out)
{
    sym_scope former = sym_push(e, m->k->c);
    bp_status s = op_infer(m->k->c, m->row, args, out);
    sym_pop(former);
    return s;
}

/* The rule of numbers at these values of the symbols against what it said of the symbols. */
static bool agrees_at(mapping *m, const bp_value *args, const shape_call *sym, const int64_t *values, buf *why)
{
    mapping at = {.k = m->k, .s = m->s, .row = m->row, .values = values};
    shape_call want;
    bp_value *numbers = mapped_args(&at, args);
    bool ok = numbers && infer(&at, NULL, numbers, &want) == BP_OK && calls_agree(m, sym, &want, values, why);
    if (!ctx_ok(m->k->c)) {
        buf_puts(why, m->k->c->diag.message);
        diag_clear(&m->k->c->diag);
    }
    if (!ok) {
        buf_puts(why, " at ");
        symbolic_print(&m->s, values, why);
        for (uint32_t i = 0; i < sym_fact_count(m->s.e); i++) {
            buf_puts(why, i ? "; " : " where ");
            sym_print(m->s.e, sym_fact_at(m->s.e, i)->holds, false, why);
        }
    }
    mapping_fini(&at);
    return ok;
}

static void count(const mapping *m, golden_symbols *seen, uint32_t others)
{
    uint32_t all = sym_symbol_count(m->s.e), pinned = symbolic_pinned(&m->s);
    symbolic_runs *runs = &seen->runs[m->mode];
    seen->others += others;
    runs->none += all == 0;
    runs->stayed += all && !pinned;
    runs->in_part += pinned && pinned < all;
    runs->pinned += all && pinned == all;
    if (m->mode != MODE_SYMINTS)
        return;
    seen->rows[m->row->number].symbols += all;
    seen->rows[m->row->number].pinned += pinned;
}

static golden_verdict check_with(mapping *m, const bp_value *args, golden_symbols *seen, buf *why)
{
    int64_t values[VALUES];
    shape_call sym;
    bp_value *symbols = mapped_args(m, args);
    if (!symbols || infer(m, m->s.e, symbols, &sym) != BP_OK)
        return ctx_ok(m->k->c) ? CASE_FAILED : golden_judge_error(m->k, why);
    if (sym_symbol_count(m->s.e) > VALUES) {
        buf_puts(why, "too many sizes");
        return CASE_UNSUPPORTED;
    }
    symbolic_hints(&m->s, values);
    if (!agrees_at(m, symbols, &sym, values, why))
        return CASE_FAILED;
    uint32_t others = 0;
    for (uint32_t i = 0; i < OTHERS && symbolic_other(&m->s, values); i++, others++)
        if (!agrees_at(m, symbols, &sym, values, why))
            return CASE_FAILED;
    count(m, seen, others);
    return CASE_PASSED;
}

static golden_verdict check_mapped(golden_case *k, const op_row *row, const bp_value *args, enum symbolic_mode mode,
                                   golden_symbols *seen, buf *why)
{
    static const char *const modes[] = {"", " (SymInts are symbols)", " (each size is a symbol of its own)"};
    mapping m = {.k = k, .row = row, .mode = mode};
    if (!symbolic_begin(k->c, k->line + 1, &m.s)) {
        ctx_nomem(k->c);
        return golden_judge_error(k, why);
    }
    m.s.apart = mode == MODE_APART;
    golden_verdict v = check_with(&m, args, seen, why);
    if (v == CASE_FAILED)
        buf_puts(why, modes[mode]);
    mapping_fini(&m);
    symbolic_end(&m.s);
    return v;
}

/* Whether the rule of numbers takes the case, without data; else `why`. */
static bool takes_numbers(golden_case *k, const op_row *row, const bp_value *args)
{
    symbolic none = {.c = k->c};
    mapping m = {.k = k, .s = none, .row = row, .values = (const int64_t[]){0}};
    shape_call s;
    bp_value *fakes = mapped_args(&m, args);
    bool ok = fakes && infer(&m, NULL, fakes, &s) == BP_OK;
    mapping_fini(&m);
    return ok;
}

static bp_status bind(golden_case *k, const op_row *row, const json_t *j, bp_value **args)
{
    enum { MOST = 32 };
    const json_t *kw = json_object_get(j, "kwargs");
    const char *names[MOST], *key;
    bp_value all, named[MOST];
    uint32_t n = 0;
    json_t *item;
    if (!golden_read_value(k, json_object_get(j, "args"), &all) || all.kind != BP_VALUE_LIST)
        return ctx_fail(k->c, BP_INVALID_ARGUMENT, "\"args\" is no list");
    json_object_foreach((json_t *)(uintptr_t)kw, key, item) {
        if (n == MOST || !golden_read_value(k, item, &named[n]))
            return ctx_fail(k->c, BP_INVALID_ARGUMENT, "\"kwargs\" cannot be read");
        names[n++] = key;
    }
    return op_bind(k->c, row, all.v.items, all.count, names, named, n, args);
}

static golden_verdict check(golden_case *k, const op_row *row, const json_t *j, golden_symbols *seen, buf *why)
{
    bp_value *args;
    if (bind(k, row, j, &args) != BP_OK)
        return golden_judge_error(k, why);
    if (!takes_numbers(k, row, args)) {
        bool data = k->c->diag.code == BP_FAILED_PRECONDITION;
        buf_puts(why, data ? "a size depends on data that a fake tensor does not have" : k->c->diag.message);
        diag_clear(&k->c->diag);
        return data ? CASE_UNSUPPORTED : CASE_FAILED;
    }
    golden_verdict v = CASE_PASSED;
    for (enum symbolic_mode mode = MODE_NUMBERS; mode <= MODE_APART && v == CASE_PASSED; mode++)
        v = check_mapped(k, row, args, mode, seen, why);
    return v;
}

golden_verdict golden_check_rule(golden_case *k, const json_t *j, golden_symbols *seen, buf *why)
{
    const char *target = json_string_value(json_object_get(j, "op"));
    const op_row *row = target ? op_by_target(target) : NULL;
    if (!target || (row && (row->flags & OP_ITEM)))
        return CASE_SKIPPED;
    if (!row) {
        buf_printf(why, "operator %s is not in the table", target);
        return CASE_UNSUPPORTED;
    }
    arena_mark mark = arena_get_mark(&k->c->scratch);
    golden_verdict v = check(k, row, j, seen, why);
    arena_reset(&k->c->scratch, mark);
    return v;
}

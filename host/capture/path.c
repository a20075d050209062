/* Items of a path: comparing, copying and printing them. */
#include "host/capture/path.h"
#include "host/graph/graph.h"
#include <string.h>

static void each_in(const bp_value *v, void (*each)(void *arg, ref r), void *arg)
{
    if (v->kind == BP_VALUE_NODE)
        each(arg, v->v.node);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        each_in(&v->v.items[i], each, arg);
}

void item_each_ref(const item *it, void (*each)(void *arg, ref r), void *arg)
{
    if (it->kind == ITEM_BREAK)
        each(arg, it->brk.value);
    for (uint32_t i = 0; it->kind == ITEM_NODE && i < it->node.nargs; i++)
        each_in(&it->node.args[i], each, arg);
    for (uint32_t i = 0; it->kind == ITEM_NODE && i < it->node.nneeds; i++)
        each(arg, it->node.needs[i]);
    if (it->kind != ITEM_END && it->kind != ITEM_STEP)
        return;
    for (uint32_t i = 0; i < it->end.nouts; i++)
        if (it->end.outs[i].handle && it->end.outs[i].source < 0)
            each(arg, it->end.outs[i].value);
    for (uint32_t i = 0; i < it->end.nwrites; i++)
        each(arg, it->end.writes[i].value);
    for (uint32_t i = 0; i < it->end.nsymbols; i++)
        each(arg, it->end.symbols[i].value);
}

void value_each_dim(const bp_value *v, void (*each)(void *arg, bp_dim d), void *arg)
{
    if (v->kind == BP_VALUE_INT)
        each(arg, v->v.dim);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        value_each_dim(&v->v.items[i], each, arg);
}

void meta_each_dim(const tensor_meta *m, void (*each)(void *arg, bp_dim d), void *arg)
{
    for (uint32_t d = 0; d < m->rank; d++) {
        each(arg, m->sizes[d]);
        each(arg, m->strides[d]);
    }
    each(arg, m->offset);
}

void end_each_dim(const item *it, void (*each)(void *arg, bp_dim d), void *arg)
{
    const step_spec *s = it->kind == ITEM_STEP ? it->end.step : NULL;
    for (uint32_t i = 0; i < it->end.nouts; i++)
        if (it->end.outs[i].handle) {
            meta_each_dim(&it->end.outs[i].meta, each, arg);
            meta_each_dim(&it->end.outs[i].base, each, arg);
        }
    for (uint32_t i = 0; s && i < s->nargs; i++)
        value_each_dim(&s->args[i], each, arg);
    each(arg, it->end.rng_total);
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */

bool meta_eq(const tensor_meta *a, const tensor_meta *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->device.kind != b->device.kind ||
        a->device.index != b->device.index)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (!dim_same(a->sizes[d], b->sizes[d]) || !dim_same(a->strides[d], b->strides[d]))
            return false;
    return true;
}

/* Two captures make two graphs: they are the same when they are the same program. */
static bool same_graph(const bp_value *a, const bp_value *b)
{
    const bp_graph_module *x = a->v.tensor, *y = b->v.tensor;
    return x == y || hash128_eq(x->address, y->address);
}

static bool arg_eq(const bp_value *a, const bp_value *b)
{
    return a->kind == BP_VALUE_GRAPH && b->kind == BP_VALUE_GRAPH ? same_graph(a, b) : value_eq(a, b);
}

static bool node_eq(const item *a, const item *b)
{
    if (a->node.op != b->node.op || a->node.nargs != b->node.nargs || a->node.nresults != b->node.nresults ||
        !dim_same(a->node.rng_offset, b->node.rng_offset))
        return false;
    for (uint32_t i = 0; i < a->node.nargs; i++)
        if (!arg_eq(&a->node.args[i], &b->node.args[i]))
            return false;
    for (uint32_t i = 0; i < a->node.nresults; i++)
        if (!meta_eq(&a->node.metas[i], &b->node.metas[i]) ||
            item_requires(a, a->node.first + i) != item_requires(b, b->node.first + i))
            return false;
    return true;
}

static bool out_eq(const out_spec *a, const out_spec *b)
{
    return a->handle == b->handle && a->source == b->source && a->storage == b->storage && a->value == b->value &&
           (!a->handle || a->is_source || (meta_eq(&a->meta, &b->meta) && dim_same(a->meta.offset, b->meta.offset)));
}

static bool end_eq(const item *a, const item *b)
{
    if (a->end.nouts != b->end.nouts || a->end.nwrites != b->end.nwrites ||
        !dim_same(a->end.rng_total, b->end.rng_total))
        return false;
    if (!a->end.tree != !b->end.tree || (a->end.tree && strcmp(a->end.tree, b->end.tree) != 0))
        return false;
    for (uint32_t i = 0; i < a->end.nouts; i++)
        if (!out_eq(&a->end.outs[i], &b->end.outs[i]))
            return false;
    for (uint32_t i = 0; i < a->end.nwrites; i++)
        if (a->end.writes[i].source != b->end.writes[i].source || a->end.writes[i].value != b->end.writes[i].value)
            return false;
    return true;
}

static bool step_eq(const step_spec *a, const step_spec *b)
{
    if (a->fn != b->fn || a->user != b->user || a->op != b->op || a->nargs != b->nargs || a->nobjects != b->nobjects ||
        memcmp(&a->ambient, &b->ambient, sizeof a->ambient) != 0)
        return false;
    for (uint32_t i = 0; i < a->nargs; i++)
        if (!value_eq(&a->args[i], &b->args[i]))
            return false;
    return true;
}

bool item_eq(const item *a, const item *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == ITEM_NODE)
        return node_eq(a, b);
    if (a->kind == ITEM_STEP)
        return step_eq(a->end.step, b->end.step) && end_eq(a, b);
    return a->kind == ITEM_END ? end_eq(a, b) : a->brk.ask == b->brk.ask && a->brk.value == b->brk.value;
}

/* -- copying ------------------------------------------------------------------------------------------------------- */

static void release_graph(void *gm)
{
    gm_unref(gm);
}

/* A graph lives as long as an arena that has it as a value. */
static bool hold_graph(arena *a, bp_graph_module *gm)
{
    if (!arena_hold(a, release_graph, gm))
        return false;
    gm_ref(gm);
    return true;
}

bp_value value_copy(arena *a, const bp_value *v, bool *ok)
{
    bp_value to = *v;
    if (v->kind == BP_VALUE_GRAPH)
        *ok &= hold_graph(a, v->v.tensor);
    if (v->kind == BP_VALUE_STRING) {
        to.v.str = arena_strdup(a, v->v.str);
        *ok &= to.v.str != NULL;
    }
    if (v->kind != BP_VALUE_LIST)
        return to;
    bp_value *items = arena_array(a, v->count, sizeof *items);
    *ok &= items != NULL;
    for (uint32_t i = 0; items && i < v->count; i++)
        items[i] = value_copy(a, &v->v.items[i], ok);
    to.v.items = items;
    return to;
}

tensor_meta meta_copy(arena *a, const tensor_meta *m, bool *ok)
{
    tensor_meta to = *m;
    bp_dim *dims = arena_array(a, 2 * (size_t)m->rank, sizeof *dims);
    if (!dims) {
        *ok = false;
        return to;
    }
    if (m->rank) {
        memcpy(dims, m->sizes, m->rank * sizeof *dims);
        memcpy(dims + m->rank, m->strides, m->rank * sizeof *dims);
    }
    to.sizes = dims;
    to.strides = dims + m->rank;
    return to;
}

static bool copy_node(arena *a, const item *from, item *to)
{
    bool ok = true;
    bp_value *args = arena_array(a, from->node.nargs, sizeof *args);
    tensor_meta *metas = arena_array(a, from->node.nresults, sizeof *metas);
    if (!args || !metas)
        return false;
    for (uint32_t i = 0; i < from->node.nargs; i++)
        args[i] = value_copy(a, &from->node.args[i], &ok);
    for (uint32_t i = 0; i < from->node.nresults; i++)
        metas[i] = meta_copy(a, &from->node.metas[i], &ok);
    to->node.args = args;
    to->node.metas = metas;
    if (from->node.nneeds)
        to->node.needs = arena_memdup(a, from->node.needs, from->node.nneeds * sizeof *from->node.needs);
    ok &= !from->node.nneeds || to->node.needs;
    if (from->node.requires)
        to->node.requires = arena_memdup(a, from->node.requires, from->node.nresults);
    return ok && !from->node.requires == !to->node.requires;
}

static bool copy_end(arena *a, const item *from, item *to)
{
    bool ok = true;
    out_spec *outs = arena_array(a, from->end.nouts, sizeof *outs);
    to->end.writes = arena_memdup(a, from->end.writes, from->end.nwrites * sizeof *from->end.writes);
    if (!outs || !to->end.writes)
        return false;
    for (uint32_t i = 0; i < from->end.nouts; i++) {
        outs[i] = from->end.outs[i];
        outs[i].meta = meta_copy(a, &outs[i].meta, &ok);
        outs[i].base = meta_copy(a, &outs[i].base, &ok);
    }
    to->end.outs = outs;
    if (from->end.nsymbols)
        to->end.symbols = arena_memdup(a, from->end.symbols, from->end.nsymbols * sizeof *from->end.symbols);
    ok &= !from->end.nsymbols || to->end.symbols;
    if (from->end.tree)
        to->end.tree = arena_strdup(a, from->end.tree);
    return ok && !from->end.tree == !to->end.tree;
}

static bool copy_step(arena *a, const item *from, item *to)
{
    bool ok = true;
    step_spec *s = arena_memdup(a, from->end.step, sizeof *s);
    bp_value *args = arena_array(a, from->end.step->nargs, sizeof *args);
    const char *reason = arena_strdup(a, from->end.step->reason);
    if (!s || !args || !reason || !copy_end(a, from, to))
        return false;
    for (uint32_t i = 0; i < s->nargs; i++)
        args[i] = value_copy(a, &from->end.step->args[i], &ok);
    s->args = args;
    s->reason = reason;
    to->end.step = s;
    return ok;
}

bool item_copy(arena *a, const item *from, item *to)
{
    *to = *from;
    if (from->file) {
        to->file = arena_strdup(a, from->file);
        if (!to->file)
            return false;
    }
    switch (from->kind) {
    case ITEM_NODE: return copy_node(a, from, to);
    case ITEM_END: return copy_end(a, from, to);
    case ITEM_STEP: return copy_step(a, from, to);
    default: return true;
    }
}

/* -- printing ------------------------------------------------------------------------------------------------------ */

static void print_ref(void *arg, ref r, buf *out)
{
    (void)arg;
    static const char *const kinds[] = {"", "in", "under", "arg"};
    buf_printf(out, "%%%s%u", kinds[ref_kind(r) >> 30], ref_index(r));
}

/* A symbol by its number in its environment, which means the same in all captures of a path. */
static void print_dim(bp_dim d, buf *out)
{
    if (d.sym)
        buf_printf(out, "$%u", d.sym);
    else
        buf_printf(out, "%lld", (long long)d.value);
}

static void print_list(const bp_value *v, void (*name)(void *arg, ref r, buf *out), void *arg, buf *out)
{
    buf_putc(out, '[');
    for (uint32_t i = 0; i < v->count; i++) {
        buf_puts(out, i ? ", " : "");
        value_print(&v->v.items[i], name, arg, out);
    }
    buf_putc(out, ']');
}

void value_print(const bp_value *v, void (*name)(void *arg, ref r, buf *out), void *arg, buf *out)
{
    switch (v->kind) {
    case BP_VALUE_NONE: buf_puts(out, "None"); break;
    case BP_VALUE_NODE: (name ? name : print_ref)(arg, v->v.node, out); break;
    case BP_VALUE_BOOL: buf_puts(out, v->v.i ? "True" : "False"); break;
    case BP_VALUE_INT: print_dim(v->v.dim, out); break;
    case BP_VALUE_FLOAT: buf_double(out, v->v.f[0]); break;
    case BP_VALUE_COMPLEX:
        buf_puts(out, "complex(");
        buf_double(out, v->v.f[0]);
        buf_puts(out, ", ");
        buf_double(out, v->v.f[1]);
        buf_putc(out, ')');
        break;
    case BP_VALUE_STRING: buf_quote(out, v->v.str); break;
    case BP_VALUE_DTYPE: buf_puts(out, dtype_get((bp_dtype)v->v.i)->brief); break;
    case BP_VALUE_DEVICE: buf_printf(out, "device(%d:%d)", v->v.device.kind, v->v.device.index); break;
    case BP_VALUE_LIST: print_list(v, name, arg, out); break;
    case BP_VALUE_GRAPH: buf_puts(out, ((const bp_graph_module *)v->v.tensor)->name); break;
    default: buf_printf(out, "<%u:%lld>", v->kind, (long long)v->v.i); break;
    }
}

void meta_print(const tensor_meta *m, buf *out)
{
    buf_printf(out, "%s[", dtype_get(m->dtype)->brief);
    for (uint32_t d = 0; d < m->rank; d++) {
        buf_puts(out, d ? ", " : "");
        print_dim(m->sizes[d], out);
    }
    for (uint32_t d = 0; d < m->rank; d++) {
        buf_puts(out, d ? ", " : "; ");
        print_dim(m->strides[d], out);
    }
    buf_putc(out, ']');
    if (m->device.kind != BP_CPU)
        buf_printf(out, "@%d:%d", m->device.kind, m->device.index);
}

static void print_node(const item *it, buf *out)
{
    buf_printf(out, "%%%u = %s(", it->node.first, it->node.op->target);
    for (uint32_t i = 0; i < it->node.nargs; i++) {
        buf_puts(out, i ? ", " : "");
        value_print(&it->node.args[i], NULL, NULL, out);
    }
    buf_putc(out, ')');
}

void item_print(const item *it, buf *out)
{
    if (it->kind == ITEM_NODE) {
        print_node(it, out);
    } else if (it->kind == ITEM_BREAK) {
        buf_printf(out, "%s(", ask_name(it->brk.ask));
        print_ref(NULL, it->brk.value, out);
        buf_putc(out, ')');
    } else if (it->kind == ITEM_STEP) {
        buf_printf(out, "opaque step: %s; it takes %u tensors; keep %u, write %u inputs", it->end.step->reason,
                   it->end.step->nobjects, it->end.nouts - it->end.step->nobjects, it->end.nwrites);
    } else {
        buf_printf(out, "return %u results, write %u inputs", it->end.nouts, it->end.nwrites);
    }
}

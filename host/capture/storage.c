/* Values of handles: reading through chains of views, writing through them, overlapping inputs.
 *
 * A storage has one current value, of its base's sizes. A handle's value is rebuilt from it along the handle's chain;
 * a write goes the chain back up, each step making the parent's new value. Strides of a value may differ from its
 * handle's (an operator in place keeps the layout, its functional form need not), so a chain that needs the layout is
 * given a contiguous value, on which every view is possible. */
#include "host/capture/sub.h"
#include <stdlib.h>
#include <string.h>

/* -- the operators that a trace records itself --------------------------------------------------------------------- */

enum trace_op {
#define TRACE_OP(name, id) TRACE_##name,
#include "host/capture/trace_ops.def"
#undef TRACE_OP
    TRACE_OPS
};
static const char *const op_ids[] = {
#define TRACE_OP(name, id) id,
#include "host/capture/trace_ops.def"
#undef TRACE_OP
};

static bool is_op(const op_row *op, enum trace_op which)
{
    return !strcmp(op->id, op_ids[which]);
}

/* Arguments that are refs already, in the trace's arena. */
static bp_value *keep(trace *t, const bp_value *args, uint32_t nargs)
{
    bool ok = true;
    bp_value *to = arena_array(&t->arena, nargs, sizeof *to);
    for (uint32_t i = 0; to && i < nargs; i++)
        to[i] = value_copy(&t->arena, &args[i], &ok);
    return to && ok ? to : (trace_nomem(t), NULL);
}

/* Records operator `which` on positional arguments (refs). 0: the capture has ended. */
static ref emit(trace *t, enum trace_op which, const bp_value *pos, uint32_t npos, const char *name, bp_value named)
{
    const op_row *op = op_by_id(op_ids[which]);
    bp_value *args;
    ref first = 0;
    if (!op) {
        trace_stop(t, TRACE_DECLINED, "operator \"%s\" is not there", op_ids[which]);
        return 0;
    }
    arena_mark mark = arena_get_mark(&t->c->scratch);
    bool ok = op_bind(t->c, op, pos, npos, &name, &named, name ? 1 : 0, &args) == BP_OK;
    if (ok && (args = keep(t, args, op->schema->nargs)))
        ok = trace_node(t, op, args, NULL, 0, &first) == BP_OK;
    arena_reset(&t->c->scratch, mark);
    return ok ? first : 0;
}

static bp_value of_ref(ref r)
{
    return (bp_value){.kind = BP_VALUE_NODE, .v.node = r};
}

static bp_value of_dims(trace *t, const bp_dim *d, uint32_t n)
{
    bp_value *items = arena_array(&t->arena, n, sizeof *items);
    if (!items)
        trace_nomem(t);
    for (uint32_t i = 0; items && i < n; i++)
        items[i] = value_dim(d[i]);
    return value_list(items, items ? n : 0);
}

static ref contiguous(trace *t, ref r)
{
    if (tensor_is_contiguous(trace_fake(t, r)))
        return r;
    bp_value format = {.kind = BP_VALUE_MEMORY_FORMAT, .v.i = BP_CONTIGUOUS}, v = of_ref(r);
    return emit(t, TRACE_clone, &v, 1, "memory_format", format);
}

ref trace_cast(trace *t, ref r, bp_dtype dtype)
{
    bp_value v = of_ref(r);
    return trace_fake(t, r)->dtype == dtype ? r : emit(t, TRACE_to_copy, &v, 1, "dtype", value_dtype(dtype));
}

ref trace_expand(trace *t, ref r, const bp_tensor *like)
{
    bp_value pos[2] = {of_ref(r), of_dims(t, like->sizes, like->rank)};
    return emit(t, TRACE_expand, pos, 2, NULL, value_none());
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

bool trace_same_layout(const bp_tensor *a, const bp_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->device_kind != b->device_kind ||
        a->device_index != b->device_index)
        return false;
    for (uint32_t k = 0; k < 2u * a->rank; k++)
        if (!dim_same(a->sizes[k], b->sizes[k]) && dim_prove(DIM_EQ, a->sizes[k], b->sizes[k]) != DIM_TRUE)
            return false;
    return true;
}

/* seen: autograd sees it. */
static void print_key(buf *key, ref parent, const op_row *op, const bp_value *args, uint32_t nargs, bool seen)
{
    buf_printf(key, seen ? "%u %u" : "%u %u -", parent, op->number);
    for (uint32_t i = 1; i < nargs; i++) {
        buf_putc(key, ' ');
        value_print(&args[i], NULL, NULL, key);
    }
}

/* The value of a view operator on `parent`, recorded once a segment. */
static ref view_of(trace *t, ref parent, const op_row *op, const bp_value *args, uint32_t nargs, uint32_t result)
{
    buf key = {0};
    print_key(&key, parent, op, args, nargs,
              trace_grad_on(t) || !(trace_fake(t, parent)->flags & TENSOR_REQUIRES_GRAD));
    map_value *seen = key.failed ? NULL : map_put(&t->views, (str){key.s, key.n}, NULL);
    buf_fini(&key);
    if (!seen)
        return trace_nomem(t), 0;
    if (seen->u)
        return (ref)seen->u + result;
    bp_value *with = arena_memdup(&t->arena, args, nargs * sizeof *with);
    if (!with)
        return trace_nomem(t), 0;
    with[0] = of_ref(parent);
    ref first;
    if (trace_node(t, op, with, NULL, 0, &first) != BP_OK)
        return 0;
    seen->u = first;
    return first + result;
}

/* The range under a group, at member `fs`: its elements by their place in the range. */
static int64_t place_in_group(const trace *t, const fake_storage *fs)
{
    const bp_tensor *first = bind_get(t->r->vals, REF_BASE | (uint32_t)fs->group->source);
    const bp_tensor *member = bind_input(t->r->vals, (uint32_t)fs->source);
    if (!first)
        return -1;
    return ((char *)tensor_ptr(member) - (char *)tensor_ptr(first)) / (int64_t)dtype_size(member->dtype);
}

static bool geometry_args(trace *t, const fake_storage *fs, bp_value *pos)
{
    const bp_tensor *member = bind_input(t->r->vals, (uint32_t)fs->source);
    int64_t at = place_in_group(t, fs);
    pos[0] = of_ref(fs->group->cur);
    pos[1] = of_dims(t, member->sizes, member->rank);
    pos[2] = of_dims(t, member->strides, member->rank);
    pos[3] = value_int(at);
    return at >= 0;
}

static ref whole(trace *t, fake_storage *fs)
{
    if (!fs->group)
        return fs->cur;
    const op_row *op = op_by_id(op_ids[TRACE_as_strided]);
    bp_value pos[4];
    if (!op || op->schema->nargs != 4) {
        trace_stop(t, TRACE_DECLINED, "operator \"as_strided\" is not there, and overlapping inputs need it");
        return 0;
    }
    return geometry_args(t, fs, pos) ? view_of(t, fs->group->cur, op, pos, 4, 0) : 0;
}

static ref read_handle(trace *t, uint32_t n)
{
    const trace_handle *h = &t->handles.at[n];
    if (!h->parent)
        return whole(t, h->fs);
    ref p = read_handle(t, h->parent);
    if (!p)
        return 0;
    h = &t->handles.at[n];
    if (!trace_same_layout(trace_fake(t, p), t->handles.at[h->parent].t)) {
        if (is_op(h->view, TRACE_as_strided)) {
            trace_stop(t, TRACE_DECLINED, "as_strided of a tensor whose layout an operator in place has changed");
            return 0;
        }
        p = contiguous(t, p);
    }
    return p ? view_of(t, p, h->view, h->args, h->nargs, h->result) : 0;
}

static void foreign(trace *t, const bp_tensor *h)
{
    if (h->flags & TENSOR_POISONED || tensor_is_fake(h))
        trace_stop(t, TRACE_REFUSED, "a fake tensor of a finished capture is used, made at %s:%d",
                   h->file ? h->file : "?", h->line);
    else
        trace_stop(t, TRACE_REFUSED, "a tensor is used that is neither an argument, an attribute nor made in \"%s\"",
                   t->r->name);
    diag_hint(&t->c->diag, "read it with bp_attr(f, module, \"name\"), pass it as an argument, or bake it in with "
                           "bp_constant");
}

ref trace_read(trace *t, const bp_tensor *h)
{
    if (t->why != TRACE_RUNNING)
        return 0;
    if (!trace_handle_of(t, h)) {
        foreign(t, h);
        return 0;
    }
    ref r = read_handle(t, h->fake_id);
    bool apart = r && trace_fake(t, r)->flags & TENSOR_REQUIRES_GRAD && !(h->flags & TENSOR_REQUIRES_GRAD);
    bp_value v = of_ref(r);
    return apart && trace_grad_on(t) ? emit(t, TRACE_detach, &v, 1, NULL, value_none()) : r;
}

/* -- history ------------------------------------------------------------------------------------------------------- */

bp_status trace_check_history(trace *t, const bp_tensor *h)
{
    const trace_handle *at = trace_handle_of(t, h);
    if (!at || !at->fs->hidden || !(h->flags & TENSOR_REQUIRES_GRAD))
        return BP_OK;
    return trace_stop(t, TRACE_DECLINED, "the gradient of a tensor is asked for that was written where autograd does "
                                         "not see it: without grad mode, or through detach");
}

/* What a write under grad mode gives history to: the whole storage, and every view that follows it. */
static void spread_history(trace *t, const fake_storage *fs)
{
    for (uint32_t i = 1; i < t->handles.len; i++) {
        trace_handle *h = &t->handles.at[i];
        bool follows = h->fs == fs && h->kind != VIEW_DETACHED && h->kind != VIEW_WITHOUT_GRAD;
        if (follows && (dtype_is_float(h->t->dtype) || dtype_is_complex(h->t->dtype)))
            h->t->flags = (uint8_t)((h->t->flags & ~TENSOR_IS_LEAF) | TENSOR_REQUIRES_GRAD);
    }
}

/* h is written, and has the flags that the write gives it. */
static bp_status note_history(trace *t, uint32_t n, ref value)
{
    const trace_handle *h = &t->handles.at[n];
    fake_storage *fs = h->fs;
    bool carries = t->handles.at[fs->base].t->flags & TENSOR_REQUIRES_GRAD ||
                   trace_fake(t, fs->cur)->flags & TENSOR_REQUIRES_GRAD;
    if (!trace_grad_on(t) || !(h->t->flags & TENSOR_REQUIRES_GRAD)) {
        fs->hidden |= carries;
        return BP_OK;
    }
    if (h->kind == VIEW_DETACHED || h->kind == VIEW_WITHOUT_GRAD)
        return trace_stop(t, TRACE_DECLINED, "a view is written whose history is not that of its memory");
    if (!h->parent && !(trace_fake(t, value)->flags & TENSOR_REQUIRES_GRAD))
        return trace_stop(t, TRACE_DECLINED, "a tensor that requires grad is overwritten by one that does not");
    if (fs->group)
        return trace_stop(t, TRACE_DECLINED, "inputs overlap, and one is written under grad mode");
    if (fs->source >= 0 && !bind_may_write(t->r->vals, (uint32_t)fs->source))
        return trace_stop(t, TRACE_DECLINED, BIND_NOT_WRITTEN);
    spread_history(t, fs);
    return BP_OK;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

/* parent with `value` in the place that a view operator names, by the operator that says it best. */
static ref scatter_by_name(trace *t, ref parent, const trace_handle *h, ref value)
{
    bp_value pos[6] = {of_ref(parent), of_ref(value)};
    for (uint32_t i = 1; i < h->nargs && i < 5; i++)
        pos[i + 1] = h->args[i];
    return emit(t, is_op(h->view, TRACE_select) ? TRACE_select_scatter : TRACE_slice_scatter, pos, h->nargs + 1, NULL,
                value_none());
}

/* Whether strides leave room for what lies between them, from the smallest one up: else some element may be reached
 * twice, and what a write gives depends on its order. */
static bool reaches_once(const bp_tensor *v)
{
    int64_t reach = 0, below = -1;
    for (uint32_t done = 0; done < v->rank; done++) {
        int64_t step = INT64_MAX, extent = 0, equal = 0;
        for (uint32_t d = 0; d < v->rank; d++)
            if (tensor_dim(v, d) > 1 && tensor_step(v, d) > below && tensor_step(v, d) <= step) {
                equal = tensor_step(v, d) == step ? equal + 1 : 1;
                step = tensor_step(v, d);
                extent = (tensor_dim(v, d) - 1) * step;
            }
        if (equal > 1 || (equal && step <= reach))
            return tensor_nelem(v) == 0;
        reach += extent;
        below = step;
    }
    return true;
}

/* The same for any view: where the operator would put its result on a contiguous parent. */
static ref scatter_by_place(trace *t, ref parent, const trace_handle *h, ref value)
{
    parent = contiguous(t, parent);
    ref on = parent ? view_of(t, parent, h->view, h->args, h->nargs, h->result) : 0;
    if (!on)
        return 0;
    const bp_tensor *v = trace_fake(t, on), *p = trace_fake(t, parent);
    if (v->dtype != p->dtype || !reaches_once(v)) {
        trace_stop(t, TRACE_DECLINED, "a write through %s is not recorded", h->view->target);
        return 0;
    }
    if (dim_eq(tensor_numel(t->c, v), tensor_numel(t->c, p)) && tensor_is_contiguous(v)) {
        bp_value back[2] = {of_ref(value), of_dims(t, p->sizes, p->rank)};
        return emit(t, TRACE_reshape, back, 2, NULL, value_none());
    }
    bp_value pos[5] = {of_ref(parent), of_ref(value), of_dims(t, v->sizes, v->rank), of_dims(t, v->strides, v->rank),
                       value_dim(v->offset)};
    return emit(t, TRACE_as_strided_scatter, pos, 5, NULL, value_none());
}

static ref scatter(trace *t, ref parent, const trace_handle *h, ref value)
{
    bool named = (is_op(h->view, TRACE_select) && op_by_id(op_ids[TRACE_select_scatter])) ||
                 (is_op(h->view, TRACE_slice) && op_by_id(op_ids[TRACE_slice_scatter]));
    if (named)
        return scatter_by_name(t, parent, h, value);
    if (is_op(h->view, TRACE_transpose) || is_op(h->view, TRACE_t)) {
        bp_value *args = arena_memdup(&t->arena, h->args, h->nargs * sizeof *args);
        if (!args)
            return trace_nomem(t), 0;
        return view_of(t, value, h->view, args, h->nargs, 0); /* its own inverse */
    }
    if (is_op(h->view, TRACE_as_strided) && !tensor_is_contiguous(trace_fake(t, parent))) {
        trace_stop(t, TRACE_DECLINED, "a write through as_strided of a tensor that is not contiguous");
        return 0;
    }
    return scatter_by_place(t, parent, h, value);
}

/* Inputs that overlap input i become one storage: its value is the whole range under them. */
static bp_status make_group(trace *t, uint32_t i, const bool *member, uint32_t n)
{
    const bindings *v = t->r->vals;
    uint32_t first = 0;
    while (!member[first])
        first++;
    fake_storage *g = trace_add_storage(t, (int32_t)first, REF_BASE | first);
    if (!g)
        return BP_RESOURCE_EXHAUSTED;
    bp_tensor *base = bind_get(t->r->vals, REF_BASE | first);
    tensor_meta m;
    for (uint32_t j = 0; j < n; j++)
        if (member[j] && bind_input(v, j)->dtype != bind_input(v, i)->dtype)
            return trace_stop(t, TRACE_DECLINED, "inputs of different types overlap, and one of them is written");
    if (!base)
        return trace_nomem(t);
    tensor_get_meta(base, &m);
    g->flat = tensor_new_fake(t->c, &m);
    for (uint32_t j = 0; j < n; j++) {
        trace_source *s = &t->sources.at[j];
        if (member[j] && !s->fs && !(s->fs = trace_add_storage(t, (int32_t)j, REF_INPUT | j)))
            return BP_RESOURCE_EXHAUSTED;
        if (member[j] && s->fs->written)
            return trace_stop(t, TRACE_DECLINED, "an input was written before one that overlaps it was known");
        if (member[j] && !s->touched) { /* the range under them all depends on how far each reaches: guarded, too */
            s->touched = true;
            if (!vec_push(&vec_last(&t->segments).touched, j))
                return trace_nomem(t);
        }
        if (member[j] && s->handle) /* where it lies among the others is no expression */
            TRY(trace_specialize(t, t->handles.at[s->handle].t));
        if (member[j]) {
            s->fs->group = g;
            s->fs->hidden |= (bind_input(v, j)->flags & TENSOR_REQUIRES_GRAD) != 0; /* the range has no history */
        }
    }
    return g->flat ? BP_OK : trace_nomem(t);
}

/* The first write to an input: from this segment on its overlaps are guarded (C6.2). */
static bp_status first_write(trace *t, fake_storage *fs)
{
    uint32_t n = t->r->vals->ninputs, i = (uint32_t)fs->source;
    bool *member = arena_array(&t->arena, n, sizeof *member);
    if (!member || !vec_push(&vec_last(&t->segments).written, i))
        return trace_nomem(t);
    fs->guarded = true;
    return inputs_component(t->r->vals->inputs, n, i, member) > 1 ? make_group(t, i, member, n) : BP_OK;
}

bp_status trace_write(trace *t, const bp_tensor *h, ref value)
{
    uint32_t n = h->fake_id;
    fake_storage *fs = t->handles.at[n].fs;
    if (t->sub && !sub_made(t, fs))
        return sub_refuse_write(t, h);
    if (fs->source >= 0 && !fs->guarded && !(fs->group && fs->group->written))
        TRY(first_write(t, fs));
    if (value)
        TRY(note_history(t, n, value));
    for (; value && t->handles.at[n].parent; n = t->handles.at[n].parent) {
        ref p = read_handle(t, t->handles.at[n].parent);
        trace_handle at = t->handles.at[n];
        value = p ? scatter(t, p, &at, value) : 0;
    }
    bp_value pos[5];
    if (value && fs->group) {
        pos[1] = of_ref(value);
        bp_value at[4];
        if (!geometry_args(t, fs, at))
            return trace_nomem(t);
        pos[0] = at[0], pos[2] = at[1], pos[3] = at[2], pos[4] = at[3];
        value = emit(t, TRACE_as_strided_scatter, pos, 5, NULL, value_none());
        fs = fs->group;
    }
    if (!value)
        return BP_ABORTED;
    fs->cur = value;
    fs->written = true;
    return BP_OK;
}

/* An attribute that the function asks for behind a write: it may overlap nothing that was written, and its overlaps are
 * guarded here, because the written inputs' own guards were checked without it. */
bp_status trace_source_added(trace *t, uint32_t source)
{
    const bindings *v = t->r->vals;
    for (uint32_t i = 0; i < t->storages.len; i++) {
        const fake_storage *fs = t->storages.at[i];
        if (fs->source < 0 || !(fs->guarded || fs->group))
            continue;
        const bp_tensor *w = bind_input(v, (uint32_t)fs->source), *a = bind_input(v, source);
        if (w != a && tensor_may_overlap(w, a))
            return trace_stop(t, TRACE_DECLINED,
                              "attribute \"%s\" overlaps an input that was written before it was read",
                              t->sources.at[source].name);
        if (!vec_push(&vec_last(&t->segments).written, (uint32_t)fs->source))
            return trace_nomem(t);
    }
    return BP_OK;
}

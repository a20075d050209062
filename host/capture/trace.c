/* The life of a trace: running the function, appending items, ending. What is recorded how is in record.c, the values
 * of handles in storage.c, slices in slice.c. */
#include "host/capture/sub.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint epochs;

bp_status trace_stop(trace *t, enum trace_end why, const char *fmt, ...)
{
    if (t->why != TRACE_RUNNING)
        return BP_ABORTED;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->reason, sizeof t->reason, fmt, ap);
    va_end(ap);
    t->why = why;
    /* Everything that the function still does is void: the pending error makes it so. */
    ctx_fail(t->c, why == TRACE_REFUSED ? BP_FAILED_PRECONDITION : BP_ABORTED, "%s", t->reason);
    return t->c->diag.code;
}

bp_status trace_nomem(trace *t)
{
    diag_nomem(&t->c->diag);
    if (t->why == TRACE_RUNNING)
        t->why = TRACE_REFUSED;
    return BP_RESOURCE_EXHAUSTED;
}

/* -- items --------------------------------------------------------------------------------------------------------- */

bp_status trace_emit(trace *t, const item *it)
{
    uint32_t k = t->items.len;
    if (!t->sub && k < t->r->nexpect && !item_eq(t->r->expect[k], it)) {
        buf was = {0}, is = {0};
        item_print(t->r->expect[k], &was);
        item_print(it, &is);
        trace_stop(t, TRACE_IMPURE, "\"%s\" is impure: operation %u was %s at %s:%d, now it is %s at %s:%d", t->r->name,
                   k, buf_text(&was), t->r->expect[k]->file ? t->r->expect[k]->file : "?", t->r->expect[k]->line,
                   buf_text(&is), it->file ? it->file : "?", it->line);
        buf_fini(&was);
        buf_fini(&is);
        return BP_ABORTED;
    }
    return vec_push(&t->items, *it) ? BP_OK : trace_nomem(t);
}

bp_status trace_cut(trace *t)
{
    map_fini(&t->views); /* only bases cross a break: views are rebuilt behind it (C3.7) */
    t->views = (map){0};
    if (t->segments.len)
        vec_last(&t->segments).nsources = t->sources.len;
    sym_set_tag(t->env, t->segments.len);
    trace_segment s = {.first_item = t->items.len, .first_value = t->values.len, .rng_start = t->rng,
                       .ambient = t->c->ambient, .nsources = t->sources.len,
                       .first_symbol = sym_symbol_count(t->env)};
    return vec_push(&t->segments, s) ? BP_OK : trace_nomem(t);
}

/* The place that recorded most, for the message at the node limit. */
static const char *busiest(const trace *t, uint64_t *count)
{
    uint32_t i = 0;
    str key, best = {"?", 1};
    map_value *v;
    *count = 0;
    while (map_next(&t->lines, &i, &key, &v))
        if (v->u > *count) {
            *count = v->u;
            best = key;
        }
    return arena_strndup(&((trace *)(uintptr_t)t)->arena, best.s, best.n);
}

static bp_status count_node(trace *t)
{
    char place[256];
    int n = snprintf(place, sizeof place, "%s:%d", t->c->site_file ? t->c->site_file : "?", t->c->site_line);
    map_value *v = map_put(&t->lines, (str){place, (size_t)n < sizeof place ? (size_t)n : sizeof place - 1}, NULL);
    if (!v)
        return trace_nomem(t);
    v->u++;
    if (++t->nnodes <= t->r->node_limit)
        return BP_OK;
    uint64_t most;
    const char *where = busiest(t, &most);
    trace_stop(t, TRACE_REFUSED, "capturing \"%s\": more than %u operations were recorded; %s recorded %llu of them",
               t->r->name, t->r->node_limit, where ? where : "?", (unsigned long long)most);
    diag_hint(&t->c->diag, "a loop without end? keep its condition on tensors, or raise trace_node_limit");
    return BP_RESOURCE_EXHAUSTED;
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

typedef struct { trace *t; bool all; } folding;

static void fold_ref(void *arg, ref r)
{
    folding *f = arg;
    f->all &= ref_is_node(r) && f->t->values.at[r].folds;
}

/* Whether an item is made of constants alone, sizes too: asking for it is no break. */
static bool folds(trace *t, const item *it)
{
    folding f = {t, !(it->node.op->flags & (OP_RANDOM | OP_EFFECT | OP_CUSTOM))};
    for (uint32_t i = 0; i < it->node.nargs; i++)
        f.all &= !value_any(&it->node.args[i], value_is_symbol);
    item_each_ref(it, fold_ref, &f);
    return f.all;
}

static bp_status add_results(trace *t, item *it, bp_tensor *const *fakes, uint32_t n)
{
    bool ok = true, constant = folds(t, it), any = false;
    tensor_meta *metas = arena_array(&t->arena, n, sizeof *metas);
    uint8_t *requires = arena_array(&t->arena, n, 1);
    if (!metas || !requires || !vec_reserve(&t->values, (uint64_t)t->values.len + n))
        return trace_nomem(t);
    for (uint32_t i = 0; i < n; i++) {
        tensor_meta m;
        tensor_get_meta(fakes[i], &m);
        metas[i] = meta_copy(&t->arena, &m, &ok);
        any |= requires[i] = (fakes[i]->flags & TENSOR_REQUIRES_GRAD) != 0;
    }
    it->node.metas = metas;
    it->node.requires = any ? requires : NULL;
    it->node.nresults = n;
    it->node.first = t->values.len;
    uint32_t at = t->items.len;
    TRY(ok ? trace_emit(t, it) : trace_nomem(t));
    for (uint32_t i = 0; i < n; i++)
        (void)vec_push(&t->values, (trace_value){at, i, constant, tensor_ref(fakes[i])});
    return BP_OK;
}

static bp_tensor *fake_of(void *arg, ref r);

/* Results by the shape rule over the values' own metadata. */
static bp_status infer_results(trace *t, item *it)
{
    op_call k = {.op = it->node.op, .nargs = it->node.nargs};
    k.args = args_with_tensors(&t->c->scratch, it->node.args, k.nargs, fake_of, t);
    if (!k.args)
        return trace_nomem(t);
    TRY(op_run_fake(t->c, &k));
    bp_status st = add_results(t, it, k.out, k.nout);
    for (uint32_t i = 0; i < k.nout; i++)
        tensor_unref(k.out[i]);
    return st;
}

/* How far a recorded call moves the generator: a place an element of its first result, unless it gave back what it got
 * (dropout that does not train). */
static bp_dim draws(trace *t, const item *it)
{
    const tensor_meta *m = &it->node.metas[0];
    const bp_value *self = it->node.nargs ? &it->node.args[0] : NULL;
    if (!(it->node.op->flags & OP_RANDOM))
        return dim_const(0);
    if (self && self->kind == BP_VALUE_NODE &&
        trace_fake(t, self->v.node)->store == trace_fake(t, it->node.first)->store)
        return dim_const(0);
    bp_dim n = dim_product(t->c, m->sizes, m->rank);
    return sym_is_unbacked(t->env, n) ? dim_const(dim_int(t->c, n)) : n; /* the place of what follows must be known */
}

/* Whether an operator called now runs under the modes of the call, grad mode aside: that shows in the fakes, the others
 * would have to be switched when the graph runs. */
static bool modes_unchanged(const trace *t)
{
    ambient now = t->c->ambient;
    now.grad_enabled = t->modes.grad_enabled;
    now.inference_mode = t->modes.inference_mode;
    return !memcmp(&now, &t->modes, sizeof now);
}

bp_status trace_node(trace *t, const op_row *op, const bp_value *args, bp_tensor *const *fakes, uint32_t nfakes,
                     ref *first)
{
    item it = {.kind = ITEM_NODE, .file = t->c->site_file, .line = t->c->site_line};
    it.node.op = op;
    it.node.args = args;
    it.node.nargs = op->schema->nargs;
    it.node.returns_list = op->schema->nreturns == 1 && op->schema->returns[0].list;
    it.node.rng_offset = op->flags & OP_RANDOM ? t->rng : dim_const(0);
    if (t->sub)
        TRY(sub_check_op(t, op));
    if (!modes_unchanged(t))
        return trace_stop(t, TRACE_DECLINED, "%s is called under a mode that \"%s\" has switched", op->target,
                          t->r->name);
    TRY(count_node(t));
    TRY(trace_find_needs(t, args, it.node.nargs, &it));
    TRY(fakes ? add_results(t, &it, fakes, nfakes) : infer_results(t, &it));
    *first = vec_last(&t->items).node.first;
    TRY(trace_place_symbols(t, *first, vec_last(&t->items).node.nresults));
    t->rng = dim_add(t->c, t->rng, draws(t, &vec_last(&t->items)));
    return t->c->diag.code;
}

/* -- arguments as refs --------------------------------------------------------------------------------------------- */

static bool to_ref(trace *t, const bp_value *v, bp_value *to);

static bool list_to_refs(trace *t, const bp_value *v, bp_value *to)
{
    bp_value *items = arena_array(&t->arena, v->count, sizeof *items);
    if (!items)
        return trace_nomem(t), false;
    for (uint32_t i = 0; i < v->count; i++)
        if (!to_ref(t, &v->v.items[i], &items[i]))
            return false;
    to->v.items = items;
    return true;
}

static bool to_ref(trace *t, const bp_value *v, bp_value *to)
{
    bool ok = true;
    *to = *v;
    if (v->kind == BP_VALUE_LIST)
        return list_to_refs(t, v, to);
    if (v->kind == BP_VALUE_STRING || v->kind == BP_VALUE_GRAPH)
        *to = value_copy(&t->arena, v, &ok);
    if (v->kind == BP_VALUE_NODE) {
        to->v.node = trace_number_ref(t, v->v.node);
        return to->v.node != 0;
    }
    if (v->kind != BP_VALUE_TENSOR)
        return ok || (trace_nomem(t), false);
    const bp_tensor *h = v->v.tensor;
    if (h->flags & TENSOR_WRAPPED_NUMBER && !tensor_is_fake(h)) {
        *to = number_value(h);
        return true;
    }
    *to = (bp_value){.kind = BP_VALUE_NODE, .v.node = trace_read(t, h)};
    return to->v.node != 0;
}

bp_value *trace_refs(trace *t, const bp_value *args, uint32_t nargs)
{
    bp_value *to = arena_array(&t->arena, nargs, sizeof *to);
    if (!to)
        return trace_nomem(t), NULL;
    for (uint32_t i = 0; i < nargs; i++)
        if (!to_ref(t, &args[i], &to[i]))
            return NULL;
    return to;
}

static bp_tensor *fake_of(void *arg, ref r)
{
    return trace_fake(arg, r);
}

bp_tensor *trace_fake(trace *t, ref r)
{
    if (ref_is_node(r))
        return t->values.at[r].fake;
    if (ref_kind(r) == REF_PARAM)
        return t->params.at[ref_index(r)];
    const trace_source *s = &t->sources.at[ref_index(r)];
    return ref_kind(r) == REF_INPUT ? t->handles.at[s->handle].t : s->fs->group->flat;
}

/* -- handles and storages ------------------------------------------------------------------------------------------ */

trace_handle *trace_handle_of(trace *t, const bp_tensor *h)
{
    bool ours = h->trace_epoch == t->epoch && h->fake_id && h->fake_id < t->handles.len;
    return ours && t->handles.at[h->fake_id].t == h ? &t->handles.at[h->fake_id] : NULL;
}

uint32_t trace_add_handle(trace *t, bp_tensor *h, fake_storage *fs, uint32_t parent)
{
    uint32_t n = t->handles.len;
    if (!vec_push(&t->handles, (trace_handle){.t = h, .fs = fs, .parent = parent})) {
        tensor_unref(h);
        trace_nomem(t);
        return 0;
    }
    h->fake_id = n;
    h->trace_epoch = t->epoch;
    h->file = t->c->site_file;
    h->line = t->c->site_line;
    if (!parent && !fs->base)
        fs->base = n;
    return n;
}

fake_storage *trace_add_storage(trace *t, int32_t source, ref cur)
{
    fake_storage *fs = arena_alloc(&t->arena, sizeof *fs);
    if (!fs || !vec_push(&t->storages, fs))
        return trace_nomem(t), NULL;
    *fs = (fake_storage){.cur = cur, .source = source, .number = t->storages.len};
    return fs;
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

static const item *item_of(void *arg, ref r)
{
    const trace *t = arg;
    return &t->items.at[t->values.at[r].item];
}

static const path_symbol *symbol_of(void *arg, uint32_t k)
{
    const trace *t = arg;
    for (uint32_t i = t->symbols.len; i-- > 0;)
        if (t->symbols.at[i].symbol == k)
            return &t->symbols.at[i];
    return NULL;
}

static trace *create(bp_ctx *c, const trace_request *r)
{
    trace *t = calloc(1, sizeof *t);
    if (!t)
        return ctx_nomem(c), NULL;
    t->mode = (dispatch_mode){.call = trace_call, .name = "capture"};
    t->c = c;
    t->r = r;
    t->modes = c->ambient;
    t->seed = c->seed;
    t->offset = c->rng_offset;
    t->env = r->env ? sym_env_again(r->env, r->nsymbols, r->vals->syms) : sym_env_new();
    t->slices = (slicer){.c = c, .vals = r->vals, .rng_base = r->rng_base, .item_of = item_of, .arg = t,
                          .env = t->env, .symbol_of = symbol_of,
                          .compute = r->compute, .compute_arg = r->compute_arg};
    while (!t->epoch) /* 0 marks tensors of no capture */
        t->epoch = atomic_fetch_add(&epochs, 1) + 1;
    if (t->env)
        sym_capture_data(t->env, r->dynamic_outputs);
    if (!t->env || !vec_push(&t->values, (trace_value){0}) || !vec_push(&t->handles, (trace_handle){0}) ||
        trace_cut(t) != BP_OK || trace_begin_sources(t) != BP_OK) {
        trace_destroy(t);
        return ctx_nomem(c), NULL;
    }
    return t;
}

void trace_destroy(trace *t)
{
    if (!t)
        return;
    for (uint32_t i = 1; i < t->values.len; i++)
        tensor_unref(t->values.at[i].fake);
    slice_fini(&t->slices);
    for (uint32_t i = 1; i < t->handles.len; i++)
        tensor_unref(t->handles.at[i].t);
    for (uint32_t i = 0; i < t->storages.len; i++)
        tensor_unref(t->storages.at[i]->flat);
    for (uint32_t i = 0; i < t->flats.len; i++)
        tensor_unref(t->flats.at[i].fake);
    for (uint32_t i = 0; i < t->params.len; i++)
        tensor_unref(t->params.at[i]);
    for (uint32_t i = 0; i < t->segments.len; i++) {
        vec_fini(&t->segments.at[i].touched);
        vec_fini(&t->segments.at[i].written);
        vec_fini(&t->segments.at[i].reads);
        vec_fini(&t->segments.at[i].symbols);
        vec_fini(&t->segments.at[i].shown);
    }
    map_fini(&t->views);
    map_fini(&t->asked);
    map_fini(&t->lines);
    map_fini(&t->flat_at);
    vec_fini(&t->items);
    vec_fini(&t->values);
    vec_fini(&t->handles);
    vec_fini(&t->storages);
    vec_fini(&t->sources);
    vec_fini(&t->segments);
    vec_fini(&t->guesses);
    vec_fini(&t->answers);
    vec_fini(&t->numbers);
    vec_fini(&t->params);
    vec_fini(&t->symbols);
    vec_fini(&t->constrained);
    plan_numbering_fini(&t->naming);
    sym_env_unref(t->env);
    vec_fini(&t->flats);
    arena_fini(&t->arena);
    free(t);
}

/* What an error that the function left behind means. Host memory and finished captures are the caller's mistake (C5.1);
 * everything else is the function's own error, which eager repeats. */
static void classify(trace *t)
{
    bp_ctx *c = t->c;
    if (t->why == TRACE_RUNNING && !ctx_ok(c)) {
        bool refused = c->diag.code == BP_FAILED_PRECONDITION || c->diag.code == BP_RESOURCE_EXHAUSTED;
        bool on_data = trace_asks_data(c);
        snprintf(t->reason, sizeof t->reason, "%.1000s", c->diag.message);
        t->why = refused ? TRACE_REFUSED : on_data ? TRACE_DECLINED : TRACE_FAILED;
    }
    for (uint32_t i = 0; i < t->flats.len && t->why == TRACE_RETURNED; i++)
        if (atomic_load(&t->flats.at[i].fake->store->fake_role) == FAKE_OF_INPUT_ASKED) {
            snprintf(t->reason, sizeof t->reason,
                     "\"%s\" asks where an input lies in its storage, or who shares it: neither is guarded",
                     t->r->name);
            t->why = TRACE_DECLINED;
        }
    bool whole = t->why == TRACE_RETURNED || t->why == TRACE_FAILED || t->why == TRACE_DECLINED;
    if (whole && t->items.len < t->r->nexpect) {
        snprintf(t->reason, sizeof t->reason, "\"%s\" is impure: it ended after %u of %u recorded operations",
                 t->r->name, t->items.len, t->r->nexpect);
        t->why = TRACE_IMPURE;
    }
    if (t->why == TRACE_REFUSED)
        diag_while(&c->diag, "capturing \"%s\"", t->r->name);
    else
        diag_clear(&c->diag);
}

bool trace_asks_data(const bp_ctx *c)
{
    return c->diag.code == BP_UNIMPLEMENTED && strstr(c->diag.message, "data-dependent expression");
}

bool trace_seeded(const trace *t)
{
    return t->c->seed != t->seed || t->c->rng_offset != t->offset;
}

/* The context is put back as it was before the function ran. */
static void end_capture(trace *t)
{
    bp_ctx *c = t->c;
    c->capturing--;
    capture_slot_get(c)->current = NULL;
    c->ambient = t->modes;
    if (trace_seeded(t) && t->why == TRACE_RETURNED)
        t->why = TRACE_RUNNING;
    if (trace_seeded(t))
        trace_stop(t, TRACE_DECLINED, "\"%s\" seeds the generator", t->r->name);
    c->seed = t->seed;
    c->rng_offset = t->offset;
    classify(t);
    vec_last(&t->segments).nsources = t->sources.len;
}

trace *trace_run(bp_ctx *c, const trace_request *r)
{
    capture_slot *slot = capture_slot_get(c);
    trace *t = slot ? create(c, r) : NULL;
    if (!t)
        return NULL;
    bp_frame f;
    frame_init(&f, c, r->vals->inputs, r->vals->nargs, r->user);
    f.trace = slot->current = t;
    c->capturing++;
    mode_push(c, &t->mode);
    trace_begin_symbols(t);
    if (frame_run(&f, r->fn) == BP_OK && t->why == TRACE_RUNNING)
        trace_finish(t, &f);
    trace_end_symbols(t);
    c->modes = t->mode.below; /* also when the function left modes of its own */
    if (t->why == TRACE_RESUMED)
        trace_end_real(t, &f);
    else
        end_capture(t);
    frame_fini(&f);
    trace_poison(t);
    return t;
}

void trace_print(const trace *t, buf *out)
{
    for (uint32_t i = 0; i < t->items.len; i++) {
        buf_puts(out, "  ");
        item_print(&t->items.at[i], out);
        if (t->items.at[i].file)
            buf_printf(out, "  # %s:%d", t->items.at[i].file, t->items.at[i].line);
        buf_putc(out, '\n');
    }
}

/* A node's canonical graph as an FX graph, compiled or found in the store.
 *
 * Only what leads to the list is built, and what may not be dropped: rows that may fail on data (C1.5), and random
 * ones, whose numbers the ones behind them count from (C7). Placeholders are the frame's inputs in the frame's order,
 * then handed-on values in the order of recording. */
#include "host/base/clock.h"
#include "host/base/log.h"
#include "host/capture/emit.h"
#include "host/compile/aot.h"
#include "host/compile/callable.h"
#include "host/compile/narrow.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    call *k;
    tree_node *n;
    uint32_t nvalues;          /* of the canonical graph */
    uint32_t nouts;            /* of the list, as it is now */
    uint8_t *live;             /* by position */
    bp_value *made;            /* by position: the graph's value; kind NONE: not built */
    VEC(ref) in;               /* what goes in, in order of placeholders */
    VEC(ref) baked;            /* constants */
    uint32_t *known;           /* by slot: which of `in`, or of `baked`, a value is, from 1 on; 0: of neither */
    uint32_t *order;           /* which of them is used first, second, ... in the graph */
    bp_graph_module *gm;
    narrowing symbols;
    bool trains;               /* gradients of what it gives are asked for */
    uint8_t *needs;            /* then, by placeholder: it requires grad */
    bool failed;
} build;

/* -- what is live -------------------------------------------------------------------------------------------------- */

static const item *item_at(const tree_node *n, uint32_t i)
{
    return i < n->nextras ? n->extras[i] : &n->items[i - n->nextras];
}

static bool is_baked(const build *b, ref r)
{
    if (ref_kind(r) != REF_INPUT || b->n->sources[ref_index(r)].role != BP_ROLE_CONSTANT)
        return false;
    const bp_tensor *t = bind_get(&b->k->vals, r); /* one that requires grad gets a gradient: it is an input */
    return !t || !(t->flags & TENSOR_REQUIRES_GRAD) || !b->k->c->ambient.grad_enabled;
}

static void want(void *arg, ref r)
{
    build *b = arg;
    uint32_t at = ref_is_node(r) ? node_position(b->n, r) : UINT32_MAX;
    if (at != UINT32_MAX) {
        b->live[at] = 1;
        return;
    }
    uint32_t *known = &b->known[node_slot(b->n, r)];
    if (*known)
        return;
    b->failed |= is_baked(b, r) ? !vec_push(&b->baked, r) : !vec_push(&b->in, r);
    *known = is_baked(b, r) ? b->baked.len : b->in.len;
}

static bool is_live(const build *b, const item *it)
{
    uint32_t at = node_position(b->n, it->node.first);
    bool live = (it->node.op->flags & (OP_MAY_FAIL_ON_DATA | OP_RANDOM)) != 0;
    for (uint32_t j = 0; j < it->node.nresults; j++)
        live |= b->live[at + j];
    return live;
}

/* The frame's order: arguments and attributes, memory under overlapping ones, then values. */
static uint64_t rank_of(ref r)
{
    return ref_is_node(r) ? (uint64_t)REF_KINDS << 1 | r : r;
}

static int by_rank(const void *a, const void *b)
{
    uint64_t x = rank_of(*(const ref *)a), y = rank_of(*(const ref *)b);
    return x < y ? -1 : x > y;
}

/* Marks what is live; false: nothing has to be computed. */
static bool find_live(build *b)
{
    bool any = false;
    for (uint32_t i = 0; i < b->nouts; i++)
        b->live[b->n->list->at.at[i]] = 1;
    for (uint32_t i = b->n->nextras + b->n->nitems; i-- > 0;)
        if (is_live(b, item_at(b->n, i))) {
            any = true;
            item_each_ref(item_at(b->n, i), want, b);
        }
    if (b->in.len)
        qsort(b->in.at, b->in.len, sizeof *b->in.at, by_rank);
    for (uint32_t i = 0; i < b->in.len; i++)
        b->known[node_slot(b->n, b->in.at[i])] = i + 1;
    return any;
}

/* -- what requires grad -------------------------------------------------------------------------------------------- */

static bool requires(const build *b, ref r)
{
    const item *it = ref_is_node(r) ? path_item_of(b->n, r) : NULL;
    const bp_tensor *t = ref_kind(r) == REF_INPUT ? bind_get(&b->k->vals, r) : NULL;
    return it ? item_requires(it, r) : t && t->flags & TENSOR_REQUIRES_GRAD;
}

/* Whether anything that it gives has history. */
static bp_status find_needs(build *b)
{
    for (uint32_t i = 0; i < b->nouts; i++)
        b->trains |= requires(b, node_value_at(b->n, b->n->list->at.at[i]));
    if (!b->trains)
        return BP_OK;
    if (!(b->needs = calloc((size_t)b->in.len + 1, 1)))
        return ctx_nomem(b->k->c);
    for (uint32_t i = 0; i < b->in.len; i++)
        b->needs[i] = requires(b, b->in.at[i]);
    return BP_OK;
}

/* -- placeholders -------------------------------------------------------------------------------------------------- */

/* A Python name for a dotted one: torch.fx's "fc.weight" is named fc_weight. */
static void dots_to_lines(char *name)
{
    for (; *name; name++)
        if (*name == '.')
            *name = '_';
}

/* The name under which an earlier segment handed a value on. */
static const char *handed_name(build *b, ref r)
{
    const tree_node *maker = node_of_value(b->n, r);
    const segment_use *u = maker ? atomic_load(&maker->use) : NULL;
    for (uint32_t i = 0; u && i < u->nout; i++)
        if (u->out[i] == r)
            return u->names[i];
    const item *it = path_item_of(b->n, r);
    return it ? it->node.op->schema->name : "value";
}

static void describe_input(build *b, ref r, char *name, size_t cap, const char **target, int32_t *role, tensor_meta *m)
{
    uint32_t i = ref_index(r);
    *role = BP_ROLE_USER;
    if (ref_is_node(r)) {
        const item *it = path_item_of(b->n, r);
        *m = it->node.metas[r - it->node.first];
        snprintf(name, cap, "%s", handed_name(b, r));
        *target = name;
        return;
    }
    bp_tensor *t = bind_get(&b->k->vals, r);
    const tensor_meta *symbolic = ref_kind(r) == REF_INPUT ? node_meta_of(b->n, i) : NULL;
    if (t && symbolic)
        *m = *symbolic;
    else if (t)
        tensor_get_meta(t, m);
    else
        b->failed = true;
    snprintf(name, cap, ref_kind(r) == REF_INPUT ? "%s" : "under_%s", b->n->sources[i].name);
    *target = ref_kind(r) == REF_INPUT ? b->n->sources[i].name : name;
    *role = b->n->sources[i].role;
    dots_to_lines(name);
}

/* What a constant holds now, at its own strides: later writes compile again, and must not reach what is compiled. */
static bp_tensor *snapshot(bp_ctx *c, const bp_tensor *t)
{
    tensor_meta m;
    size_t nbytes = t ? tensor_span_bytes(t) : 0;
    int64_t n = t ? (int64_t)(nbytes / dtype_size(t->dtype)) : 0;
    bp_tensor *flat = t ? tensor_contiguous_new(c, t->dtype, 1, &n) : NULL;
    if (!flat)
        return NULL;
    if (nbytes)
        memcpy(tensor_ptr(flat), tensor_ptr(t), nbytes);
    tensor_get_meta(t, &m);
    m.offset = dim_const(0);
    bp_tensor *copy = tensor_view(c, flat, &m);
    tensor_unref(flat);
    return copy;
}

static void add_constants(build *b, node_id *ids)
{
    for (uint32_t i = 0; i < b->baked.len && !b->failed; i++) {
        const char *name = b->n->sources[ref_index(b->baked.at[i])].name;
        bp_tensor *copy = snapshot(b->k->c, bind_get(&b->k->vals, b->baked.at[i]));
        tensor_meta m = {0};
        if (copy)
            tensor_get_meta(copy, &m);
        ids[i] = copy ? graph_get_attr(&b->gm->g, name, name, &m) : 0;
        b->failed |= !ids[i] || gm_set_constant(b->k->c, b->gm, graph_get(&b->gm->g, ids[i])->name, copy) != BP_OK;
        tensor_unref(copy);
    }
}

static void add_placeholders(build *b, node_id *ids)
{
    for (uint32_t i = 0; i < b->in.len && !b->failed; i++) {
        char name[256];
        const char *target;
        int32_t role;
        tensor_meta m = {0};
        describe_input(b, b->in.at[i], name, sizeof name, &target, &role, &m);
        if (!b->failed)
            m = narrow_meta(&b->symbols, &m);
        b->failed |= b->symbols.failed;
        if (!b->failed)
            ids[i] = graph_placeholder(&b->gm->g, name, target, role, &m);
    }
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

typedef struct { build *b; const node_id *ids, *constants; } mapping;

static bp_value value_of(emitter *e, ref r)
{
    const mapping *m = e->arg;
    const build *b = m->b;
    uint32_t at = ref_is_node(r) ? node_position(b->n, r) : UINT32_MAX;
    if (at != UINT32_MAX)
        return b->made[at];
    uint32_t known = b->known[node_slot(b->n, r)];
    if (known)
        return graph_ref(is_baked(b, r) ? m->constants[known - 1] : m->ids[known - 1]);
    e->failed = true;
    return value_none();
}

static bool requires_grad(emitter *e, ref r)
{
    const mapping *m = e->arg;
    return requires(m->b, r);
}

static bp_dim dim_of(emitter *e, bp_dim d)
{
    const mapping *m = e->arg;
    d = narrow_dim(&m->b->symbols, d);
    e->failed |= m->b->symbols.failed;
    return d;
}

/* Symbols that no input shows are inputs of their own. */
static bp_status take_symbols(build *b)
{
    graph *g = &b->gm->g;
    uint32_t before = b->in.len, at = 0;
    TRY(narrow_finish(&b->symbols));
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        const graph_node *p = graph_get(g, n);
        if (p->op != BP_NODE_PLACEHOLDER || at++ < before)
            continue;
        uint32_t k = sym_symbol_of(g->syms, p->number);
        if (k == UINT32_MAX || !vec_push(&b->in, REF_SYMBOL | b->symbols.import.back.at[k]))
            return ctx_nomem(b->k->c);
    }
    uint8_t *needs = b->needs ? realloc(b->needs, (size_t)b->in.len + 1) : NULL;
    if (b->needs && !needs)
        return ctx_nomem(b->k->c);
    b->needs = needs;
    for (uint32_t i = before; needs && i < b->in.len; i++)
        needs[i] = 0;
    return graph_status(b->k->c, g);
}

static bp_status fill_graph(build *b)
{
    graph *g = &b->gm->g;
    node_id *ids = arena_array(&g->arena, b->in.len, sizeof *ids);
    node_id *constants = arena_array(&g->arena, b->baked.len, sizeof *constants);
    bp_value *outs = arena_array(&g->arena, b->nouts, sizeof *outs);
    if (!ids || !constants || !outs)
        return ctx_nomem(b->k->c);
    TRY(narrow_init(&b->symbols, b->k->c, b->n, g));
    mapping m = {b, ids, constants};
    emitter e = {.c = b->k->c, .gm = b->gm, .value_of = value_of, .arg = &m};
    if (b->trains)
        e.requires = requires_grad;
    if (b->symbols.own)
        e.dim_of = dim_of;
    add_placeholders(b, ids);
    add_constants(b, constants);
    for (uint32_t i = 0; i < b->n->nextras + b->n->nitems && !b->failed && !e.failed; i++) {
        const item *it = item_at(b->n, i);
        uint32_t at = node_position(b->n, it->node.first);
        if (is_live(b, it))
            emit_item(&e, it, b->live + at, b->made + at);
    }
    b->failed |= e.failed;
    for (uint32_t i = 0; i < b->nouts; i++)
        outs[i] = b->made[b->n->list->at.at[i]];
    graph_output(g, outs, b->nouts);
    if (b->failed)
        return ctx_ok(b->k->c) ? ctx_nomem(b->k->c) : b->k->c->diag.code;
    TRY(graph_status(b->k->c, g));
    return b->symbols.own ? take_symbols(b) : BP_OK;
}

/* -- the key ------------------------------------------------------------------------------------------------------- */

typedef struct { const bp_tensor *t; uint32_t use, first; } placed; /* first: of those that share t's storage */

static int by_storage(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    uintptr_t s = (uintptr_t)x->t->store, t = (uintptr_t)y->t->store;
    return s != t ? (s < t ? -1 : 1) : x->use < y->use ? -1 : x->use > y->use;
}

static int by_use(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->use < y->use ? -1 : x->use > y->use;
}

/* Which inputs share a storage with one that is used before them, and how far from it they start; inputs are known by
 * their first use. */
static bool print_aliases(build *b, buf *out)
{
    uint32_t n = 0;
    placed *at = calloc((size_t)b->in.len + 1, sizeof *at);
    const bp_tensor **used = calloc((size_t)b->in.len + 1, sizeof *used);
    for (uint32_t i = 0; at && used && i < b->in.len; i++) {
        ref r = b->in.at[b->order[i]];
        used[i] = ref_kind(r) == REF_INPUT ? bind_get(&b->k->vals, r) : NULL;
        if (used[i])
            at[n++] = (placed){used[i], i, i};
    }
    if (n)
        qsort(at, n, sizeof *at, by_storage);
    for (uint32_t i = 1; i < n; i++)
        if (at[i].t->store == at[i - 1].t->store)
            at[i].first = at[i - 1].first;
    if (n)
        qsort(at, n, sizeof *at, by_use);
    for (uint32_t i = 0; i < n; i++)
        if (at[i].first != at[i].use)
            buf_printf(out, "%u~%u:%lld ", at[i].use, at[i].first,
                       (long long)((const char *)tensor_ptr(at[i].t) - (const char *)tensor_ptr(used[at[i].first])));
    bool ok = at && used;
    free(at);
    free(used);
    return ok;
}

static bp_status make_key(build *b, hash128 *key)
{
    buf text = {0};
    hash128 structure;
    b->order = calloc((size_t)b->in.len + 1, sizeof *b->order);
    if (!b->order)
        return ctx_nomem(b->k->c);
    TRY(graph_hash(b->k->c, b->gm, b->order, &structure));
    buf_add(&text, (const char *)&structure, sizeof structure);
    buf_add(&text, (const char *)&b->n->ambient, sizeof b->n->ambient);
    bool failed = !print_aliases(b, &text);
    if (b->trains)
        buf_puts(&text, "needs ");
    for (uint32_t i = 0; b->trains && i < b->in.len; i++) /* as the key knows them: by their first use */
        buf_putc(&text, b->needs[b->order[i]] ? '1' : '0');
    failed |= text.failed;
    if (!failed)
        *key = hash128_bytes(text.s, text.n);
    buf_fini(&text);
    return failed ? ctx_nomem(b->k->c) : BP_OK;
}

/* -- compiling ----------------------------------------------------------------------------------------------------- */

static void name_segment(const build *b, char *name, size_t cap)
{
    uint32_t number = b->k->st->store.all.len;
    const char *region = backend_training_of(b->k->g->backend)->region, *dot = region ? "." : "";
    region = region ? region : "";
    if (b->n->parent)
        snprintf(name, cap, "%s%s__resume_at_%d_%u", region, dot, b->n->parent->term->line, number);
    else
        snprintf(name, cap, "%s%s__compiled_fn_%u", region, dot, number);
}

bp_status call_set_options(call *k, bp_graph_module *gm)
{
    const code_identity *is = &k->g->code->is;
    if (is->mode && strcmp(is->mode, "default") != 0)
        TRY(gm_set_option(k->c, gm, "mode", is->mode));
    for (const char *const *o = is->options; o && o[0] && o[1]; o += 2)
        TRY(gm_set_option(k->c, gm, o[0], o[1]));
    return BP_OK;
}

static void drop_program(void *p)
{
    program_unref(p);
}

static void drop_training(void *a)
{
    aot_unref(a);
}

bp_status call_compile(call *k, bp_graph_module *gm, const uint8_t *needs, uint32_t *order, segment *seg)
{
    program *p = NULL;
    aot *training = NULL;
    code_count(k->st, compiles, 1);
    if (log_on(k->c->rt, LOG_graph)) {
        buf table = {0};
        gm_print_tabular(gm, &table);
        log_line(k->c->rt, LOG_graph, "%s\n%s", gm->name, buf_text(&table));
        buf_fini(&table);
    }
    uint64_t began = clock_ns();
    bp_status st = needs ? aot_compile(k->c, gm, k->g->backend, needs, &p, &training)
                         : program_compile(k->c, gm, k->g->backend, &p);
    call_took(k, &k->st->compile_ns, "compile", gm->name, began);
    if (st != BP_OK) {
        diag_while(&k->c->diag, "compiling %s of \"%s\" (%s:%d)", gm->name, k->g->code->is.name, k->g->code->is.file,
                   k->g->code->is.line);
        return k->c->diag.code;
    }
    pthread_mutex_lock(&k->st->notes);
    seg->destroy = drop_program;
    seg->program = p;
    seg->destroy_training = drop_training;
    seg->training = training;
    seg->order = order;
    pthread_mutex_unlock(&k->st->notes);
    return BP_OK;
}

static bp_status compile(build *b, segment *seg)
{
    TRY(call_compile(b->k, b->gm, b->needs, b->order, seg));
    b->order = NULL;
    code_count(b->k->st, graphs, 1);
    return BP_OK;
}

/* The compiled form of the graph: the store's, or a new one. */
static bp_status find_segment(build *b, segment **seg)
{
    call *k = b->k;
    char name[128];
    hash128 key;
    name_segment(b, name, sizeof name);
    b->gm = gm_new(k->c, name);
    if (!b->gm)
        return k->c->diag.code;
    b->gm->code_id = k->g->code->id;
    TRY(fill_graph(b));
    TRY(make_key(b, &key));
    *seg = segment_find(&k->st->store, key);
    if (!*seg) {
        pthread_mutex_lock(&k->st->notes);
        *seg = segment_add(&k->st->store, key, name);
        pthread_mutex_unlock(&k->st->notes);
        code_count(k->st, segments, 1);
    }
    if (!*seg)
        return ctx_nomem(k->c);
    TRY(call_set_options(k, b->gm));
    return (*seg)->program ? BP_OK : compile(b, *seg);
}

static segment_use *make_use(build *b, segment *seg)
{
    segment_use *u = segment_use_new(seg ? b->in.len : 0, b->nouts);
    if (!u)
        return ctx_nomem(b->k->c), NULL;
    u->seg = seg;
    atomic_store(&u->list_len, b->nouts);
    const uint32_t *mine = b->order ? b->order : seg ? seg->order : NULL; /* NULL: it became the segment's */
    for (uint32_t i = 0; i < u->nin; i++) /* the graph that was compiled may have its placeholders in another order */
        u->in[seg->order[i]] = b->in.at[mine[i]];
    const graph_node *out = seg && b->nouts ? graph_get(&b->gm->g, graph_output_node(&b->gm->g)) : NULL;
    for (uint32_t i = 0; i < b->nouts; i++) {
        u->out[i] = node_value_at(b->n, b->n->list->at.at[i]);
        const bp_value *v = out ? &out->args[0].v.items[i] : NULL;
        u->names[i] = strdup(v && v->kind == BP_VALUE_NODE ? graph_get(&b->gm->g, v->v.node)->name : "value");
        if (!u->names[i]) {
            segment_use_destroy(u);
            return ctx_nomem(b->k->c), NULL;
        }
    }
    return u;
}

/* What a compile that failed means: an error, or eager under suppress_errors, which later calls then know. */
static step not_compiled(call *k, tree_node *n)
{
    bool fresh = k->next_fresh < k->fresh.len && k->fresh.at[k->next_fresh] == n;
    if (!config_int(k->c->rt, KEY_SUPPRESS_ERRORS) || k->c->diag.code == BP_RESOURCE_EXHAUSTED || k->c->diag.ends)
        return STEP_FAILED;
    log_warn(k->c->rt, "%s; suppress_errors is set, and \"%s\" runs eagerly", k->c->diag.message, k->g->code->is.name);
    if (fresh) {
        n->reason = arena_strdup(&n->arena, k->c->diag.message);
        n->reason = n->reason ? n->reason : "it did not compile";
        n->term = NULL;
    }
    return call_eager_on_error(k);
}

static void retire_use(epoch_link *self)
{
    segment_use_destroy((segment_use *)self);
}

step call_build(call *k, tree_node *n, segment_use **use)
{
    build b = {.k = k, .n = n, .nouts = n->list->at.len};
    segment *seg = NULL;
    *use = NULL;
    b.nvalues = n->nextra_values + (n->end_value - n->first_value);
    b.live = calloc(b.nvalues + 1, sizeof *b.live);
    b.made = calloc(b.nvalues + 1, sizeof *b.made);
    b.known = calloc(node_slots(n) + 1u, sizeof *b.known);
    bp_status st = b.live && b.made && b.known ? BP_OK : ctx_nomem(k->c);
    if (st == BP_OK && find_live(&b)) {
        st = b.failed ? ctx_nomem(k->c) : find_needs(&b);
        if (st == BP_OK)
            st = find_segment(&b, &seg);
    }
    if (st == BP_OK)
        *use = make_use(&b, seg);
    if (*use) {
        n->list->built = true;
        segment_use *old = atomic_exchange(&n->use, *use);
        if (old)
            epoch_retire(k->epochs, &old->link, retire_use);
    }
    narrow_fini(&b.symbols);
    gm_unref(b.gm);
    vec_fini(&b.in);
    vec_fini(&b.baked);
    free(b.order);
    free(b.needs);
    free(b.live);
    free(b.made);
    free(b.known);
    return *use ? STEP_OK : not_compiled(k, n);
}

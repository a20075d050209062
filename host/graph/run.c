/* The interpreter: a graph, node by node through op_dispatch, so that the modes on the context's stack see each call.
 *
 * Each node has a slot: one tensor, a list of tensors, or a plain value (what an OP_ITEM row gives, a symbol that is an
 * input). A slot is emptied behind its last user, so memory peaks where the program's does. Dims in arguments become
 * what they are in this run (bind.c). */
#include "host/graph/builtin.h"
#include "host/graph/higher.h"
#include "host/graph/run.h"
#include "host/graph/symbols.h"
#include <string.h>

enum slot_kind { SLOT_EMPTY, SLOT_TENSOR, SLOT_LIST, SLOT_VALUE };
typedef struct {
    enum slot_kind kind;
    uint32_t n;
    bp_tensor *one;
    bp_tensor **list; /* n, each a reference */
    bp_value value;
    bp_dtype guessed;   /* of a value that stands for what a fake lacks: the type of that fake */
} slot;

typedef struct {
    bp_ctx *c;
    const bp_graph_module *gm;
    const graph *g;
    slot *slots;        /* by node id */
    node_id *last_use;  /* by node id; 0: nobody */
    node_id at;
    bp_tensor *const *inputs;
    uint32_t ninputs, next_input;
    bp_tensor **outputs;
    graph_on_node on_node;
    void *arg;
    bp_dim *numbers;    /* by node id: NULL, or what calls that give integers gave */
    binding syms;
    bool has_guess, other; /* of the arguments that are resolved */
    VEC(bp_tensor *) made; /* 0-d tensors made of numbers for the node that runs */
} run;

/* -- slots --------------------------------------------------------------------------------------------------------- */

static void empty_slot(slot *s)
{
    tensor_unref(s->one);
    for (uint32_t i = 0; i < s->n && s->list; i++)
        tensor_unref(s->list[i]);
    free(s->list);
    *s = (slot){0};
}

static void set_tensor(slot *s, bp_tensor *t)
{
    *s = (slot){.kind = SLOT_TENSOR, .n = 1, .one = t};
}

/* What on_node is shown: the slot's tensors. */
static bp_tensor *const *slot_tensors(const slot *s)
{
    return s->kind == SLOT_LIST ? s->list : &s->one;
}

static void note_last(void *arg, node_id n)
{
    run *r = arg;
    if (!r->last_use[n])
        r->last_use[n] = r->at;
}

static void empty_if_last(void *arg, node_id n)
{
    run *r = arg;
    if (r->last_use[n] == r->at)
        empty_slot(&r->slots[n]);
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static bp_dtype wrapped_dtype(const bp_value *v)
{
    switch (v->kind) {
    case BP_VALUE_BOOL: return BP_BOOL;
    case BP_VALUE_INT: return BP_I64;
    case BP_VALUE_FLOAT: return BP_F64;
    default: return BP_C128;
    }
}

/* A number where the schema says Tensor: a 0-d tensor that promotes as a number. */
static bp_status wrap_number(run *r, const bp_value *v, bp_value *out)
{
    if (v->kind == BP_VALUE_INT && v->v.dim.sym)
        return BP_OK; /* among fakes: the operator sees the symbol */
    num n = {NUM_INT, v->v.i, 0, 0};
    if (v->kind == BP_VALUE_FLOAT || v->kind == BP_VALUE_COMPLEX)
        n = (num){v->kind == BP_VALUE_FLOAT ? NUM_FLOAT : NUM_COMPLEX, 0, v->v.f[0], v->v.f[1]};
    if (v->kind == BP_VALUE_INT)
        n.i = v->v.dim.value;
    bp_tensor *t = tensor_contiguous_new(r->c, wrapped_dtype(v), 0, NULL);
    if (!t)
        return r->c->diag.code;
    if (!vec_push(&r->made, t)) {
        tensor_unref(t);
        return ctx_nomem(r->c);
    }
    t->flags |= TENSOR_WRAPPED_NUMBER;
    dtype_store(t->dtype, tensor_ptr(t), n);
    *out = (bp_value){BP_VALUE_TENSOR, 0, {.tensor = t}};
    return BP_OK;
}

static bp_status list_of_slot(run *r, const slot *s, bp_value *out)
{
    bp_value *items = arena_array(&r->c->scratch, s->n, sizeof *items);
    if (!items)
        return ctx_nomem(r->c);
    for (uint32_t i = 0; i < s->n; i++)
        items[i] = (bp_value){BP_VALUE_TENSOR, 0, {.tensor = s->list[i]}};
    *out = (bp_value){BP_VALUE_LIST, s->n, {.items = items}};
    return BP_OK;
}

static bp_status resolve_node(run *r, node_id n, bp_value *out)
{
    const slot *s = &r->slots[n];
    switch (s->kind) {
    case SLOT_TENSOR: *out = (bp_value){BP_VALUE_TENSOR, 0, {.tensor = s->one}}; return BP_OK;
    case SLOT_LIST: return list_of_slot(r, s, out);
    case SLOT_VALUE:
        r->has_guess |= s->guessed != 0;
        *out = s->guessed ? value_unknown(s->guessed, r->other) : s->value;
        return BP_OK;
    default: return ctx_fail(r->c, BP_INTERNAL, "node \"%s\" has no value", graph_get(r->g, n)->name);
    }
}

/* A value with nodes replaced by what they gave. wrap: the schema wants tensors here. */
static bp_status resolve(run *r, const bp_value *v, bool wrap, bp_value *out)
{
    *out = *v;
    if (v->kind == BP_VALUE_NODE)
        TRY(resolve_node(r, v->v.node, out));
    else if (v->kind == BP_VALUE_LIST) {
        bp_value *items = arena_array(&r->c->scratch, v->count, sizeof *items);
        if (!items)
            return ctx_nomem(r->c);
        out->v.items = items;
        for (uint32_t i = 0; i < v->count; i++)
            TRY(resolve(r, &v->v.items[i], wrap, &items[i]));
        return BP_OK;
    } else if (v->kind == BP_VALUE_INT && v->v.dim.sym) {
        out->v.dim = binding_eval(&r->syms, v->v.dim);
        TRY(r->c->diag.code);
    }
    bool number = out->kind >= BP_VALUE_BOOL && out->kind <= BP_VALUE_COMPLEX;
    return wrap && number ? wrap_number(r, &(bp_value){out->kind, 0, out->v}, out) : BP_OK;
}

static bool wants_tensor(const schema *s, uint32_t i)
{
    return i < s->nargs && s->args[i].ty.type == TYPE_TENSOR;
}

static bp_status resolve_positional(run *r, const graph_node *n, bp_value **out)
{
    bp_value *args = arena_array(&r->c->scratch, n->nargs, sizeof *args);
    if (!args)
        return ctx_nomem(r->c);
    for (uint32_t i = 0; i < n->nargs; i++)
        TRY(resolve(r, &n->args[i], n->row && wants_tensor(n->row->schema, i), &args[i]));
    *out = args;
    return BP_OK;
}

/* One value a schema argument, defaults filled in, in the scratch arena. */
static bp_status bind_args(run *r, const graph_node *n, bp_value **args)
{
    bp_value *pos = NULL, *named = arena_array(&r->c->scratch, n->nkwargs, sizeof *named);
    const char **names = arena_array(&r->c->scratch, n->nkwargs, sizeof *names);
    if (!named || !names)
        return ctx_nomem(r->c);
    TRY(resolve_positional(r, n, &pos));
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        int32_t at = schema_find(n->row->schema, n->kwargs[i].name);
        names[i] = n->kwargs[i].name;
        TRY(resolve(r, &n->kwargs[i].value, at >= 0 && wants_tensor(n->row->schema, (uint32_t)at), &named[i]));
    }
    return op_bind(r->c, n->row, pos, n->nargs, names, named, n->nkwargs, args);
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static bp_status keep_results(run *r, op_call *k)
{
    slot *s = &r->slots[r->at];
    bool list = k->returns_list || k->op->schema->nreturns > 1;
    if ((k->op->flags & OP_ITEM) || k->item.kind != BP_VALUE_NONE) { /* also a size, which needs no data */
        *s = (slot){.kind = SLOT_VALUE, .value = k->item};
        return BP_OK;
    }
    if (!list) {
        set_tensor(s, k->nout ? k->out[0] : NULL);
        s->n = k->op->schema->nreturns; /* an assertion gives nothing */
        return BP_OK;
    }
    *s = (slot){.kind = SLOT_LIST, .n = k->nout, .list = malloc((k->nout ? k->nout : 1) * sizeof(bp_tensor *))};
    if (s->list && k->nout)
        memcpy(s->list, k->out, k->nout * sizeof *k->out);
    if (s->list)
        return BP_OK;
    for (uint32_t i = 0; i < k->nout; i++)
        tensor_unref(k->out[i]);
    return ctx_nomem(r->c);
}

/* A value that only a run tells, among fakes: it must not decide what results look like. */
static bp_status check_guess(run *r, const graph_node *n, const bp_value *args)
{
    bp_value *others = NULL;
    r->other = true;
    bp_status st = bind_args(r, n, &others);
    r->other = false;
    TRY(st);
    if (n->row->functional || op_same_results(r->c, n->row, args, others))
        return BP_OK;
    return ctx_fail(r->c, BP_UNIMPLEMENTED, "the shape that \"%s\" gives depends on a value that only a run tells",
                    n->name);
}

/* The symbol that an item of a fake is. In an environment that is not the graph's: a new one of it. */
static bp_dim item_symbol(run *r, const graph_node *n, const bp_tensor *t)
{
    sym_env *now = sym_current();
    bool integer = !dtype_is_float(t->dtype) && !dtype_is_complex(t->dtype) && t->dtype != BP_BOOL;
    if (!r->syms.syms || !n->number.sym || !integer)
        return dim_const(0);
    if (r->syms.itself || !now || now == r->syms.syms)
        return n->number;
    return sym_add_symbol(now, r->c, &(sym_symbol){.min = INT64_MIN, .max = INT64_MAX, .unbacked = true,
                                                   .source = {.at = SYM_NO_SOURCE}});
}

static bool guess_item(run *r, const graph_node *n, const bp_value *args)
{
    const bp_tensor *t = n->row->flags & OP_ITEM && n->row->schema->nargs == 1 ? arg_tensor(args, 0) : NULL;
    if (!t || !tensor_is_fake(t))
        return false;
    bp_dim d = item_symbol(r, n, t);
    if (d.sym)
        r->slots[r->at] = (slot){.kind = SLOT_VALUE, .value = value_dim(d)};
    else
        r->slots[r->at] = (slot){.kind = SLOT_VALUE, .guessed = t->dtype};
    return true;
}

/* Among fakes of the graph's own environment what makes symbols gives what is written: another run of the rule would
 * give new ones. */
static bool makes_declared(const run *r, const graph_node *n)
{
    return r->syms.itself && r->syms.makes[r->at] && n->nmetas && n->row && !n->row->functional;
}

static bp_status give_declared(run *r, const graph_node *n)
{
    slot *s = &r->slots[r->at];
    bool list = n->row->schema->nreturns > 1 || n->row->schema->returns[0].list;
    *s = (slot){.kind = list ? SLOT_LIST : SLOT_TENSOR, .n = n->nmetas};
    if (list && !(s->list = calloc(n->nmetas, sizeof(bp_tensor *))))
        return ctx_nomem(r->c);
    for (uint32_t i = 0; i < n->nmetas; i++) {
        bp_tensor *t = tensor_new_fake(r->c, &n->metas[i]);
        if (!t)
            return r->c->diag.code;
        *(list ? &s->list[i] : &s->one) = t;
    }
    return BP_OK;
}

static bp_status call_operator(run *r, const graph_node *n)
{
    op_call k = {.op = n->row};
    bp_value *args = NULL;
    r->has_guess = false;
    TRY(bind_args(r, n, &args));
    if (guess_item(r, n, args))
        return BP_OK;
    if (r->has_guess)
        TRY(check_guess(r, n, args));
    if (makes_declared(r, n))
        return give_declared(r, n);
    k.args = args;
    k.nargs = n->row->schema->nargs;
    TRY(op_dispatch(r->c, &k));
    return keep_results(r, &k);
}

static bp_status call_getitem(run *r, const graph_node *n)
{
    const slot *from = n->nargs == 2 && n->args[0].kind == BP_VALUE_NODE ? &r->slots[n->args[0].v.node] : NULL;
    if (!from || from->kind != SLOT_LIST || n->args[1].kind != BP_VALUE_INT)
        return ctx_fail(r->c, BP_INVALID_ARGUMENT, "getitem takes a list of tensors and an integer");
    int64_t i = n->args[1].v.dim.value;
    if (i < 0)
        i += from->n;
    if (i < 0 || i >= from->n)
        return ctx_fail(r->c, BP_INVALID_ARGUMENT, "getitem: index %lld is outside a list of %u tensors",
                        (long long)n->args[1].v.dim.value, from->n);
    set_tensor(&r->slots[r->at], from->list[i] ? tensor_ref(from->list[i]) : NULL);
    return BP_OK;
}

/* Of values that only a run tells only the type of the result is known. */
static bp_status call_number(run *r, const graph_node *n, str name)
{
    bp_value *args = NULL, out = value_none();
    bool floats = false;
    r->has_guess = false;
    TRY(resolve_positional(r, n, &args));
    for (uint32_t i = 0; i < n->nargs; i++)
        floats |= args[i].kind == BP_VALUE_FLOAT;
    if (r->has_guess) {
        r->slots[r->at] = (slot){.kind = SLOT_VALUE, .guessed = builtin_type(name, floats)};
        return BP_OK;
    }
    TRY(builtin_call(r->c, name, args, n->nargs, &out));
    r->slots[r->at] = (slot){.kind = SLOT_VALUE, .value = out};
    return BP_OK;
}

static bp_status call(run *r, const graph_node *n)
{
    str builtin;
    bool is_builtin = graph_is_builtin(n->target, &builtin);
    if (is_builtin && str_is(builtin, "getitem"))
        return call_getitem(r, n);
    if (is_builtin && !builtin_is_number(builtin))
        return ctx_fail(r->c, BP_UNIMPLEMENTED, "the Python builtin \"%.*s\" is not supported", (int)builtin.n,
                        builtin.s);
    if (!is_builtin && !n->row)
        return ctx_fail(r->c, BP_UNIMPLEMENTED, "operator \"%s\" is not in the table", n->target);
    arena_mark mark = arena_get_mark(&r->c->scratch);
    r->c->site_file = n->file;
    r->c->site_line = n->line;
    bp_status s = is_builtin ? call_number(r, n, builtin) : call_operator(r, n);
    for (uint32_t i = 0; i < r->made.len; i++)
        tensor_unref(r->made.at[i]);
    vec_clear(&r->made);
    arena_reset(&r->c->scratch, mark);
    return s;
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

static bp_status take_input(run *r, const graph_node *n)
{
    if (r->next_input >= r->ninputs)
        return ctx_fail(r->c, BP_INVALID_ARGUMENT, "graph \"%s\" needs an input for \"%s\", and got %u inputs",
                        r->gm->name, n->name, r->ninputs);
    bp_tensor *t = r->inputs[r->next_input++];
    TRY(binding_check_input(&r->syms, r->at, t));
    if (n->role == BP_ROLE_SYMINT && t) {
        r->slots[r->at] = (slot){.kind = SLOT_VALUE, .n = 1, .one = tensor_ref(t)};
        r->slots[r->at].value = value_dim(binding_eval(&r->syms, n->number));
        return r->c->diag.code;
    }
    set_tensor(&r->slots[r->at], t ? tensor_ref(t) : NULL);
    return BP_OK;
}

static bp_status take_constant(run *r, const graph_node *n)
{
    bp_tensor *t = gm_constant(r->gm, n->name);
    const bp_graph_module *sub = t ? NULL : gm_sub(r->gm, n->name);
    if (sub) {
        r->slots[r->at] = (slot){.kind = SLOT_VALUE, .value = value_graph(sub)};
        return BP_OK;
    }
    if (!t)
        return ctx_fail(r->c, BP_INVALID_ARGUMENT, "constant \"%s\" of graph \"%s\" has no value", n->name,
                        r->gm->name);
    set_tensor(&r->slots[r->at], tensor_ref(t));
    return BP_OK;
}

/* A number as a result: an i64 tensor of no dimensions. */
static bp_status give_number(run *r, bp_dim d, bp_tensor **out)
{
    tensor_meta m = symint_meta();
    *out = d.sym ? tensor_new_fake(r->c, &m) : tensor_new(r->c, &m);
    if (!*out)
        return r->c->diag.code;
    if (!d.sym)
        *(int64_t *)tensor_ptr(*out) = d.value;
    return BP_OK;
}

static bp_status give_outputs(run *r, const graph_node *n)
{
    const bp_value *list = &n->args[0];
    for (uint32_t i = 0; i < list->count; i++) {
        const bp_value *v = &list->v.items[i];
        const slot *s = v->kind == BP_VALUE_NODE ? &r->slots[v->v.node] : NULL;
        bool number = s && s->kind == SLOT_VALUE && !s->one && !s->guessed && s->value.kind == BP_VALUE_INT;
        if (number || v->kind == BP_VALUE_INT) {
            bp_dim d = number ? s->value.v.dim : binding_eval(&r->syms, v->v.dim);
            TRY(r->c->diag.code);
            TRY(give_number(r, d, &r->outputs[i]));
            continue;
        }
        if (s && s->kind != SLOT_TENSOR && !s->one)
            return ctx_fail(r->c, BP_INVALID_ARGUMENT, "output %u of graph \"%s\" is no tensor", i, r->gm->name);
        r->outputs[i] = s && s->one ? tensor_ref(s->one) : NULL;
    }
    return BP_OK;
}

static bp_status run_node(run *r)
{
    const graph_node *n = graph_get(r->g, r->at);
    switch (n->op) {
    case BP_NODE_PLACEHOLDER: return take_input(r, n);
    case BP_NODE_GET_ATTR: return take_constant(r, n);
    case BP_NODE_CALL_FUNCTION: return call(r, n);
    default: return give_outputs(r, n);
    }
}

/* Behind a node: numbers and symbols that it made. */
static bp_status learn(run *r)
{
    const slot *s = &r->slots[r->at];
    bool number = s->kind == SLOT_VALUE && !s->guessed && s->value.kind == BP_VALUE_INT;
    if (number && r->numbers)
        r->numbers[r->at] = s->value.v.dim;
    if (!r->syms.makes || !r->syms.makes[r->at])
        return BP_OK;
    return binding_learn(&r->syms, r->at, slot_tensors(s), s->n, number ? &s->value.v.dim : NULL);
}

static bp_status run_nodes(run *r)
{
    for (r->at = r->g->first; r->at; r->at = graph_get(r->g, r->at)->next) {
        const graph_node *n = graph_get(r->g, r->at);
        bp_status s = run_node(r);
        if (!s)
            s = learn(r);
        if (!s && r->on_node && n->op != BP_NODE_OUTPUT)
            s = r->on_node(r->arg, r->at, slot_tensors(&r->slots[r->at]), r->slots[r->at].n);
        if (s) {
            diag_while(&r->c->diag, "running \"%s\" of graph \"%s\"", n->name, r->gm->name);
            return s;
        }
        graph_each_input(r->g, r->at, empty_if_last, r);
        if (!n->users.len)
            empty_slot(&r->slots[r->at]);
    }
    return r->next_input == r->ninputs
               ? BP_OK
               : ctx_fail(r->c, BP_INVALID_ARGUMENT, "graph \"%s\" has %u inputs, got %u", r->gm->name, r->next_input,
                          r->ninputs);
}

static void find_last_uses(run *r)
{
    for (r->at = r->g->last; r->at; r->at = graph_get(r->g, r->at)->prev)
        graph_each_input(r->g, r->at, note_last, r);
}

/* With fakes of the graph's environment and no other, that is the current one. */
static bp_status run_bound(run *r)
{
    TRY(binding_init(&r->syms, r->c, r->gm, r->inputs, r->ninputs));
    bool alone = r->syms.itself && !sym_current();
    sym_scope scope = {0};
    if (alone)
        scope = sym_push(r->syms.syms, r->c);
    find_last_uses(r);
    bp_status s = run_nodes(r);
    if (alone)
        sym_pop(scope);
    binding_fini(&r->syms);
    return s;
}

bp_status graph_run(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                    bp_tensor **outputs, uint32_t noutputs, graph_on_node on_node, void *arg)
{
    return run_telling_numbers(c, gm, inputs, ninputs, outputs, noutputs, on_node, arg, NULL);
}

bp_status run_telling_numbers(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                              bp_tensor **outputs, uint32_t noutputs, graph_on_node on_node, void *arg,
                              bp_dim *numbers)
{
    for (uint32_t i = 0; i < noutputs; i++)
        outputs[i] = NULL;
    if (!ctx_ok(c))
        return c->diag.code;
    TRY(graph_status(c, &gm->g));
    if (noutputs != graph_output_count(&gm->g))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "graph \"%s\" has %u outputs, room was given for %u", gm->name,
                        graph_output_count(&gm->g), noutputs);
    run r = {.c = c, .gm = gm, .g = &gm->g, .inputs = inputs, .ninputs = ninputs, .outputs = outputs,
             .on_node = on_node, .arg = arg, .numbers = numbers};
    const char *file = c->site_file;
    int32_t line = c->site_line;
    r.slots = calloc(gm->g.nodes.len, sizeof *r.slots);
    r.last_use = calloc(gm->g.nodes.len, sizeof *r.last_use);
    bp_status s = r.slots && r.last_use ? BP_OK : ctx_nomem(c);
    if (!s)
        s = run_bound(&r);
    for (uint32_t i = 0; i < gm->g.nodes.len && r.slots; i++)
        empty_slot(&r.slots[i]);
    for (uint32_t i = 0; s && i < noutputs; i++) {
        tensor_unref(outputs[i]);
        outputs[i] = NULL;
    }
    c->site_file = file;
    c->site_line = line;
    free(r.slots);
    free(r.last_use);
    vec_fini(&r.made);
    return s;
}

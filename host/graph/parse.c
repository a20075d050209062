/* The parser of canonical text (docs/ir.md): recursive descent, one function a rule of the grammar.
 *
 * A module that is returned has passed graph_verify; each node's place is its line of the text. */
#include "host/graph/atom.h"
#include "host/graph/header.h"
#include "host/graph/namer.h"
#include "host/graph/symbols.h"
#include "host/graph/text.h"
#include "sdk/base/base64.h"
#include "sdk/base/checked.h"
#include <string.h>

enum { DEEPEST_LIST = 60, LONGEST_WORD = 200 };

typedef struct {
    lexer x;
    bp_ctx *c;
    bp_graph_module *gm;
    arena tmp; /* of the node being read */
    uint32_t depth, graphs; /* how deep lists, and graphs, are nested here */
} parser;

typedef VEC(bp_value) values;
typedef VEC(tensor_meta) metas;

static bp_status read_value(parser *p, bp_value *out);

static const char *copy_word(parser *p, str w)
{
    const char *s = arena_strndup(&p->tmp, w.s, w.n);
    if (!s)
        ctx_nomem(p->c);
    return s;
}

/* -- types --------------------------------------------------------------------------------------------------------- */

/* Integers and expressions up to a ';' or ']'. */
static bp_status read_dims(parser *p, const char *what, int64_t least, bp_dim *out, uint32_t *n)
{
    *n = 0;
    if (lex_is(&p->x, ']') || lex_is(&p->x, ';'))
        return BP_OK;
    do {
        lex_place at = lex_here(&p->x);
        if (*n == TENSOR_MAX_RANK)
            return lex_fail(&p->x, at, "a tensor has at most %d dimensions", TENSOR_MAX_RANK);
        TRY(header_dim(&p->x, &p->gm->g, what, least, &out[*n]));
        ++*n;
    } while (lex_take(&p->x, ','));
    return BP_OK;
}

static bp_status read_type(parser *p, tensor_meta *m)
{
    lex_place at = lex_here(&p->x);
    uint32_t nstrides;
    *m = (tensor_meta){.device = {BP_CPU, 0}};
    m->sizes = arena_array(&p->tmp, TENSOR_MAX_RANK, sizeof *m->sizes);
    m->strides = arena_array(&p->tmp, TENSOR_MAX_RANK, sizeof *m->strides);
    if (!m->sizes || !m->strides)
        return ctx_nomem(p->c);
    TRY(atom_dtype(&p->x, &m->dtype));
    TRY(lex_expect(&p->x, '[', "'[' and the sizes"));
    TRY(read_dims(p, "a size", 0, m->sizes, &m->rank));
    if (lex_take(&p->x, ';')) {
        TRY(read_dims(p, "a stride", 0, m->strides, &nstrides));
        if (nstrides != m->rank)
            return lex_fail(&p->x, at, "expected %u strides, as many as sizes, got %u", m->rank, nstrides);
    } else {
        if (!text_strides(p->c, m->rank, m->sizes, m->strides))
            return p->c->diag.code;
    }
    TRY(lex_expect(&p->x, ']', "',' or ';' or ']'"));
    return lex_take(&p->x, '@') ? atom_device(&p->x, &m->device) : BP_OK;
}

static bp_status push_type(parser *p, metas *out)
{
    tensor_meta m;
    TRY(read_type(p, &m));
    return vec_push(out, m) ? BP_OK : ctx_nomem(p->c);
}

/* ": Sym(2*s0)", the number that a node gives. */
static bool take_sym(lexer *x)
{
    lexer ahead = *x;
    if (!str_is(lex_word(&ahead), "Sym"))
        return false;
    *x = ahead;
    return true;
}

static bp_status read_sym(parser *p, bp_dim *out)
{
    lex_place at = lex_here(&p->x);
    TRY(lex_expect(&p->x, '(', "'(' and an expression"));
    TRY(header_dim(&p->x, &p->gm->g, "a number", INT64_MIN, out));
    if (!out->sym)
        return lex_fail(&p->x, at, "expected an expression with a symbol: a number needs no type");
    return lex_expect(&p->x, ')', "')'");
}

/* ": f32[10]" or ": (f32[5], f32[5])" or ": Sym(s0)", or nothing. */
static bp_status read_types(parser *p, metas *out, bp_dim *number)
{
    if (!lex_take(&p->x, ':'))
        return BP_OK;
    if (take_sym(&p->x))
        return read_sym(p, number);
    if (!lex_take(&p->x, '('))
        return push_type(p, out);
    if (lex_take(&p->x, ')'))
        return BP_OK;
    do
        TRY(push_type(p, out));
    while (lex_take(&p->x, ','));
    return lex_expect(&p->x, ')', "',' or ')'");
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static bp_status unknown_node(parser *p, lex_place at, str name)
{
    VEC(const char *) names = {0};
    const graph *g = &p->gm->g;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (!vec_push(&names, graph_get(g, n)->name))
            break;
    bp_status s = lex_unknown(&p->x, at, "the name of an earlier node", name, names.at, names.len);
    vec_fini(&names);
    return s;
}

static bp_status read_node_ref(parser *p, bp_value *out)
{
    lex_place at = lex_here(&p->x);
    lex_take(&p->x, '%');
    str w = lex_word(&p->x);
    if (!w.n)
        return lex_unexpected(&p->x, "the name of a node");
    const char *name = copy_word(p, w);
    if (!name)
        return BP_RESOURCE_EXHAUSTED;
    node_id n = graph_find(&p->gm->g, name);
    if (!n)
        return unknown_node(p, at, w);
    *out = graph_ref(n);
    return BP_OK;
}

static bp_status read_list(parser *p, bp_value *out)
{
    values items = {0};
    lex_place at = lex_here(&p->x);
    bp_status s = ++p->depth > DEEPEST_LIST ? lex_fail(&p->x, at, "lists nest deeper than %d", DEEPEST_LIST) : BP_OK;
    lex_take(&p->x, '[');
    while (!s && !lex_take(&p->x, ']')) {
        bp_value v = {0};
        s = items.len ? lex_expect(&p->x, ',', "',' or ']'") : BP_OK;
        if (!s)
            s = read_value(p, &v);
        if (!s && !vec_push(&items, v))
            s = ctx_nomem(p->c);
    }
    p->depth--;
    const bp_value *copy = s ? NULL : arena_memdup(&p->tmp, items.at, items.len * sizeof *items.at);
    if (!s && !copy)
        s = ctx_nomem(p->c);
    *out = (bp_value){BP_VALUE_LIST, items.len, {.items = copy}};
    vec_fini(&items);
    return s;
}

static bp_status read_value(parser *p, bp_value *out)
{
    if (lex_is(&p->x, '%'))
        return read_node_ref(p, out);
    if (!lex_is(&p->x, '[') && header_is_expression(&p->x, &p->gm->g)) {
        *out = (bp_value){.kind = BP_VALUE_INT};
        return header_dim(&p->x, &p->gm->g, "a number", INT64_MIN, &out->v.dim);
    }
    return lex_is(&p->x, '[') ? read_list(p, out) : atom_read(&p->x, &p->tmp, out);
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

typedef struct {
    values args;
    VEC(node_kwarg) kwargs;
    metas types;
    bp_dim number;
    lex_place at; /* of its name */
} reading;

static void reading_fini(reading *r)
{
    vec_fini(&r->args);
    vec_fini(&r->kwargs);
    vec_fini(&r->types);
}

static bp_status read_argument(parser *p, reading *r)
{
    bp_value v = {0};
    lex_place at = lex_here(&p->x);
    str keyword = lex_keyword(&p->x);
    if (!keyword.n && r->kwargs.len)
        return lex_fail(&p->x, at, "expected a named argument after \"%s=\"", vec_last(&r->kwargs).name);
    TRY(read_value(p, &v));
    if (!keyword.n)
        return vec_push(&r->args, v) ? BP_OK : ctx_nomem(p->c);
    const char *name = copy_word(p, keyword);
    return name && vec_push(&r->kwargs, (node_kwarg){name, v}) ? BP_OK : ctx_nomem(p->c);
}

static bp_status read_arguments(parser *p, reading *r)
{
    TRY(lex_expect(&p->x, '(', "'(' and the arguments"));
    if (lex_take(&p->x, ')'))
        return BP_OK;
    do
        TRY(read_argument(p, r));
    while (lex_take(&p->x, ','));
    return lex_expect(&p->x, ')', "',' or ')'");
}

static bp_status add_node(parser *p, reading *r, const node_spec *spec)
{
    node_spec s = *spec;
    s.exact_name = s.name != NULL;
    s.args = r->args.at;
    s.nargs = r->args.len;
    s.kwargs = r->kwargs.at;
    s.nkwargs = r->kwargs.len;
    s.metas = r->types.at;
    s.nmetas = r->types.len;
    s.number = r->number;
    node_id n = graph_add(&p->gm->g, &s);
    graph_set_site(&p->gm->g, n, p->x.file, (int32_t)r->at.line);
    if (n)
        p->gm->g.nodes.at[n].column = (int32_t)r->at.column;
    return graph_status(p->c, &p->gm->g);
}

static bp_status add_placeholder(parser *p, reading *r, const node_spec *s)
{
    tensor_meta m = symint_meta();
    return r->number.sym && !vec_push(&r->types, m) ? ctx_nomem(p->c) : add_node(p, r, s);
}

static bp_status read_placeholder(parser *p, reading *r, const char *name)
{
    static const char *const roles[] = {"user", "parameter", "buffer", "constant", "symint"};
    node_spec s = {.op = BP_NODE_PLACEHOLDER, .name = name};
    TRY(lex_string(&p->x, &p->tmp, "the source name in quotes", &s.target));
    lex_place at = lex_here(&p->x);
    str role = lex_word(&p->x);
    for (int32_t i = BP_ROLE_USER; i <= BP_ROLE_SYMINT; i++)
        if (str_is(role, text_role(i))) {
            s.role = i;
            return (i == BP_ROLE_SYMINT) == (r->number.sym != 0)
                       ? add_placeholder(p, r, &s)
                       : lex_fail(&p->x, r->at, "the type of a symint is Sym(...), and no other placeholder has that");
        }
    return role.n ? lex_unknown(&p->x, at, "a role", role, roles, 5)
                  : lex_unexpected(&p->x, "a role: user, parameter, buffer, constant or symint");
}

/* Bytes from the first element to the last; -1 when that does not fit in 63 bits. */
static int64_t span_bytes(const tensor_meta *m)
{
    int64_t last = 0, step;
    for (uint32_t d = 0; d < m->rank; d++) {
        if (m->sizes[d].value == 0)
            return 0;
        if (!checked_mul(m->sizes[d].value - 1, m->strides[d].value, &step) || !checked_add(last, step, &last))
            return -1;
    }
    return checked_add(last, 1, &last) && checked_mul(last, (int64_t)dtype_size(m->dtype), &last) ? last : -1;
}

static bp_status set_data(parser *p, lex_place at, const char *name, const tensor_meta *m, const char *text)
{
    size_t n = strlen(text);
    int64_t nbytes = base64_size(text, n), expected = span_bytes(m);
    if (nbytes < 0 || nbytes != expected)
        return lex_fail(&p->x, at, "expected base64 of %lld bytes, got %lld", (long long)expected, (long long)nbytes);
    bp_tensor *t = tensor_new(p->c, m);
    if (!t)
        return p->c->diag.code;
    bp_status s = nbytes && !base64_decode(tensor_ptr(t), text, n)
                      ? lex_fail(&p->x, at, "the data hold a character that is not of base64")
                      : gm_set_constant(p->c, p->gm, name, t);
    tensor_unref(t);
    return s;
}

static bp_status read_get_attr(parser *p, reading *r, const char *name)
{
    node_spec s = {.op = BP_NODE_GET_ATTR, .name = name};
    const char *text;
    TRY(lex_string(&p->x, &p->tmp, "the attribute's name in quotes", &s.target));
    lexer ahead = p->x;
    if (str_is(lex_word(&ahead), "data")) {
        p->x = ahead;
        lex_place at = lex_here(&p->x);
        if (r->types.len != 1 || !meta_is_constant(&r->types.at[0]))
            return lex_fail(&p->x, r->at, "a constant with data needs one type, without symbols");
        TRY(lex_string(&p->x, &p->tmp, "data in quotes", &text));
        TRY(set_data(p, at, name, &r->types.at[0], text));
    }
    ahead = p->x;
    if (str_is(lex_word(&ahead), "graph")) /* its value stands below */
        p->x = ahead;
    return add_node(p, r, &s);
}

/* The target up to its '(': "aten.add.Scalar" or "<built-in function getitem>". */
static bp_status read_target(parser *p, const char **out)
{
    lex_place at = lex_here(&p->x);
    bool builtin = lex_is(&p->x, '<');
    str name = lex_name(&p->x), unused;
    if (builtin) {
        const char *close = memchr(p->x.at, '>', (size_t)(p->x.end - p->x.at));
        if (!close || close - at.at > LONGEST_WORD)
            return lex_fail(&p->x, at, "expected <built-in function NAME>");
        p->x.at = close + 1;
        name = (str){at.at, (size_t)(p->x.at - at.at)};
    }
    if (!name.n)
        return lex_unexpected(&p->x, "an operator, placeholder or get_attr");
    if (!(*out = copy_word(p, name)))
        return BP_RESOURCE_EXHAUSTED;
    if (builtin ? graph_is_builtin(*out, &unused) : op_by_target(*out) != NULL)
        return BP_OK;
    const char *near = op_nearest(*out);
    bp_status s = lex_fail(&p->x, at, "unknown operator \"%.*s\"", LONGEST_WORD, *out);
    if (near)
        diag_hint(&p->c->diag, "did you mean \"%s\"?", near);
    return s;
}

static bp_status read_call(parser *p, reading *r, const char *name)
{
    node_spec s = {.op = BP_NODE_CALL_FUNCTION, .name = name};
    TRY(read_target(p, &s.target));
    TRY(read_arguments(p, r));
    return add_node(p, r, &s);
}

static bp_status read_named(parser *p, reading *r)
{
    lex_take(&p->x, '%');
    str w = lex_word(&p->x);
    if (!w.n)
        return lex_unexpected(&p->x, "the name of a node");
    const char *name = copy_word(p, w);
    if (!name)
        return BP_RESOURCE_EXHAUSTED;
    node_id taken = graph_find(&p->gm->g, name);
    if (taken)
        return lex_fail(&p->x, r->at, "the name \"%%%s\" is taken by line %d", name, graph_get(&p->gm->g, taken)->line);
    TRY(read_types(p, &r->types, &r->number));
    TRY(lex_expect(&p->x, '=', "':' or '='"));
    lexer ahead = p->x;
    str op = lex_name(&ahead);
    if (!str_is(op, "placeholder") && !str_is(op, "get_attr"))
        return read_call(p, r, name);
    p->x = ahead;
    return op.s[0] == 'p' ? read_placeholder(p, r, name) : read_get_attr(p, r, name);
}

static bp_status read_output(parser *p, reading *r)
{
    str w = lex_word(&p->x);
    static const char *const names[] = {"output"};
    if (!str_is(w, names[0]))
        return w.n ? lex_unknown(&p->x, r->at, "'%', '}' or \"output\"", w, names, 1)
                   : lex_unexpected(&p->x, "'%', '}' or \"output\"");
    TRY(read_arguments(p, r));
    if (r->kwargs.len)
        return lex_fail(&p->x, r->at, "an output has no named arguments");
    bp_value list = {BP_VALUE_LIST, r->args.len, {.items = r->args.at}};
    reading wrapped = {.args = {&list, 1, 1}, .at = r->at};
    return add_node(p, &wrapped, &(node_spec){.op = BP_NODE_OUTPUT, .target = "output"});
}

static bp_status read_node(parser *p)
{
    reading r = {.at = lex_here(&p->x)};
    bp_status s = lex_is(&p->x, '%') ? read_named(p, &r) : read_output(p, &r);
    reading_fini(&r);
    arena_fini(&p->tmp);
    return s;
}

static bp_status read_graph(parser *p);

/* A graph inside a graph: the value of the get_attr of its name. */
static bp_status read_sub(parser *p)
{
    bp_graph_module *outer = p->gm;
    lex_place at = lex_here(&p->x);
    if (p->graphs == DEEPEST_LIST)
        return lex_fail(&p->x, at, "graphs nest deeper than %d", DEEPEST_LIST);
    p->gm = NULL;
    p->graphs++;
    bp_status s = read_graph(p);
    p->graphs--;
    node_id n = s ? 0 : graph_find(&outer->g, p->gm->name);
    if (!s && (!n || graph_get(&outer->g, n)->op != BP_NODE_GET_ATTR || gm_constant(outer, p->gm->name) ||
               gm_sub(outer, p->gm->name)))
        s = lex_fail(&p->x, at, "graph \"%.200s\" must be the value of one get_attr of that name", p->gm->name);
    if (!s)
        s = gm_set_sub(p->c, outer, p->gm->name, p->gm);
    gm_unref(p->gm);
    p->gm = outer;
    return s;
}

static bool at_graph(const parser *p)
{
    lexer ahead = p->x;
    return !lex_is(&ahead, '%') && str_is(lex_word(&ahead), "graph");
}

static bp_status read_nodes(parser *p)
{
    while (!lex_is(&p->x, '}'))
        TRY(at_graph(p) ? read_sub(p) : read_node(p));
    if (!graph_output_node(&p->gm->g))
        return lex_fail(&p->x, lex_here(&p->x), "graph \"%s\" has no output", p->gm->name);
    lex_take(&p->x, '}');
    return BP_OK;
}

/* Symbols, then nodes, whose dims are of these symbols. */
static bp_status read_body(parser *p)
{
    TRY(lex_expect(&p->x, '{', "'{'"));
    TRY(header_read(&p->x, &p->tmp, &p->gm->g));
    sym_scope scope = sym_push(p->gm->g.syms, p->c);
    bp_status s = read_nodes(p);
    sym_pop(scope);
    return s;
}

static bp_status read_graph(parser *p)
{
    lex_place at = lex_here(&p->x);
    str w = lex_word(&p->x);
    static const char *const names[] = {"graph"};
    if (!str_is(w, names[0]))
        return w.n ? lex_unknown(&p->x, at, "\"graph\"", w, names, 1) : lex_unexpected(&p->x, "\"graph\"");
    const char *name = NULL;
    if (lex_is(&p->x, '"')) {
        TRY(lex_string(&p->x, &p->tmp, "the graph's name", &name));
    } else {
        str plain = lex_name(&p->x);
        if (!plain.n)
            return lex_unexpected(&p->x, "the graph's name");
        name = copy_word(p, plain);
    }
    if (!name || !(p->gm = gm_new(p->c, name)))
        return p->c->diag.code;
    return read_body(p);
}

static bp_status read_text(parser *p)
{
    TRY(read_graph(p));
    return lex_at_end(&p->x) ? BP_OK : lex_unexpected(&p->x, "the end of the text");
}

bp_graph_module *graph_parse_text(bp_ctx *c, const char *file, const char *text, size_t n)
{
    parser p = {.x = {c, file, text, text + n, text, 1}, .c = c};
    if (!ctx_ok(c))
        return NULL;
    bp_status s = read_text(&p);
    if (!s && (s = graph_verify(c, p.gm)) != BP_OK)
        diag_while(&c->diag, "checking the graph of %s", file);
    arena_fini(&p.tmp);
    if (s) {
        gm_unref(p.gm);
        return NULL;
    }
    return p.gm;
}

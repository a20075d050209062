/* einsum, tensordot, bilinear: sums of products over named dimensions, made of permutations and bmm.
 *
 * einsum gives every operand one dimension a label: first those of the result in its order, then those to be summed.
 * Operands are then contracted from left to right; a label is summed as soon as no later operand has it. */
#include "host/op/reference/steps.h"
#include "host/op/rows.h"
#include <string.h>

enum { LABELS = 52, ELLIPSIS = LABELS, MANY_OPERANDS = 32 };

/* Labels of an operand or of the result, in order. */
typedef struct {
    uint32_t n;
    uint8_t at[TENSOR_MAX_RANK];
} subscripts;
typedef struct {
    uint32_t nops, nell, nout, rank; /* rank: of every operand once it is aligned; nell: dimensions of "..." */
    subscripts in[MANY_OPERANDS], out;
    bool has_out;
    int64_t place[LABELS + 1]; /* where a label's dimension is; -1: the label does not occur */
} equation;

static bp_status bad(work *w, const op_row *op, const char *equation_text, const char *what)
{
    return op_fail(w->c, op, BP_INVALID_ARGUMENT, "equation \"%s\": %s", equation_text, what);
}

/* Reads labels up to `end` or a comma. */
static bp_status read_labels(work *w, const op_row *op, const char *text, const char **at, const char *end,
                             subscripts *s)
{
    for (; *at < end && **at != ','; (*at)++) {
        char ch = **at;
        uint8_t label = ch >= 'A' && ch <= 'Z' ? (uint8_t)(ch - 'A') : (uint8_t)(ch - 'a' + 26);
        if (ch == ' ')
            continue;
        if (ch == '.' && end - *at >= 3 && strncmp(*at, "...", 3) == 0) {
            if (memchr(s->at, ELLIPSIS, s->n))
                return bad(w, op, text, "two ellipses in one operand");
            label = ELLIPSIS;
            *at += 2;
        } else if (!((ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z'))) {
            return bad(w, op, text, "only letters, blanks, \",\", \"...\" and \"->\" are allowed");
        }
        if (s->n == TENSOR_MAX_RANK)
            return bad(w, op, text, "too many labels");
        s->at[s->n++] = label;
    }
    return BP_OK;
}

static bp_status read_equation(work *w, const op_row *op, const char *text, uint32_t nops, equation *e)
{
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text), *at = text;
    *e = (equation){.nops = nops, .has_out = arrow != NULL};
    if (nops == 0 || nops > MANY_OPERANDS)
        return op_fail(w->c, op, BP_INVALID_ARGUMENT, "%u operands: there must be 1 to %d", nops, MANY_OPERANDS);
    for (uint32_t i = 0;; i++, at++) {
        if (i == nops)
            return bad(w, op, text, "more operands than were given");
        TRY(read_labels(w, op, text, &at, end, &e->in[i]));
        if (at == end) {
            if (i + 1 < nops)
                return bad(w, op, text, "fewer operands than were given");
            break;
        }
    }
    if (!arrow)
        return BP_OK;
    at = arrow + 2;
    const char *rest = at + strlen(at);
    TRY(read_labels(w, op, text, &at, rest, &e->out));
    return at == rest ? BP_OK : bad(w, op, text, "a comma in the result");
}

/* How many dimensions the ellipsis of an operand stands for. */
static bp_status count_ellipsis(work *w, const op_row *op, const char *text, const subscripts *s, const bp_tensor *t,
                                uint32_t *most)
{
    bool ellipsis = memchr(s->at, ELLIPSIS, s->n) != NULL;
    uint32_t named = s->n - ellipsis;
    if (ellipsis ? t->rank < named : t->rank != named)
        return bad(w, op, text, "the labels of an operand are not as many as its dimensions");
    if (ellipsis && t->rank - named > *most)
        *most = t->rank - named;
    return BP_OK;
}

static void give_place(equation *e, uint32_t label, uint32_t *next)
{
    e->place[label] = *next;
    *next += label == ELLIPSIS ? e->nell : 1;
}

/* The result's labels come first: those that were given, or "..." and then what occurs once, in order of the alphabet.
 */
static bp_status place_labels(work *w, const op_row *op, const char *text, equation *e)
{
    uint32_t count[LABELS + 1] = {0}, next = 0;
    for (uint32_t i = 0; i < e->nops; i++)
        for (uint32_t k = 0; k < e->in[i].n; k++)
            count[e->in[i].at[k]]++;
    for (uint32_t l = 0; l <= LABELS; l++)
        e->place[l] = -1;
    for (uint32_t k = 0; k < e->out.n; k++) {
        uint32_t label = e->out.at[k];
        if (e->place[label] >= 0 || (count[label] == 0 && label != ELLIPSIS))
            return bad(w, op, text,
                       e->place[label] >= 0 ? "a label occurs twice in the result"
                                            : "a label of the result is in no operand");
        give_place(e, label, &next);
    }
    if (!e->has_out)
        give_place(e, ELLIPSIS, &next);
    for (uint32_t l = 0; !e->has_out && l < LABELS; l++)
        if (count[l] == 1)
            give_place(e, l, &next);
    e->nout = next;
    if (e->place[ELLIPSIS] < 0)
        give_place(e, ELLIPSIS, &next);
    for (uint32_t l = 0; l < LABELS; l++)
        if (count[l] && e->place[l] < 0)
            give_place(e, l, &next);
    e->rank = next;
    return e->rank < TENSOR_MAX_RANK ? BP_OK : bad(w, op, text, "too many dimensions");
}

/* A repeated label stands for a diagonal, which takes the place of its first dimension. */
static bp_tensor *take_diagonal(work *w, const op_row *op, const char *text, bp_tensor *t, int64_t first,
                                int64_t second)
{
    if (t && !dim_eq(t->sizes[first], t->sizes[second])) {
        bad(w, op, text, "a repeated label has two sizes");
        return NULL;
    }
    bp_value args[] = {value_tensor(t), value_int(0), value_int(first), value_int(second)};
    bp_tensor *d = t ? work_call(w, ROW_diagonal_default, 4, args) : NULL;
    int64_t order[TENSOR_MAX_RANK];
    for (int64_t i = 0, from = 0; d && i < d->rank; i++)
        order[i] = i == first ? (int64_t)d->rank - 1 : from++;
    return d ? compose_permute(w, d, order) : NULL;
}

/* The operand with a dimension for every label, those it lacks of size 1. */
static bp_tensor *align(work *w, const op_row *op, const char *text, const equation *e, const subscripts *s,
                        bp_tensor *t)
{
    int64_t order[TENSOR_MAX_RANK], dim = 0;
    for (uint32_t d = 0; d < e->rank; d++)
        order[d] = -1;
    for (uint32_t k = 0; t && k < s->n; k++) {
        int64_t *place = &order[e->place[s->at[k]]];
        if (s->at[k] == ELLIPSIS) {
            uint32_t here = t->rank - (uint32_t)dim - (s->n - k - 1); /* the labels behind it have theirs still */
            for (uint32_t j = e->nell - here; j < e->nell; j++)
                place[j] = dim++;
        } else if (*place < 0) {
            *place = dim++;
        } else {
            t = take_diagonal(w, op, text, t, *place, dim);
        }
    }
    for (uint32_t d = 0; t && d < e->rank; d++) {
        if (order[d] < 0) {
            t = compose_unsqueeze(w, t, dim);
            order[d] = dim++;
        }
    }
    return t ? compose_permute(w, t, order) : NULL;
}

/* How many operands have each dimension, and whether their sizes agree. */
static bp_status count_dims(work *w, const op_row *op, const char *text, const equation *e, bp_tensor *const *ops,
                            uint32_t *count)
{
    for (uint32_t d = 0; d < e->rank; d++) {
        bp_dim size = dim_const(1);
        count[d] = 0;
        for (uint32_t i = 0; i < e->nops; i++) {
            bp_dim n = ops[i]->sizes[d];
            if (dim_is(n, 1))
                continue;
            if (count[d] && !dim_eq(n, size))
                return op_fail(w->c, op, BP_INVALID_ARGUMENT, "equation \"%s\": a label has sizes %lld and %lld", text,
                               (long long)dim_hint(size), (long long)dim_hint(n));
            size = n;
            count[d]++;
        }
    }
    return BP_OK;
}

/* Multiplies the first operands; sums what no later operand has. */
static bp_tensor *contract(work *w, const equation *e, bp_tensor *a, bp_tensor *b, uint32_t *count)
{
    int64_t alone_a[TENSOR_MAX_RANK], alone_b[TENSOR_MAX_RANK];
    uint32_t na = 0, nb = 0;
    uint64_t sum = 0;
    for (uint32_t d = e->nout; d < e->rank; d++) {
        bool in_a = !dim_is(a->sizes[d], 1), in_b = !dim_is(b->sizes[d], 1);
        if (in_a && in_b && --count[d] == 1)
            sum |= 1ull << d, count[d] = 0;
        else if (in_a && !in_b && count[d] == 1)
            alone_a[na++] = d, count[d] = 0;
        else if (in_b && !in_a && count[d] == 1)
            alone_b[nb++] = d, count[d] = 0;
    }
    return compose_sumproduct(w, compose_sum(w, a, na, alone_a, true), compose_sum(w, b, nb, alone_b, true), sum);
}

static bp_tensor *body_einsum(work *w, const op_row *op, const bp_value *args)
{
    const char *text = arg_str(args, 0);
    uint32_t n = arg_list_len(args, 1), count[TENSOR_MAX_RANK];
    bp_tensor *ops[MANY_OPERANDS] = {NULL};
    equation e;
    int64_t rest[TENSOR_MAX_RANK];
    if (read_equation(w, op, text, n, &e) != BP_OK)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (count_ellipsis(w, op, text, &e.in[i], arg_list_tensor(args, 1, i), &e.nell) != BP_OK)
            return NULL;
    if (place_labels(w, op, text, &e) != BP_OK)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!(ops[i] = align(w, op, text, &e, &e.in[i], arg_list_tensor(args, 1, i))))
            return NULL;
    if (count_dims(w, op, text, &e, ops, count) != BP_OK)
        return NULL;
    bp_tensor *t = ops[0];
    for (uint32_t i = 1; t && i < n; i++)
        t = contract(w, &e, t, ops[i], count);
    for (uint32_t d = e.nout; d < e.rank; d++)
        rest[d - e.nout] = d;
    if (n == 1)
        return compose_sum(w, t, e.rank - e.nout, rest, false);
    return e.rank > e.nout && t ? compose_reshape(w, t, e.nout, t->sizes) : t;
}

COMPOSED(einsum)

/* -- tensordot -- */

/* t with the dimensions in `chosen` behind (or in front of) the others, as a matrix. */
static bp_tensor *as_matrix(work *w, bp_tensor *t, const int64_t *chosen, uint32_t n, bool behind, bp_dim *rest,
                            uint32_t *nrest)
{
    int64_t order[TENSOR_MAX_RANK];
    bp_dim inner = dim_const(1), outer = inner;
    uint64_t taken = 0;
    uint32_t others = 0;
    for (uint32_t i = 0; i < n; i++)
        taken |= 1ull << chosen[i], inner = dim_mul(w->c, inner, t->sizes[chosen[i]]);
    for (uint32_t d = 0; d < t->rank; d++) {
        if (taken >> d & 1)
            continue;
        order[(behind ? 0 : n) + others++] = d;
        outer = dim_mul(w->c, outer, t->sizes[d]);
        rest[(*nrest)++] = t->sizes[d];
    }
    for (uint32_t i = 0; i < n; i++)
        order[(behind ? others : 0) + i] = chosen[i];
    return compose_reshape(w, compose_permute(w, t, order), 2,
                           (bp_dim[]){behind ? outer : inner, behind ? inner : outer});
}

static bp_tensor *body_tensordot(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *a = arg_tensor(args, 0), *b = arg_tensor(args, 1);
    uint32_t n = arg_list_len(args, 2), nrest = 0;
    int64_t in_a[TENSOR_MAX_RANK], in_b[TENSOR_MAX_RANK];
    bp_dim rest[2 * TENSOR_MAX_RANK];
    if (n != arg_list_len(args, 3) || n > TENSOR_MAX_RANK) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "%u and %u dimensions to be summed", n, arg_list_len(args, 3));
        return NULL;
    }
    for (uint32_t i = 0; i < n && a && b; i++) {
        in_a[i] = layout_wrap_dim(w->c, arg_list_dim(args, 2, i).value, a->rank);
        in_b[i] = layout_wrap_dim(w->c, arg_list_dim(args, 3, i).value, b->rank);
        if (!work_ok(w))
            return NULL;
        bp_dim x = a->sizes[in_a[i]], y = b->sizes[in_b[i]];
        bool one_x = dim_is(x, 1), one_y = dim_is(y, 1);
        if (!one_x && !one_y && !dim_eq(x, y))
            op_fail(w->c, op, BP_INVALID_ARGUMENT, "dimensions of sizes %lld and %lld cannot be summed together",
                    (long long)dim_hint(x), (long long)dim_hint(y));
        else if (one_y)
            a = compose_sum(w, a, 1, &in_a[i], true);
        else if (one_x)
            b = compose_sum(w, b, 1, &in_b[i], true);
    }
    if (!a || !b || !work_ok(w))
        return NULL;
    bp_tensor *x = as_matrix(w, a, in_a, n, true, rest, &nrest), *y = as_matrix(w, b, in_b, n, false, rest, &nrest);
    return compose_reshape(w, compose_two(w, ROW_mm_default, x, y), nrest, rest);
}

COMPOSED(tensordot)

/* Random programs: making, printing and running them. The pool stands for C variables, which the host does not see. */
#include "tests/unit/compile/program.h"

uint32_t rng_next(rng *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    uint64_t z = r->state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32 ^ z);
}

static const struct { const char *name; uint32_t weight, nested; } kinds[] = {
#define STMT_ROW(name, weight, nested) {#name, weight, nested},
#include "tests/unit/compile/program.def"
#undef STMT_ROW
};

/* -- making -------------------------------------------------------------------------------------------------------- */

static enum stmt_kind pick_kind(rng *r, bool flat)
{
    uint32_t total = 0;
    for (int i = 0; i < STMT_KINDS; i++)
        total += flat && kinds[i].nested ? 0 : kinds[i].weight;
    uint32_t at = rng_below(r, total);
    for (int i = 0; i < STMT_KINDS; i++) {
        uint32_t w = flat && kinds[i].nested ? 0 : kinds[i].weight;
        if (at < w)
            return (enum stmt_kind)i;
        at -= w;
    }
    return STMT_ADD;
}

static block *make_block(rng *r, uint32_t depth)
{
    block *b = calloc(1, sizeof *b);
    b->n = depth ? 1 + rng_below(r, 3) : 3 + rng_below(r, 6);
    for (uint32_t i = 0; i < b->n; i++) {
        stmt *s = &b->at[i];
        s->kind = pick_kind(r, depth >= 2);
        for (int j = 0; j < 5; j++)
            s->k[j] = rng_next(r) & 0xffff;
        for (uint32_t j = 0; j < kinds[s->kind].nested; j++)
            s->subs[j] = make_block(r, depth + 1);
    }
    return b;
}

program *program_make(rng *r, bool smooth)
{
    program *p = calloc(1, sizeof *p);
    p->nargs = 1 + rng_below(r, 3);
    p->nouts = 1 + rng_below(r, 3);
    p->smooth = smooth;
    p->body = make_block(r, 0);
    return p;
}

static void free_block(block *b)
{
    for (uint32_t i = 0; b && i < b->n; i++)
        for (int j = 0; j < 2; j++)
            free_block(b->at[i].subs[j]);
    free(b);
}

void program_free(program *p)
{
    free_block(p->body);
    free(p);
}

static void print_block(const block *b, uint32_t depth, buf *out)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const stmt *s = &b->at[i];
        buf_pad(out, 2 * depth + 2, ' ');
        buf_printf(out, "%s %u %u %u %u %u\n", kinds[s->kind].name, s->k[0], s->k[1], s->k[2], s->k[3], s->k[4]);
        for (uint32_t j = 0; j < kinds[s->kind].nested; j++) {
            print_block(s->subs[j], depth + 1, out);
            if (!j && kinds[s->kind].nested > 1)
                buf_puts(out, "  or\n");
        }
    }
}

void program_print(const program *p, buf *out)
{
    buf_printf(out, "%u arguments, %u results\n", p->nargs, p->nouts);
    print_block(p->body, 0, out);
}

/* -- running ------------------------------------------------------------------------------------------------------- */

enum { POOL = 256 };
typedef struct {
    bp_ctx *c;
    const program *p;
    bp_tensor *at[POOL];
    uint32_t n;
    double number; /* the last one asked for */
} pool;

static void put(pool *v, bp_tensor *t)
{
    if (t && v->n < POOL)
        v->at[v->n++] = t;
}

/* The k-th tensor that is no bool and fits beside `like` (NULL: any). */
static bp_tensor *pick(pool *v, uint32_t k, const bp_tensor *like)
{
    bp_tensor *fit[POOL];
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        bp_tensor *t = v->at[i];
        bool same = like && bp_tensor_rank(t) == bp_tensor_rank(like);
        for (uint32_t d = 0; same && d < bp_tensor_rank(t); d++)
            same = bp_tensor_size(t, d) == bp_tensor_size(like, d);
        if (bp_tensor_dtype(t) != BP_BOOL && (!like || same || bp_tensor_numel(t) == 1))
            fit[n++] = t;
    }
    return n ? fit[k % n] : v->at[0];
}

static bp_scalar number(pool *v, uint32_t k)
{
    switch (k % 4) {
    case 0: return bp_scalar_int(-1);
    case 1: return bp_scalar_int(2);
    case 2: return bp_scalar_float(0.5);
    default: return v->number == (double)(int64_t)v->number && !v->p->smooth ? bp_scalar_int((int64_t)v->number)
                                                            : bp_scalar_float(v->number);
    }
}

/* One element of a, as a tensor of none or one dimension. */
static bp_tensor *small(pool *v, bp_tensor *a)
{
    if (bp_tensor_numel(a) == 1)
        return a;
    if (v->p->smooth || bp_tensor_rank(a) != 1)
        return bp_sum(v->c, a);
    return bp_select(v->c, a, 0, bp_tensor_size(a, 0) / 2);
}

static bp_tensor *below(pool *v, bp_tensor *a, uint32_t k)
{
    static const double limits[] = {0.3, 0, 0.6};
    double off = v->p->smooth ? 0.0123 : 0; /* far from every value that a rounding could move over it */
    return bp_lt(v->c, small(v, a), bp_scalar_float(limits[k % 3] + off));
}

static bp_tensor *slice(pool *v, bp_tensor *a, const uint32_t *k)
{
    if (!bp_tensor_rank(a))
        return a;
    int64_t n = bp_tensor_size(a, 0), from = n ? k[1] % n : 0;
    return bp_slice(v->c, a, .dim = 0, .start = BP_SCALAR(from), .end = BP_SCALAR(n),
                    .step = BP_SCALAR(1 + k[2] % 2));
}

static bp_tensor *fold(pool *v, bp_tensor *a, uint32_t k)
{
    int64_t n = bp_tensor_numel(a);
    if (bp_tensor_rank(a) == 2)
        return bp_t(v->c, a);
    if (bp_tensor_rank(a) != 1 || n % 2 || bp_tensor_stride(a, 0) != 1)
        return bp_unsqueeze(v->c, a, 0);
    bp_tensor *m = bp_view_default(v->c, a, BP_DIMS(2, n / 2));
    return k % 2 ? m : bp_t(v->c, m);
}

/* A tensor's value as an index, often out of range. */
static bp_tensor *index_of(pool *v, bp_tensor *one)
{
    if (v->p->smooth)
        one = bp_floor(v->c, bp_add(v->c, bp_mul(v->c, one, 1.0), 0.0123));
    return bp_to(v->c, one, BP_I64);
}

static void run_block(pool *v, const block *b);

static void run_control(pool *v, const stmt *s, bp_tensor *a)
{
    bp_ctx *c = v->c;
    switch (s->kind) {
    case STMT_IF:
        if (bp_is_true(c, below(v, a, s->k[1])))
            run_block(v, s->subs[0]);
        else if (s->k[2] % 2)
            run_block(v, s->subs[1]);
        break;
    case STMT_AGAIN: {
        bp_tensor *p = below(v, a, 0);
        bp_tensor *one = bp_lt(c, bp_full(c, BP_DIMS(1), 0.5), 1);
        if (bp_is_true(c, p) && bp_is_true(c, p) && bp_is_true(c, one))
            put(v, bp_mul(c, a, -1));
        break;
    }
    case STMT_WHILE: {
        bp_tensor *sum = bp_sum(c, a);
        for (uint32_t t = 0; t < s->k[2] % 6 + 1 && bp_is_true(c, bp_lt(c, sum, bp_scalar_float(3.0123))); t++) {
            sum = bp_add(c, bp_mul(c, sum, 2), 1);
            run_block(v, s->subs[0]);
        }
        put(v, sum);
        break;
    }
    case STMT_SWITCH: {
        bp_tensor *x = bp_clamp(c, small(v, a), .min = BP_SCALAR(-3), .max = BP_SCALAR(3));
        int64_t i = bp_item_int(c, v->p->smooth ? index_of(v, x) : x);
        v->number = (double)i;
        run_block(v, s->subs[i & 1]);
        break;
    }
    default: {
        double x = bp_item_float(c, bp_mul(c, small(v, a), 1.0));
        v->number = x > -8 && x < 8 ? x : 1.5;
        break;
    }
    }
}

/* What may be written to a: mostly nothing that eager refuses. */
static bp_tensor *source_for(pool *v, const stmt *s, bp_tensor *a)
{
    bp_tensor *b = pick(v, s->k[1], a);
    if (bp_tensor_dtype(a) == BP_I64 && bp_tensor_dtype(b) == BP_F32)
        b = v->p->smooth ? a : bp_to(v->c, b, BP_I64);
    if (bp_tensor_numel(a) == 1 && bp_tensor_rank(a) != bp_tensor_rank(b))
        b = a;
    return a != b && s->k[4] % 8 ? bp_clone(v->c, b) : b;
}

static void run_write(pool *v, const stmt *s, bp_tensor *a)
{
    bp_ctx *c = v->c;
    bp_tensor *b = source_for(v, s, a);
    switch (s->kind) {
    case STMT_ADD_:
        if (s->k[4] % 3)
            bp_add_inplace(c, a, b);
        else
            bp_add_inplace(c, a, bp_tensor_dtype(a) == BP_I64 ? bp_scalar_int(s->k[1] % 3) : number(v, s->k[1]));
        break;
    case STMT_MUL_: bp_mul_inplace(c, a, b); break;
    case STMT_COPY_: bp_copy_inplace(c, a, b); break;
    case STMT_DRAW_:
        if (bp_tensor_dtype(a) == BP_F32)
            bp_uniform_inplace(c, a);
        break;
    case STMT_FILL_:
        bp_fill_inplace(c, a, bp_tensor_dtype(a) == BP_I64 ? bp_scalar_int(s->k[1] % 3) : number(v, s->k[1]));
        break;
    default: {
        bp_tensor *old = s->k[2] % 2 ? bp_clone(c, a) : bp_add(c, a, 0);
        b = pick(v, s->k[1], a);
        if (bp_tensor_numel(b) == bp_tensor_numel(a) && bp_tensor_dtype(b) == bp_tensor_dtype(a)) {
            bp_copy_inplace(c, a, b);
            bp_copy_inplace(c, b, old);
        }
        break;
    }
    }
}

static bp_tensor *run_pure(pool *v, const stmt *s, bp_tensor *a)
{
    bp_ctx *c = v->c;
    bp_tensor *b = pick(v, s->k[1], a);
    switch (s->kind) {
    case STMT_ADD: return bp_add(c, a, b);
    case STMT_MUL: return bp_mul(c, a, b);
    case STMT_SCALAR: return s->k[2] % 2 ? bp_add(c, a, number(v, s->k[1])) : bp_mul(c, a, number(v, s->k[1]));
    case STMT_SUM: return bp_sum(c, a);
    case STMT_CLONE: return bp_clone(c, a);
    case STMT_RAND: return bp_rand(c, BP_DIMS(3));
    case STMT_SLICE: return slice(v, a, s->k);
    case STMT_SELECT: return bp_tensor_rank(a) ? bp_select(c, a, 0, s->k[1] % bp_tensor_size(a, 0)) : a;
    case STMT_FOLD: return fold(v, a, s->k[1]);
    case STMT_FLAT: return bp_reshape(c, a, BP_DIMS(-1));
    case STMT_WHERE: return bp_where(c, bp_lt(c, a, bp_scalar_float(0.3123)), a, b);
    case STMT_CAST: return bp_to(c, a, s->k[1] % 2 && !v->p->smooth ? BP_I64 : BP_F32);
    case STMT_GATHER: return bp_index_select(c, bp_reshape(c, a, BP_DIMS(-1)), 0,
                                             bp_reshape(c, index_of(v, small(v, b)), BP_DIMS(1)));
    default: return bp_select(c, bp_reshape(c, a, BP_DIMS(-1)), 0, v->p->smooth ? 0 : (int64_t)v->number % 5);
    }
}

static void run_block(pool *v, const block *b)
{
    for (uint32_t i = 0; i < b->n && bp_error(v->c) == BP_OK; i++) {
        const stmt *s = &b->at[i];
        bool writes = s->kind >= STMT_ADD_ && s->kind <= STMT_SWAP;
        bp_tensor *a = writes && s->k[3] % 2 ? v->at[s->k[0] % v->p->nargs] : pick(v, s->k[0], NULL);
        if (s->kind >= STMT_IF)
            run_control(v, s, a);
        else if (writes)
            run_write(v, s, a);
        else
            put(v, run_pure(v, s, a));
    }
}

void program_run_it(bp_ctx *c, bp_frame *f)
{
    static const char *const names[] = {"x", "y", "z"};
    pool v = {.c = c, .p = bp_user(f), .number = 2};
    for (uint32_t i = 0; i < v.p->nargs; i++)
        put(&v, bp_arg(f, i, names[i]));
    if (bp_error(c) != BP_OK)
        return;
    run_block(&v, v.p->body);
    for (uint32_t i = 0; i < v.p->nouts && i < v.n && bp_error(c) == BP_OK; i++)
        bp_return(f, i < 2 ? v.at[v.n - 1 - i] : v.at[i % v.n]);
}

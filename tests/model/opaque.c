/* Disabled functions: opaque steps of a capture. Each takes one tensor, always a real one, and does what no graph can:
 * counts, writes, keeps a tensor for later calls, draws. eager.py has the same. */
#include "tests/model/train.h"
#include <string.h>

typedef void (*opaque_fn)(bp_ctx *c, bp_frame *f);

static side *side_of(bp_frame *f)
{
    return side_here ? side_here : bp_user(f);
}

static bp_tensor *argument(bp_frame *f)
{
    return bp_arg(f, 0, "a");
}

static bp_tensor *newest(const side *s)
{
    return s->stash.len ? s->stash.at[s->stash.len - 1] : NULL;
}

static void add_one(bp_ctx *c, bp_tensor *t)
{
    bp_add_inplace(c, t, 1);
}

static void do_print(bp_ctx *c, bp_frame *f)
{
    buf *out = &side_of(f)->effects;
    buf_puts(out, "effect print");
    show_numbers(c, argument(f), out);
    buf_putc(out, '\n');
}

static void do_count(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = argument(f);
    buf_puts(&side_of(f)->effects, "effect count\n");
    bp_return(f, bp_add(c, a, 1));
}

static void do_mutate(bp_ctx *c, bp_frame *f)
{
    add_one(c, argument(f));
}

/* The first half of it: a view. */
static void do_alias(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = argument(f);
    bp_return(f, bp_slice(c, a, .dim = 0, .start = BP_SCALAR(0), .end = BP_SCALAR((bp_tensor_size(a, 0) + 1) / 2)));
}

static void do_same(bp_ctx *c, bp_frame *f)
{
    (void)c;
    bp_return(f, argument(f));
}

static void do_stash(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = argument(f);
    if (a && vec_push(&side_of(f)->stash, a))
        bp_keep(c, a);
}

static void do_getstash(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = argument(f), *kept = newest(side_of(f));
    (void)c;
    bp_return(f, kept ? kept : a);
}

static void do_draw(bp_ctx *c, bp_frame *f)
{
    census_event(side_of(f)->census, CENSUS_RANDOM_BEFORE);
    bp_return(f, bp_rand(c, BP_DIMS(bp_tensor_size(argument(f), 0))));
}

static void do_poke(bp_ctx *c, bp_frame *f)
{
    bp_tensor *kept = newest(side_of(f));
    argument(f);
    if (kept)
        add_one(c, kept);
}

/* A callable that runs inside a disabled function runs compiled. */
static void do_inside(bp_ctx *c, bp_frame *f)
{
    bp_tensor *given = run_nested(side_of(f), c, argument(f));
    if (given)
        bp_return(f, given);
}

static const struct { const char *name; opaque_fn fn; } rows[] = {
#define OPAQUE(name) {#name, do_##name},
    OPAQUE_ROWS(OPAQUE)
#undef OPAQUE
};

void opaque_open(side *s)
{
    bp_compile_options o = {.user = s, .dynamic = -1, .disable = 1};
    for (int i = 0; i < OPAQUE_KINDS; i++)
        s->disabled[i] = bp_compile(s->c, rows[i].fn, &o);
}

void opaque_keep(side *s, uint32_t n)
{
    uint32_t drop = s->stash.len > n ? s->stash.len - n : 0;
    for (uint32_t i = 0; i < drop; i++)
        bp_tensor_unref(s->stash.at[i]);
    for (uint32_t i = drop; i < s->stash.len; i++)
        s->stash.at[i - drop] = s->stash.at[i];
    s->stash.len -= drop;
}

void opaque_close(side *s)
{
    opaque_keep(s, 0);
    train_close(s);
    vec_fini(&s->stash);
    bp_module_unref(s->module);
    buf_fini(&s->effects);
    for (int i = 0; i < OPAQUE_KINDS; i++)
        bp_callable_unref(s->disabled[i]);
}

bp_tensor *opaque_call(side *s, const char *name, bp_tensor *a)
{
    int i = 0;
    while (i < OPAQUE_KINDS && strcmp(rows[i].name, name))
        i++;
    bp_tensor *given = a;
    bp_value in = bp_arg_of_tensor(a);
    bp_outputs outs = {&given, 0, 1};
    census_event(s->census, CENSUS_DISABLED_BEFORE);
    if (i < OPAQUE_KINDS)
        bp_call(s->c, s->disabled[i], &(bp_args){&in, 1}, &outs);
    return given;
}

/* The backends. A compile function has no argument of its own, so what they work for is static: one program at a
 * time. */
#include "tests/model/links.h"
#include <stdio.h>
#include <string.h>

static links *now;

/* -- counting ------------------------------------------------------------------------------------------------------ */

static void append(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

/* Whose graph it is; the graph without its name; what its text does not say of its inputs. */
static void print_graph(bp_graph_module *gm, const bp_inputs *in, buf *out)
{
    buf_clear(&now->shown);
    bp_print_readable(gm, bp_sink(gm));
    const char *text = buf_text(&now->shown), *line = strchr(text, '\n'), *is = strstr(text, "_backward");
    now->backwards += is && line && is < line;
    buf_printf(out, "callable %llu", (unsigned long long)bp_gm_code_id(gm));
    buf_puts(out, line ? line : text);
    for (uint32_t i = 0; i < bp_input_count(in); i++) {
        bp_view v = {.size = sizeof v};
        bp_input_view(in, i, &v);
        buf_printf(out, "%d/%lld ", v.dtype, v.rank ? (long long)v.strides[0].value : 0);
    }
}

static void count_dynamic(bp_graph_module *gm)
{
    buf_clear(&now->shown);
    bp_print_readable(gm, bp_sink(gm));
    now->symbolic += bp_symbol_count(gm) > 0;
    now->flows += strstr(buf_text(&now->shown), "higher_order.") != NULL;
}

static void count(bp_graph_module *gm, const bp_inputs *in, uint32_t link)
{
    buf text = {0};
    now->compiles[link]++;
    if (now->dynamic)
        count_dynamic(gm);
    if (now->threads || now->dynamic)
        return;
    print_graph(gm, in, &text);
    map_value *v = map_put(&now->texts[link], (str){text.s, text.n}, NULL);
    if (v && v->u++ && !now->twice[0])
        snprintf(now->twice, sizeof now->twice, "%s", buf_text(&text));
    buf_fini(&text);
}

/* -- links that fail ----------------------------------------------------------------------------------------------- */

typedef struct { uint32_t link; bp_compiled *inner; } failing;

static bp_status run_failing(void *state, bp_run *r)
{
    failing *f = state;
    if (++now->runs[f->link] == now->p->links[f->link][1] && ++now->failed_runs)
        return bp_run_fail(r, program_is(now->p, "alone") ? BP_OUT_OF_RANGE : BP_UNAVAILABLE, "run %u fails",
                           atomic_load(&now->runs[f->link]));
    return bp_run_compiled(r, f->inner);
}

static void drop_failing(void *state)
{
    failing *f = state;
    bp_compiled_unref(f->inner);
    free(f);
}

static bp_compiled *compile_failing(bp_graph_module *gm, const bp_inputs *in, uint32_t link)
{
    count(gm, in, link);
    if (now->compiles[link] == now->p->links[link][0] && ++now->failed_compiles)
        return bp_fail(gm, BP_UNAVAILABLE, "compile %u fails", atomic_load(&now->compiles[link]));
    failing *f = malloc(sizeof *f);
    if (!f)
        return bp_fail(gm, BP_RESOURCE_EXHAUSTED, "out of memory");
    *f = (failing){link, bp_forward(gm)};
    return bp_compiled_new(gm, run_failing, drop_failing, f);
}

static bp_compiled *first_link(bp_graph_module *gm, const bp_inputs *in)
{
    return compile_failing(gm, in, 0);
}

static bp_compiled *second_link(bp_graph_module *gm, const bp_inputs *in)
{
    return compile_failing(gm, in, 1);
}

static bp_compiled *chain_backend(bp_graph_module *gm, const bp_inputs *in)
{
    static const char *const names[] = {"first_link", "second_link", "eager"};
    return bp_compile_with(gm, in, names, 3);
}

/* -- one link ------------------------------------------------------------------------------------------------------ */

static bp_compiled *plain_backend(bp_graph_module *gm, const bp_inputs *in)
{
    count(gm, in, 0);
    return bp_forward(gm);
}

static bp_status run_own(void *state, bp_run *r)
{
    now->runs[0]++;
    return own_run(state, r);
}

static bp_compiled *own_backend(bp_graph_module *gm, const bp_inputs *in)
{
    const char *why;
    count(gm, in, 0);
    own *o = own_new(gm, program_is(now->p, "another"), program_is(now->p, "elide"), &why);
    if (o)
        return bp_compiled_new(gm, run_own, own_destroy, o);
    now->foreign += strcmp(why, "aten.rand.default") != 0; /* what draws is left to the reference */
    snprintf(now->foreign_op, sizeof now->foreign_op, "%s", why);
    return bp_forward(gm);
}

bp_compile_fn links_backend(const program *p)
{
    if (program_is(p, "fail"))
        return chain_backend;
    if (program_is(p, "alone"))
        return first_link;
    return program_is(p, "another") || program_is(p, "elide") ? own_backend : plain_backend;
}

bp_status links_begin(links *l, const program *p, bp_ctx *c)
{
    memset(l, 0, sizeof *l);
    l->p = p;
    now = l;
    bp_set_sink(c, append, &l->shown);
    bp_register_backend(c, first_link);
    return bp_register_backend(c, second_link);
}

void links_end(links *l)
{
    buf_fini(&l->shown);
    for (int i = 0; i < MAX_LINKS; i++)
        map_fini(&l->texts[i]);
    now = NULL;
}

/* The census. */
#include "tests/model/census.h"
#include <stdio.h>
#include <string.h>

static const char *const words[] = {
#define CENSUS(name, words) words,
#include "tests/model/census.def"
#undef CENSUS
};

void census_is(census *n, enum census_row row)
{
    if (n)
        n->call |= UINT64_C(1) << row;
}

void census_begin_call(census *n)
{
    if (!n)
        return;
    n->call = n->pending = 0;
    n->asked = n->depth = 0;
}

void census_end_call(census *n)
{
    if (!n)
        return;
    census_is(n, n->asked > 4 ? CENSUS_BREAKS_MORE : (enum census_row)(CENSUS_BREAKS_0 + n->asked));
    for (int i = 0; i < CENSUS_ROWS; i++)
        n->calls[i] += (uint32_t)(n->call >> i & 1);
    n->program |= n->call;
}

void census_end_program(census *n)
{
    if (!n)
        return;
    for (int i = 0; i < CENSUS_ROWS; i++)
        n->programs[i] += (uint32_t)(n->program >> i & 1);
    n->program = 0;
}

void census_ask(census *n, enum census_row row)
{
    if (!n)
        return;
    n->call |= n->pending;
    n->asked++;
    census_is(n, row);
    if (n->depth)
        census_is(n, CENSUS_NESTED_ASKS);
}

void census_event(census *n, enum census_row row)
{
    if (!n)
        return;
    n->pending |= UINT64_C(1) << row;
    if (n->asked)
        census_is(n, row + 1);
    if (n->depth && row == CENSUS_DISABLED_BEFORE)
        census_is(n, CENSUS_NESTED_DISABLED);
}

void census_nest(census *n, int by)
{
    if (!n)
        return;
    n->depth += (uint32_t)by;
    census_is(n, CENSUS_NESTED);
}

static bool shares_with_another(const bp_tensor *a, bp_tensor *const *others, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (others[i] != a && bp_tensor_same_storage(others[i], a))
            return true;
    return false;
}

static bool is_one_of(const bp_tensor *a, bp_tensor *const *others, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (others[i] == a)
            return true;
    return false;
}

void census_write(census *n, const bp_tensor *a, bp_tensor *const *r, bp_tensor *const *inputs, uint32_t ninputs,
                  uint32_t nbuffers)
{
    if (!n)
        return;
    bp_tensor *const *buffers = inputs + ninputs - nbuffers;
    if (is_one_of(a, buffers, nbuffers) || shares_with_another(a, buffers, nbuffers))
        census_event(n, CENSUS_BUFFER_BEFORE);
    if (is_one_of(a, inputs, ninputs - nbuffers))
        census_event(n, CENSUS_INPUT_BEFORE);
    else if (shares_with_another(a, inputs, ninputs) || shares_with_another(a, r, REGISTERS))
        census_event(n, CENSUS_VIEW_BEFORE);
}

void census_results(census *n, bp_tensor *const *all, uint32_t nargs, uint32_t n_all)
{
    for (uint32_t i = nargs; n && i < n_all; i++) {
        if (is_one_of(all[i], all, nargs))
            census_is(n, CENSUS_OUT_IS_INPUT);
        else if (shares_with_another(all[i], all, nargs))
            census_is(n, CENSUS_OUT_IN_INPUT);
        if (shares_with_another(all[i], all + nargs, n_all - nargs))
            census_is(n, CENSUS_OUTS_SHARE);
    }
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

/* Whose memory an argument has, and where it begins there: what aliasing is made of. */
static void find_places(const text_args *a, int64_t places[MAX_ARGS][2])
{
    for (uint32_t i = 0; i < a->nviews; i++) {
        const text_view *v = &a->views[i];
        uint32_t first = v->same >= 0 ? (uint32_t)v->same : i;
        places[i][0] = v->same >= 0 ? places[first][0] : v->buffer;
        places[i][1] = v->same >= 0 ? places[first][1] : v->off;
    }
}

static const text_view *view_of(const text_args *a, uint32_t i)
{
    return a->views[i].same >= 0 ? &a->views[a->views[i].same] : &a->views[i];
}

static void see_aliasing(census *n, const text_args *a)
{
    for (uint32_t i = 0; i < a->nviews; i++)
        for (uint32_t j = 0; j < i; j++) {
            const text_view *u = view_of(a, j), *v = view_of(a, i);
            if (u == v)
                census_is(n, CENSUS_ALIAS_SAME);
            else if (u->buffer == v->buffer && u->off < v->off + v->n * v->stride && v->off < u->off + u->n * u->stride)
                census_is(n, CENSUS_ALIAS_OVERLAP);
        }
}

static void compare_args(census *n, const text_args *now, const text_args *before)
{
    int64_t a[MAX_ARGS][2] = {0}, b[MAX_ARGS][2] = {0};
    find_places(now, a);
    find_places(before, b);
    for (uint32_t i = 0; i < now->nviews; i++) {
        const text_view *u = view_of(now, i), *v = view_of(before, i);
        const text_buffer *x = &now->buffers[u->buffer], *y = &before->buffers[v->buffer];
        if (u->n != v->n)
            census_is(n, CENSUS_OTHER_SIZES);
        if (u->stride != v->stride)
            census_is(n, CENSUS_OTHER_STRIDES);
        if (x->dtype != y->dtype)
            census_is(n, CENSUS_OTHER_DTYPES);
        if (a[i][0] != b[i][0] || a[i][1] != b[i][1] || now->views[i].same != before->views[i].same)
            census_is(n, CENSUS_OTHER_ALIASING);
        if (x->n != y->n || memcmp(x->values, y->values, x->n * sizeof *x->values))
            census_is(n, CENSUS_OTHER_VALUES);
    }
}

void census_args(census *n, const program *p, const text_call *now, const text_call *before)
{
    if (!n)
        return;
    if (now->nograd)
        census_is(n, CENSUS_NO_GRAD);
    if (now->busy)
        census_is(n, CENSUS_BUSY);
    see_aliasing(n, &p->args.at[now->args]);
    if (!before)
        return;
    if (now->nograd != before->nograd)
        census_is(n, CENSUS_OTHER_GRAD);
    compare_args(n, &p->args.at[now->args], &p->args.at[before->args]);
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

void census_print(const census *n)
{
    for (int i = 0; i < CENSUS_ROWS; i++)
        printf("#: %-52s %8u %9u\n", words[i], n->programs[i], n->calls[i]);
}

/* Building and running programs of oneDNN primitives. See program.h. */
#include "plugins/onednn/program.h"
#include <string.h>

enum { ARENA_ALIGN = 64 };

uint32_t program_value(program *p, dnnl_memory_desc_t md, enum value_place place, uint32_t index)
{
    value v = {.md = md, .place = place, .index = index};
    if (vec_push(&p->values, v))
        return p->values.len - 1;
    dnnl.memory_desc_destroy(md);
    return UINT32_MAX;
}

uint32_t program_alias(program *p, uint32_t of, dnnl_memory_desc_t md)
{
    value base = p->values.at[of];
    uint32_t v = program_value(p, md, base.place, base.index);
    if (v != UINT32_MAX) {
        p->values.at[v].data = base.data;
        p->values.at[v].base = base.base ? base.base : of + 1;
    }
    return v;
}

/* Makes the primitive of pd and gives its scratchpad a value of its own. */
static dnnl_status_t add_scratchpad(program *p, step *s, const_dnnl_primitive_desc_t pd)
{
    const_dnnl_memory_desc_t md = dnnl.primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    dnnl_memory_desc_t copy;
    if (!md || dnnl.memory_desc_get_size(md) == 0)
        return dnnl_success;
    dnnl_status_t status = dnnl.memory_desc_clone(&copy, md);
    if (status != dnnl_success)
        return status;
    uint32_t v = program_value(p, copy, PLACE_ARENA, 0);
    if (v == UINT32_MAX)
        return dnnl_out_of_memory;
    s->args[s->nargs].arg = DNNL_ARG_SCRATCHPAD;
    s->args[s->nargs++].value = v;
    return dnnl_success;
}

dnnl_status_t program_step(program *p, uint32_t node, dnnl_primitive_desc_t pd, const int *args, const uint32_t *values,
                           uint32_t n)
{
    step s = {.node = node, .nargs = n};
    for (uint32_t i = 0; i < n; i++) {
        s.args[i].arg = args[i];
        s.args[i].value = values[i];
    }
    dnnl_status_t status = add_scratchpad(p, &s, pd);
    if (status == dnnl_success)
        status = dnnl.primitive_create(&s.primitive, pd);
    dnnl.primitive_desc_destroy(pd);
    if (status == dnnl_success && !vec_push(&p->steps, s)) {
        dnnl.primitive_destroy(s.primitive);
        status = dnnl_out_of_memory;
    }
    return status;
}

dnnl_status_t program_loop(program *p, const step *s)
{
    return vec_push(&p->steps, *s) ? dnnl_success : dnnl_out_of_memory;
}

dnnl_status_t program_reorder(program *p, uint32_t node, uint32_t from, const_dnnl_memory_desc_t md, uint32_t *out)
{
    dnnl_primitive_desc_t pd;
    dnnl_memory_desc_t copy;
    *out = from;
    if (dnnl.memory_desc_equal(p->values.at[from].md, md))
        return dnnl_success;
    dnnl_status_t status = dnnl.memory_desc_clone(&copy, md);
    if (status != dnnl_success)
        return status;
    *out = program_value(p, copy, PLACE_ARENA, 0);
    if (*out == UINT32_MAX)
        return dnnl_out_of_memory;
    status = dnnl.reorder_primitive_desc_create(&pd, p->values.at[from].md, dnnl.engine, copy, dnnl.engine, NULL);
    if (status != dnnl_success)
        return status;
    return program_step(p, node, pd, (const int[]){DNNL_ARG_FROM, DNNL_ARG_TO}, (const uint32_t[]){from, *out}, 2);
}

/* Gives each value of the arena its offset; those that alias another have that one's (a base stands before them). */
static bool lay_out(program *p)
{
    for (uint32_t i = 0; i < p->values.len; i++) {
        value *v = &p->values.at[i];
        if (v->place != PLACE_ARENA)
            continue;
        if (v->base) {
            v->offset = p->values.at[v->base - 1].offset;
            continue;
        }
        size_t n = dnnl.memory_desc_get_size(v->md);
        v->offset = p->arena_bytes;
        if (n > SIZE_MAX - p->arena_bytes - ARENA_ALIGN)
            return false;
        p->arena_bytes += (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    }
    return true;
}

dnnl_status_t program_finish(program *p)
{
    if (!lay_out(p))
        return dnnl_out_of_memory;
    if (!p->is_lent)
        p->arena = bp_alloc(p->host, p->arena_bytes ? p->arena_bytes : ARENA_ALIGN, ARENA_ALIGN);
    if (!p->arena && !p->is_lent)
        return dnnl_out_of_memory;
    for (uint32_t i = 0; i < p->values.len; i++) {
        value *v = &p->values.at[i];
        void *at = v->place != PLACE_ARENA ? v->data : p->arena ? p->arena + v->offset : NULL;
        dnnl_status_t status = dnnl.memory_create(&v->memory, v->md, dnnl.engine, at ? at : DNNL_MEMORY_NONE);
        if (status != dnnl_success)
            return status;
    }
    return dnnl.stream_create(&p->stream, dnnl.engine, dnnl_stream_default_flags);
}

bool program_lend(program *p, char *at)
{
    for (uint32_t i = 0; p->arena != at && i < p->values.len; i++) {
        const value *v = &p->values.at[i];
        if (v->place == PLACE_ARENA && dnnl.memory_set_data_handle(v->memory, at + v->offset) != dnnl_success) {
            p->arena = NULL;
            return false;
        }
    }
    p->arena = at;
    return true;
}

/* Points inputs and outputs at this run's tensors. */
static bp_status bind(program *p, bp_run *r)
{
    for (uint32_t i = 0; i < p->values.len; i++) {
        value *v = &p->values.at[i];
        bp_view view = {.size = sizeof view};
        bp_status status = BP_OK;
        if (v->base && (v->place == PLACE_INPUT || v->place == PLACE_OUTPUT))
            view.data = p->values.at[v->base - 1].data;
        else if (v->place == PLACE_INPUT)
            status = bp_run_borrow(r, v->index, &view);
        else if (v->place == PLACE_OUTPUT)
            status = bp_run_empty(r, v->index, &view);
        else
            continue;
        if (status != BP_OK)
            return status;
        v->data = view.data;
        if (dnnl.memory_set_data_handle(v->memory, view.data) != dnnl_success)
            return bp_run_fail(r, BP_INTERNAL, "oneDNN refused the memory of %s %u",
                               v->place == PLACE_INPUT ? "input" : "output", v->index);
    }
    return BP_OK;
}

static void *address(const program *p, uint32_t v)
{
    return p->values.at[v].place == PLACE_ARENA ? p->arena + p->values.at[v].offset : p->values.at[v].data;
}

static dnnl_status_t execute(program *p, const step *s)
{
    dnnl_exec_arg_t args[STEP_ARGS];
    if (!s->primitive) {
        s->loop(p->host, s, address(p, s->args[0].value), address(p, s->args[1].value));
        return dnnl_success;
    }
    for (uint32_t i = 0; i < s->nargs; i++)
        args[i] = (dnnl_exec_arg_t){s->args[i].arg, p->values.at[s->args[i].value].memory};
    return dnnl.primitive_execute(s->primitive, p->stream, (int)s->nargs, args);
}

bp_status program_run(void *state, bp_run *r)
{
    program *p = state;
    bp_status status = bind(p, r);
    for (uint32_t i = 0; i < p->steps.len && status == BP_OK; i++) {
        dnnl_status_t code = execute(p, &p->steps.at[i]);
        if (code != dnnl_success)
            return bp_run_fail(r, BP_INTERNAL, "oneDNN failed with code %d in step %u of %u", (int)code, i,
                               p->steps.len);
        status = bp_run_poll(r);
    }
    if (status == BP_OK && dnnl.stream_wait(p->stream) != dnnl_success)
        return bp_run_fail(r, BP_INTERNAL, "oneDNN failed while it finished the run");
    return status;
}

void program_destroy(void *state)
{
    program *p = state;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->steps.len; i++)
        if (p->steps.at[i].primitive)
            dnnl.primitive_destroy(p->steps.at[i].primitive);
    for (uint32_t i = 0; i < p->values.len; i++) {
        if (p->values.at[i].memory)
            dnnl.memory_destroy(p->values.at[i].memory);
        dnnl.memory_desc_destroy(p->values.at[i].md);
    }
    if (p->stream)
        dnnl.stream_destroy(p->stream);
    if (p->arena && !p->is_lent)
        bp_free(p->host, p->arena);
    vec_fini(&p->steps);
    vec_fini(&p->values);
    vec_fini(&p->outputs);
    if (p->gm)
        bp_gm_unref(p->gm);
    free(p);
}

/* Services on compiled objects and runs. */
#include "host/backend/service.h"
#include "host/backend/text.h"
#include <stdio.h>

bp_compiled *service_compiled_new(bp_graph_module *gm, bp_run_fn run, bp_destroy_fn destroy, void *state)
{
    compile_record *record = compile_record_of(gm);
    if (!record)
        return NULL;
    if (!run) {
        diag_clear(&record->inner);
        diag_fail(&record->inner, BP_INTERNAL, "compiled_new wants a run function, got NULL");
        return NULL;
    }
    bp_compiled *k = compiled_of_run(record->c, record->b, run, destroy, state);
    if (k) {
        k->made_in = record->id;
        k->env = gm->g.syms ? sym_env_ref(gm->g.syms) : NULL;
        atomic_init(&k->lent, 1);
    } else {
        record->inner = record->c->diag;
        diag_clear(&record->c->diag);
    }
    return k;
}

bp_compiled *service_compiled_ref(bp_compiled *k)
{
    if (!k)
        return NULL;
    if (k->is_dead) {
        backend_over_released(k->b, "a compiled object, which it then took a reference to,");
        return NULL;
    }
    atomic_fetch_add_explicit(&k->lent, 1, memory_order_relaxed);
    return compiled_ref(k);
}

/* The host's own references are not the plugin's to give up. */
void service_compiled_unref(bp_compiled *k)
{
    if (!k)
        return;
    if (!k->is_dead && compiled_take_back(&k->lent))
        compiled_unref(k);
    else
        backend_over_released(k->b, "a compiled object");
}

bp_status service_run_borrow(bp_run *r, uint32_t i, bp_view *out)
{
    return i < r->ninputs && out ? run_view_input(r, i, out) : BP_INVALID_ARGUMENT;
}

bp_status service_run_take(bp_run *r, uint32_t i, bp_view *out, int32_t *owned)
{
    if (owned)
        *owned = 0;
    bp_status st = service_run_borrow(r, i, out);
    if (st == BP_OK && owned && r->owned)
        *owned = r->owned[i];
    return st;
}

bp_status service_run_empty(bp_run *r, uint32_t i, bp_view *out)
{
    return out ? run_make_output(r, i, out) : BP_INVALID_ARGUMENT;
}

bp_status service_run_output(bp_run *r, uint32_t i, const bp_view *v)
{
    return run_set_output(r, i, v);
}

bp_status service_run_poll(bp_run *r)
{
    (void)r; /* no call can be cancelled yet */
    return BP_OK;
}

bp_status service_run_fail_text(bp_run *r, bp_status code, const char *text, size_t n)
{
    code = code == BP_OK ? BP_UNKNOWN : code;
    char clean[1024];
    return text && n ? run_say(r, code, "%s", plugin_text(clean, sizeof clean, text, n)) : code;
}

/* A failure is the caller's to judge: it may run something else, so the story is put aside. */
bp_status service_run_compiled(bp_run *r, bp_compiled *k)
{
    if (!k)
        return BP_INVALID_ARGUMENT;
    if (k->is_dead)
        return run_say(r, BP_INTERNAL, "it ran a compiled object that it had released");
    const bp_host *own = r->host;
    bp_status st = compiled_run(k, r);
    r->host = own;
    r->inner[0] = '\0';
    if (st == BP_OK)
        return BP_OK;
    snprintf(r->inner, sizeof r->inner, "%.500s", r->c->diag.message);
    diag_clear(&r->c->diag);
    atomic_flag_clear(&r->said);
    return st;
}

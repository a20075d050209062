/* Services on a graph module and its inputs, and what a backend says of a graph. A module outlives its compile when a
 * plugin keeps a reference; then there is no record, and what needs one answers with its failure. */
#include "host/backend/chain.h"
#include "host/backend/dims.h"
#include "host/backend/service.h"
#include "host/backend/text.h"
#include "host/backend/watch.h"
#include <stdio.h>
#include <string.h>

/* -- seeing -------------------------------------------------------------------------------------------------------- */

static bp_status write_out(const bp_sink_t *to, const buf *text)
{
    if (text->failed)
        return BP_RESOURCE_EXHAUSTED;
    if (to && to->write)
        to->write(to->arg, buf_text(text), text->n);
    else if (fwrite(buf_text(text), 1, text->n, stdout) != text->n || fflush(stdout) != 0)
        return BP_DATA_LOSS;
    return BP_OK;
}

bp_status service_print_tabular(bp_graph_module *gm, bp_sink_t *to)
{
    buf text = {0};
    buf_printf(&text, "%s\n", gm->name ? gm->name : "");
    gm_print_tabular(gm, &text);
    bp_status st = write_out(to, &text);
    buf_fini(&text);
    return st;
}

bp_status service_print_readable(bp_graph_module *gm, bp_sink_t *to)
{
    buf text = {0};
    gm_print_readable(gm, gm->name, &text);
    bp_status st = write_out(to, &text);
    buf_fini(&text);
    return st;
}

bp_sink_t *service_sink(bp_graph_module *gm)
{
    compile_record *record = compile_record_of(gm);
    return record ? &record->sink : NULL;
}

/* -- the graph module ---------------------------------------------------------------------------------------------- */

/* Takes the context's failure over as the reason for a NULL that the backend does not explain itself. */
static void take_story(compile_record *record)
{
    record->inner = record->c->diag;
    diag_clear(&record->c->diag);
}

bp_compiled *service_forward(bp_graph_module *gm)
{
    compile_record *record = compile_record_of(gm);
    if (!record)
        return NULL;
    bp_compiled *k = compiled_of_graph(record->c, record->b, gm);
    if (k) {
        k->made_in = record->id;
        atomic_init(&k->lent, 1);
    } else {
        take_story(record);
    }
    return k;
}

bp_graph_module *service_gm_ref(bp_graph_module *gm)
{
    if (!gm || dims_settle(gm) == BP_RESOURCE_EXHAUSTED)
        return NULL;
    atomic_fetch_add_explicit(&gm->lent, 1, memory_order_relaxed);
    return gm_ref(gm);
}

/* The host's own references are not the plugin's to give up. */
void service_gm_unref(bp_graph_module *gm)
{
    if (!gm)
        return;
    if (compiled_take_back(&gm->lent))
        gm_unref(gm);
    else
        backend_over_released(service_backend(gm->host), "a graph module");
}

uint64_t service_gm_code_id(bp_graph_module *gm)
{
    return gm->code_id;
}

bp_status service_propagate(bp_graph_module *gm, const bp_inputs *inputs)
{
    compile_record *record = compile_record_of(gm);
    if (!record || !inputs || inputs->gm != gm)
        return BP_FAILED_PRECONDITION;
    bp_status st = graph_propagate(record->c, gm);
    if (st)
        take_story(record);
    return st;
}

uint32_t service_node_count(const bp_graph_module *gm)
{
    return gm->g.live;
}

uint32_t service_node_at(const bp_graph_module *gm, uint32_t index)
{
    const compile_record *record = compile_record_of(gm);
    if (record && record->nnodes == gm->g.live)
        return index < record->nnodes ? record->order[index] : 0;
    node_id n = gm->g.first;
    while (n && index--)
        n = graph_get(&gm->g, n)->next;
    return n;
}

static const graph_node *get(const bp_graph_module *gm, uint32_t node)
{
    const graph_node *n = node && node < gm->g.nodes.len ? graph_get(&gm->g, node) : NULL;
    return n && n->op ? n : NULL;
}

int32_t service_node_op(const bp_graph_module *gm, uint32_t node)
{
    const graph_node *n = get(gm, node);
    return n ? n->op : 0;
}

const char *service_node_name(const bp_graph_module *gm, uint32_t node)
{
    const graph_node *n = get(gm, node);
    return n ? n->name : "";
}

const char *service_node_target(const bp_graph_module *gm, uint32_t node)
{
    const graph_node *n = get(gm, node);
    return n ? n->target : "";
}

static bp_status arg_of_row(const bp_graph_module *gm, uint32_t node, const char *name, bp_value *out)
{
    TRY(graph_arg(gm, node, name, out));
    return dims_see_value(gm, out);
}

/* By its schema name; by position ("0", "1") where there is no schema: getitem and output. */
bp_status service_node_arg(const bp_graph_module *gm, uint32_t node, const char *name, bp_value *out)
{
    const graph_node *n = get(gm, node);
    if (!n || !name || !out)
        return BP_INVALID_ARGUMENT;
    *out = (bp_value){0};
    if (n->row && (name[0] < '0' || name[0] > '9'))
        return arg_of_row(gm, node, name, out);
    char *end;
    unsigned long at = strtoul(name, &end, 10);
    if (!*name || *end || at >= n->nargs)
        return BP_NOT_FOUND;
    *out = n->args[at];
    return dims_see_value(gm, out);
}

/* A graph that a call runs, by the name of its argument; or, by no name, that a get_attr is. It lives as long as gm. */
bp_graph_module *service_subgraph(const bp_graph_module *gm, uint32_t node, const char *name)
{
    const graph_node *n = get(gm, node);
    bp_value v = {0};
    if (n && n->op == BP_NODE_GET_ATTR)
        return name ? NULL : gm_sub(gm, n->name);
    if (!n || !name || !n->row || graph_arg(gm, node, name, &v) != BP_OK || v.kind != BP_VALUE_NODE)
        return NULL;
    n = get(gm, v.v.node);
    return n && n->op == BP_NODE_GET_ATTR ? gm_sub(gm, n->name) : NULL;
}

static void view_of_meta(const tensor_meta *m, bp_view *out)
{
    *out = (bp_view){.size = sizeof *out, .dtype = m->dtype, .device_kind = m->device.kind,
                     .device_index = m->device.index, .rank = m->rank, .flags = BP_VIEW_FAKE, .sizes = m->sizes,
                     .strides = m->strides};
}

bp_status service_node_meta(const bp_graph_module *gm, uint32_t node, uint32_t result, bp_view *out)
{
    const graph_node *n = get(gm, node);
    if (!n || !out)
        return BP_INVALID_ARGUMENT;
    if (result >= n->nmetas)
        return BP_NOT_FOUND;
    const tensor_meta *m = dims_see_meta(gm, &n->metas[result]);
    if (!m)
        return BP_FAILED_PRECONDITION;
    view_of_meta(m, out);
    return BP_OK;
}

uint32_t service_node_users(const bp_graph_module *gm, uint32_t node, uint32_t *out, uint32_t cap)
{
    const graph_node *n = get(gm, node);
    for (uint32_t i = 0; n && out && i < n->users.len && i < cap; i++)
        out[i] = n->users.at[i];
    return n ? n->users.len : 0;
}

const char *service_option(const bp_graph_module *gm, const char *key)
{
    for (uint32_t i = 0; key && i < gm->options.len; i++)
        if (strcmp(gm->options.at[i].key, key) == 0)
            return gm->options.at[i].value;
    return NULL;
}

/* -- inputs -------------------------------------------------------------------------------------------------------- */

static const graph_node *input(const bp_inputs *in, uint32_t i)
{
    return i < in->n ? get(in->gm, in->placeholders[i]) : NULL;
}

uint32_t service_input_count(const bp_inputs *in)
{
    return in->n;
}

bp_status service_input_view(const bp_inputs *in, uint32_t i, bp_view *out)
{
    return i < in->n ? service_node_meta(in->gm, in->placeholders[i], 0, out) : BP_INVALID_ARGUMENT;
}

int32_t service_input_role(const bp_inputs *in, uint32_t i)
{
    const graph_node *n = input(in, i);
    return n ? n->role : BP_ROLE_UNSET;
}

const char *service_input_name(const bp_inputs *in, uint32_t i)
{
    const graph_node *n = input(in, i);
    return n ? n->name : "";
}

/* What a constant held when it was handed out: other links compute from the same one. */
static bp_status note_constant(compile_record *record, const bp_tensor *t)
{
    for (uint32_t i = 0; i < record->constants.len; i++)
        if (record->constants.at[i].t == t)
            return BP_OK;
    return vec_push(&record->constants, (lent_constant){t, watch_sum(t)}) ? BP_OK : BP_RESOURCE_EXHAUSTED;
}

/* Constants are there while compiling; inputs are fakes, and asking for their data is a mistake that is told. */
bp_status service_constant_value(bp_graph_module *gm, uint32_t node, bp_view *out)
{
    const graph_node *n = get(gm, node);
    compile_record *record = compile_record_of(gm);
    if (!n || !out)
        return BP_INVALID_ARGUMENT;
    const bp_tensor *t = n->op == BP_NODE_GET_ATTR ? gm_constant(gm, n->name) : NULL;
    if (t && !tensor_is_fake(t)) {
        tensor_get_view(t, out);
        return record ? note_constant(record, t) : BP_OK;
    }
    if (record) {
        diag_clear(&record->inner);
        diag_fail(&record->inner, BP_FAILED_PRECONDITION,
                  "reading the data of a fake tensor: \"%s\" has none while it is "
                  "compiled", n->name);
    }
    return BP_FAILED_PRECONDITION;
}

/* -- saying no ----------------------------------------------------------------------------------------------------- */

/* The first word counts. */
static bool says(bp_graph_module *gm, bp_status code, const char *what, const char *text, size_t n)
{
    if (gm->said.code != BP_OK || !compile_record_of(gm))
        return false;
    char clean[690]; /* what an answer holds of it */
    if (text && n)
        diag_fail(&gm->said, code, "%s", plugin_text(clean, sizeof clean, text, n));
    else
        diag_fail(&gm->said, code, "%s and gave no reason", what);
    return true;
}

void service_decline_text(bp_graph_module *gm, uint32_t node, const char *text, size_t n)
{
    const graph_node *at = get(gm, node);
    char placed[1200];
    if (at && text && n) {
        int len = snprintf(placed, sizeof placed, "node \"%s\": %.*s", at->name, (int)(n < 1024 ? n : 1024), text);
        text = placed;
        n = (size_t)len;
    }
    if (says(gm, BP_UNIMPLEMENTED, "declined", text, n)) {
        gm->declined = true;
        gm->said_node = at ? node : 0;
    }
}

void service_fail_text(bp_graph_module *gm, bp_status code, const char *text, size_t n)
{
    char what[64];
    snprintf(what, sizeof what, "failed with %s", status_name(code));
    says(gm, code, what, text, n);
}

void service_refuse_text(bp_graph_module *gm, const char *text, size_t n)
{
    if (says(gm, BP_INVALID_ARGUMENT, "refused the graph", text, n))
        gm->refused = true;
}

/* -- other backends ------------------------------------------------------------------------------------------------ */

bp_status service_lookup_backend(bp_graph_module *gm, const char *name)
{
    compile_record *record = compile_record_of(gm);
    if (!record)
        return BP_FAILED_PRECONDITION;
    if (!name)
        return BP_INVALID_ARGUMENT;
    if (backend_lookup(record->c, name))
        return BP_OK;
    bp_status st = record->c->diag.code;
    take_story(record);
    return st;
}

bp_compiled *service_compile_with(bp_graph_module *gm, const bp_inputs *inputs, const char *const *names, uint32_t n)
{
    compile_record *record = compile_record_of(gm);
    if (!record)
        return NULL;
    program *p;
    if (!inputs || inputs->gm != gm || !names || !n)
        ctx_fail(record->c, BP_INVALID_ARGUMENT, "compile_with wants the graph's own inputs and at least one name");
    else if (program_compile_names(record, gm, names, n, &p) == BP_OK) {
        bp_compiled *k = compiled_of_program(record->c, record->b, p);
        if (k) {
            k->made_in = record->id;
            atomic_init(&k->lent, 1);
            return k;
        }
    }
    take_story(record);
    return NULL;
}

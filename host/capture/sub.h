/* Graphs inside a path: the functions of cond, while_loop, map and scan, each traced once (docs/capture.md).
 *
 * A graph is recorded by the same trace, behind the items of the path, and then taken out again. What it takes are
 * params; what it reads of the function around it, values of the path and inputs of the call, is free, and becomes
 * operands of the call that runs it. It may write nothing but what it made itself, and ask for no value. */
#ifndef HOST_CAPTURE_SUB_H
#define HOST_CAPTURE_SUB_H
#include "host/capture/trace.h"
#include "host/graph/graph.h"
#include <backplane/flow.h>

/* One that is being recorded. */
typedef struct sub_trace {
    struct sub_trace *outer;
    const char *op, *name;    /* "bp_cond", "true_fn" */
    /* of the trace when it began; ntold: of its segment's symbols */
    uint32_t nitems, nvalues, nstorages, nhandles, nparams, nnumbers, nsymbols, ntold;
    map views;                /* of what is around it */
    trace_number *numbers;    /* likewise: it reads them anew */
} sub_trace;

typedef struct {
    const char *op, *name;
    bp_branch_fn fn;
    void *user;
    const tensor_meta *params; /* what it takes */
    const uint8_t *requires;   /* one a param: it requires grad */
    uint32_t nparams, nouts;
} sub_spec;

/* One that was recorded; its memory is the trace's. */
typedef struct {
    const char *name;
    const item *items;
    ref *outs;                /* nodes of it */
    tensor_meta *metas;       /* of outs */
    uint8_t *live;            /* one a value */
    uint32_t nitems, nvalues, nparams, nouts, first_param;
    ref first_value;
} sub_graph;

typedef VEC(ref) ref_list;

/* Runs the function on fakes of its params and takes what it recorded out of the path. A failure has ended the
 * capture, or is the function's own. */
bp_status sub_record(trace *t, const sub_spec *spec, sub_graph *out);
/* Appends what g reads of the function around it, in order of first use, each once. */
bp_status sub_free_refs(trace *t, const sub_graph *g, ref_list *free);
/* A graph module whose placeholders are g's params, then `free`. It belongs to the trace. NULL: see the context. */
bp_graph_module *sub_build(trace *t, const sub_graph *g, const ref_list *free);

/* -- while one is recorded: what the trace may not do -- */
/* Whether the innermost graph has made that storage itself. */
bool sub_made(const trace *t, const fake_storage *fs);
/* Ends the capture with an error of the caller: "bp_cond: "true_fn" asks for a value, at FILE:LINE". Not BP_OK. */
bp_status sub_refuse(trace *t, const char *what);
bp_status sub_refuse_step(trace *t, const char *reason);
bp_status sub_refuse_write(trace *t, const bp_tensor *h);
/* Ends the capture at an operator that a graph cannot hold: its effect is not the same in each run. */
bp_status sub_check_op(trace *t, const op_row *op);
#endif

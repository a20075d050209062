/* What the files of AOT share. Internal to host/compile. */
#ifndef HOST_COMPILE_AOT_PARTS_H
#define HOST_COMPILE_AOT_PARTS_H
#include "host/backend/variants.h"
#include "host/compile/aot.h"
#include "host/pass/pass.h"
#include <pthread.h>

/* A gradient that the backward takes, as it was traced. */
typedef struct {
    uint32_t of;                 /* the number of its output */
    tensor_meta meta;            /* dims of the joint graph's environment; own arrays */
    sym_program *dims;           /* sizes, then strides, over the graph's symbols; NULL: they are constants */
} aot_tangent;

/* One way in which the segment was compiled: for the sizes that its conditions admit. Immutable but for its backward
 * program. */
typedef struct {
    bp_graph_module *taped;      /* counted: its operators run under the tape. NULL: what follows */
    program *forward;            /* counted: outputs, then saved values, then numbers */
    uint32_t nsaved, ntangents, ngrads;
    aot_tangent *tangents;
    uint32_t nsymbols, *symbols; /* inputs of the backward behind tangents: the number of a symbol of the graph each */
    uint32_t nnumbers, *numbers; /* outputs of the forward behind saved values: the same of an unbacked symbol */
    bp_graph_module *backward_gm; /* counted: saved values, tangents, symbols -> gradients of inputs that need them */
    _Atomic(program *) backward; /* NULL: not compiled yet */
    pthread_mutex_t lock;        /* compiling it */
} aot_made;

struct aot {
    atomic_uint refs;
    backend *backend;            /* lives as long as the runtime */
    bp_graph_module *gm;         /* counted: as it was captured */
    uint32_t ninputs, noutputs;
    uint8_t *needs;              /* one an input: it requires grad */
    variants *made;              /* of aot_made */
};
aot *aot_ref(aot *a);
/* The way that serves these sizes, made if there is none. NULL: an error, or, with *limit, as many as may be. */
aot_made *aot_made_for(bp_ctx *c, aot *a, const int64_t *values, bool *limit);
/* A host pass by name; NULL: there is none. */
pass_fn aot_pass(str name);
#endif

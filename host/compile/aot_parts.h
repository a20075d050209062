/* What the files of AOT share. Internal to host/compile. */
#ifndef HOST_COMPILE_AOT_PARTS_H
#define HOST_COMPILE_AOT_PARTS_H
#include "host/compile/aot.h"
#include "host/pass/pass.h"
#include <pthread.h>

struct aot {
    atomic_uint refs;
    backend *backend;            /* lives as long as the runtime */
    uint32_t ninputs, noutputs;
    uint8_t *needs;              /* one an input: it requires grad */
    bp_graph_module *taped;      /* counted: its operators run under the tape. NULL: what follows */
    program *forward;            /* counted: outputs, then saved values */
    uint32_t nsaved, ntangents, ngrads;
    uint32_t *tangent_of;        /* one a tangent: its output */
    tensor_meta *tangents;       /* one each, as the backward was traced */
    bp_graph_module *backward_gm; /* counted: saved values, tangents -> a gradient for each input that needs one */
    _Atomic(program *) backward; /* NULL: not compiled yet */
    pthread_mutex_t lock;        /* compiling it */
};
aot *aot_ref(aot *a);
/* A host pass by name; NULL: there is none. */
pass_fn aot_pass(str name);
#endif

/* Operators that are made at run time: rows like those of ops.def, whose schema, kernels, fakes and derivatives belong
 * to libraries.
 *
 * A row (`custom`) is made when a name is first defined with a schema, and is never freed, so that graphs may keep it.
 * Its registrations come and go: of each kind (a device, the fake, the derivative) the newest counts. `live` says
 * whether somebody defines it now. One lock guards all of it; a call takes the registration that it needs under it, and
 * runs without. What is written by the schema is run on copies by a second row, the twin, which gives the values that
 * the arguments would have: it is what a graph holds. */
#ifndef HOST_OP_LIBRARY_H
#define HOST_OP_LIBRARY_H
#include "host/op/run.h"
#include "sdk/base/vec.h"
#include <backplane/library.h>

/* Kinds of registrations. CPU and CUDA: kernels of a device; ALL: a kernel for any device; COMPOSITE: other operators
 * that the operator is made of; META: a kernel that is the fake. */
enum custom_what {
    CUSTOM_CPU, CUSTOM_CUDA, CUSTOM_META, CUSTOM_ALL, CUSTOM_COMPOSITE, CUSTOM_FAKE, CUSTOM_AUTOGRAD, CUSTOM_AUTOCAST
};
typedef struct {
    enum custom_what what;
    bool definer;                   /* the function of bp_custom_op, which serves where a kernel is switched off */
    bool off;                       /* switched off */
    const bp_library *lib;          /* NULL: of bp_custom_op */
    bp_op_fn fn;
    bp_backward_fn backward;        /* of AUTOGRAD, with setup */
    bp_setup_context_fn setup;
    bp_dtype dtype;                 /* of AUTOCAST, with device */
    int32_t device;
    void *arg;
    const char *file;               /* where it was registered, or NULL */
    int32_t line;
} custom_reg;

typedef struct custom custom;
struct custom {
    op_row row, twin;               /* twin: of a row that writes arguments; else no schema */
    char name[96];                  /* "mylib::my_op" */
    char id[96], twin_id[112];
    const char *short_name;         /* "my_op" */
    bool live, by_short_form;       /* by bp_custom_op */
    const bp_library *lib;          /* who defines it now */
    const char *file;
    int32_t line;
    VEC(custom_reg) regs;           /* newest last */
    custom *next;                   /* of all that there are */
};

/* What one call runs. */
struct bp_op_call {
    const bp_host *host;            /* first: of a plugin's operator; else NULL */
    bp_ctx *c;                      /* of a plugin's operator */
    const custom *of;
    const schema *schema;
    const bp_value *args;
    uint32_t nargs;
    void *user;
    bool fake;
    VEC(bp_tensor *) out;           /* borrowed: they belong to the call's scope */
    bp_value number;                /* NONE: none was given */
    bp_tensor *const *results;      /* of a setup function */
    uint32_t nresults;
};

static inline const custom *custom_of(const op_row *op) { return op->own; }

/* -- the registry (library.c) -- */
/* A row by its target, the newest of that name; NULL: there is none, or nobody defines it. */
const op_row *custom_by_target(const char *target);
/* The newest registration of a kind. False: there is none. */
bool custom_find(const custom *k, enum custom_what what, custom_reg *out);
bool custom_is_live(const custom *k);
/* The operator of a name "ns::op" or, with a library, "op"; an error when there is none. */
custom *custom_named(bp_ctx *c, const bp_library *lib, const char *name);
/* Adds a registration. override: 0: another one of this kind is an error; 1: it may be there. */
bp_status custom_register(bp_ctx *c, custom *k, const custom_reg *r, bool override);
/* The kernel for a device; false: the context has an error that names those that there are. */
bool custom_kernel(bp_ctx *c, const custom *k, int32_t device, custom_reg *out);
/* CUSTOM_CPU ... of "cpu", "cuda", "meta", "all", ""; false: no such device, and the context says so. */
bool custom_device(bp_ctx *c, const char *device, enum custom_what *out);
/* "argument", "result" ... : where autograd must not be asked for. */
bool custom_writes(const custom *k);
bool custom_has_tensor(const schema *s);
bool custom_has_keyword_tensor(const schema *s);
/* The mode that the library was made for, the lock, the definition: for bp_custom_op. lib NULL: its own. */
custom *custom_define(bp_ctx *c, const bp_library *lib, const char *ns, const char *text, bool conservative,
                      const char *file, int32_t line);
/* Nobody defines it any more, and every registration of `lib` goes (NULL: those of bp_custom_op). */
void custom_undefine(custom *k, const bp_library *lib);

/* -- running (custom.c) -- */
/* The bottom of a call on real tensors: kernel, checks, marks; k->out as op_run_reference. */
bp_status custom_run(bp_ctx *c, op_call *k, const prepared *p);
/* The shape rule of all such rows: the fake. */
bp_status shape_custom(bp_ctx *c, shape_call *s);
/* Whether fakes can be computed: it has a fake, or needs none. */
bool custom_has_fake(const op_row *op);
/* Bumps versions of what a call writes, items of lists too. */
void custom_wrote(const op_row *op, const bp_value *args);
/* How many tensors a call's arguments have that it writes, items of lists too. */
uint32_t custom_count_written(const schema *s, const bp_value *args);
/* The i-th of them. */
bp_tensor *custom_written(const schema *s, const bp_value *args, uint32_t i);
/* The written tensor that result i of nout is by the schema; NULL: it is a new one. */
bp_tensor *custom_result_is(const schema *s, const bp_value *args, uint32_t i);
/* Whether result i of nout may require grad: new values of written arguments may not. */
bool custom_takes_grad(const op_row *op, const bp_value *args, uint32_t i, uint32_t nout);
/* Whether autograd differentiates it by the operators that it is made of. */
bool custom_is_composite(const op_row *op);
/* Runs such an operator through the modes that c->modes has; k->out gets new references. */
bp_status custom_run_composite(bp_ctx *c, op_call *k);
#endif

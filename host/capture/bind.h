/* The values that one call has: its inputs, and what its segments handed on. One thread's; lives as long as the call.
 *
 * Inputs are the arguments in order, then attributes of modules in the order in which the path asks for them. */
#ifndef HOST_CAPTURE_BIND_H
#define HOST_CAPTURE_BIND_H
#include "host/capture/path.h"

enum { BIND_INLINE = 24, BIND_SYMBOLS = 16 };
typedef struct { ref r; bool is_lent; bp_tensor *t; } bind_value; /* holds a reference unless it is lent */
typedef struct bindings {
    bp_ctx *c;
    const bp_value *inputs; /* the caller's, until an attribute joins them */
    bind_value *values;
    uint32_t ninputs, nargs, nvalues, values_cap;
    uint32_t next;          /* where the value behind the last one found is: values are read in the order they came */
    bp_value *own_inputs;
    uint32_t inputs_cap;    /* of own_inputs */
    uint32_t syms_cap;
    int64_t *syms;          /* by number of a symbol of the path: its value, once it is read */
    bp_value inputs_inline[BIND_INLINE];
    bind_value values_inline[BIND_INLINE];
    int64_t syms_inline[BIND_SYMBOLS];
} bindings;

/* Borrows the arguments and their tensors. */
static inline void bind_init(bindings *b, bp_ctx *c, const bp_value *args, uint32_t nargs)
{
    b->c = c;
    b->inputs = args;
    b->ninputs = b->nargs = nargs;
    b->own_inputs = b->inputs_inline;
    b->values = b->values_inline;
    b->inputs_cap = b->values_cap = BIND_INLINE;
    b->syms = b->syms_inline;
    b->syms_cap = BIND_SYMBOLS;
    b->nvalues = b->next = 0;
}
/* Room for the values of n symbols; those that are there stay. False: out of memory, the context says so. */
bool bind_reserve_symbols_more(bindings *b, uint32_t n);
static inline bool bind_reserve_symbols(bindings *b, uint32_t n)
{
    return n <= b->syms_cap || bind_reserve_symbols_more(b, n);
}
void bind_fini(bindings *b);
void bind_reset(bindings *b); /* forgets values and attributes */
void bind_drop_values(bindings *b); /* a commit: all values start anew */
void bind_drop_bases(bindings *b);  /* the same for memory under overlapping inputs alone */
bp_status bind_push_input(bindings *b, const bp_value *v);
/* Drops the inputs behind the first n, to try another variant of a path. */
static inline void bind_cut_inputs(bindings *b, uint32_t n) { b->ninputs = n; }
/* Takes a reference of its own to t, as the value of r. */
bp_status bind_put(bindings *b, ref r, bp_tensor *t);
/* The same, but the caller's reference becomes its own, also when it fails. */
bp_status bind_give_more(bindings *b, ref r, bp_tensor *t);
static inline bp_status bind_give(bindings *b, ref r, bp_tensor *t)
{
    if (b->nvalues == b->values_cap)
        return bind_give_more(b, r, t);
    b->values[b->nvalues++] = (bind_value){r, false, t};
    return BP_OK;
}
/* The value of r, or NULL: it has none. */
static inline bind_value *bind_find(bindings *b, ref r)
{
    if (b->next < b->nvalues && b->values[b->next].r == r)
        return &b->values[b->next++];
    for (uint32_t i = b->nvalues; i-- > 0;)
        if (b->values[i].r == r) {
            b->next = i + 1;
            return &b->values[i];
        }
    return NULL;
}
/* Gives out the reference to the value of r, which stays readable: the taker keeps it until bind_reset. NULL: there is
 * none of its own to give. */
static inline bp_tensor *bind_take(bindings *b, ref r)
{
    bind_value *v = bind_find(b, r);
    if (!v || v->is_lent)
        return NULL;
    v->is_lent = true;
    return v->t;
}
bp_tensor *bind_get_other(bindings *b, ref r);
/* Input i as a tensor; NULL when it is none. */
static inline bp_tensor *bind_input(const bindings *b, uint32_t i)
{
    return b->inputs[i].kind == BP_VALUE_TENSOR ? b->inputs[i].v.tensor : NULL;
}
/* The tensor of r, borrowed. NULL: not there (or out of memory, which the context says, for a REF_BASE). */
static inline bp_tensor *bind_get(bindings *b, ref r)
{
    if (ref_kind(r) == REF_INPUT)
        return ref_index(r) < b->ninputs ? bind_input(b, ref_index(r)) : NULL;
    return bind_get_other(b, r);
}

/* Whether a call may write input i under grad mode: it is no view, or one that eager execution may write and whose
 * base's history no other input follows. BIND_NOT_WRITTEN: the reason if not. */
bool bind_may_write(const bindings *b, uint32_t i);
#define BIND_NOT_WRITTEN "an input is written under grad mode that is a view which shares its history"

/* Marks in member[0 .. n) the inputs that overlap input i, directly or through others, i among them; returns how many
 * different tensors they are. */
uint32_t inputs_component(const bp_value *inputs, uint32_t n, uint32_t i, bool *member);
/* The bytes under input i's component: where they start, how many they are. member as above. */
void inputs_range(const bp_value *inputs, uint32_t n, const bool *member, char **start, size_t *nbytes);
/* A flat tensor of input i's type over that memory; it keeps the storage alive. One reference to the caller. */
bp_tensor *inputs_base(bp_ctx *c, const bp_value *inputs, uint32_t n, uint32_t i);
#endif

/* A compiled group: values in memory descriptors, steps that compute one value from others, one arena.
 *
 * Inputs are read where they lie, in the strides of their fakes. Intermediates keep the layout that their primitive
 * chose; a consumer that needs another gets a reorder step. Runs of one object are serial (the plugin sets no flag), so
 * the arena and the memory objects belong to the object. */
#ifndef ONEDNN_PROGRAM_H
#define ONEDNN_PROGRAM_H
#include "plugins/onednn/api.h"
#include "sdk/base/vec.h"
#include <backplane/plugin.h>

enum value_place { PLACE_ARENA, PLACE_INPUT, PLACE_OUTPUT, PLACE_CONSTANT };

typedef struct {
    dnnl_memory_desc_t md;  /* owned */
    dnnl_memory_t memory;   /* owned; made by program_finish */
    enum value_place place;
    uint32_t index;         /* of the input or output */
    size_t offset;          /* in the arena, bytes */
    void *data;             /* of a constant: borrowed from the graph module; of an input or output: this run's */
    uint32_t base;          /* 1 + the value whose memory this one describes with another shape; 0: its own */
} value;

enum { STEP_ARGS = 6 };
typedef struct step step;
struct step {
    dnnl_primitive_t primitive; /* owned; NULL: `loop` computes the step */
    struct { int arg; uint32_t value; } args[STEP_ARGS];
    uint32_t nargs;
    void (*loop)(const bp_host *host, const step *s, const float *src, float *dst); /* args[0] -> args[1] */
    int64_t shape[16];          /* what `loop` needs to know: see loops.h */
    float bound[2];
    uint32_t node;              /* the graph node it came from */
};

typedef struct {
    bp_graph_module *gm;    /* a reference when there are constants, else NULL */
    VEC(value) values;
    VEC(step) steps;
    VEC(uint32_t) outputs;  /* value of each output of the graph */
    char *arena;
    size_t arena_bytes;
    bool is_lent;           /* the arena is somebody else's, who lends it before each run */
    dnnl_stream_t stream;
    const bp_host *host;
} program;

/* Adds a value with a descriptor that the program takes over; returns its index. UINT32_MAX: out of memory. */
uint32_t program_value(program *p, dnnl_memory_desc_t md, enum value_place place, uint32_t index);
/* Adds a primitive step; takes pd over, appends its scratchpad. args end with arg 0. */
dnnl_status_t program_step(program *p, uint32_t node, dnnl_primitive_desc_t pd, const int *args, const uint32_t *values,
                           uint32_t n);
/* The memory of `of` under another descriptor, which the program takes over. UINT32_MAX: out of memory. */
uint32_t program_alias(program *p, uint32_t of, dnnl_memory_desc_t md);
/* The value in another layout: itself when it has it already, else the result of a new reorder step. */
dnnl_status_t program_reorder(program *p, uint32_t node, uint32_t from, const_dnnl_memory_desc_t md, uint32_t *out);
/* Adds a step that a loop of ours computes. */
dnnl_status_t program_loop(program *p, const step *s);
/* Lays out the arena and makes the memory objects. */
dnnl_status_t program_finish(program *p);
/* For a program of a lent arena: at has arena_bytes, and lives until it is run, or lent another. */
bool program_lend(program *p, char *at);
bp_status program_run(void *state, bp_run *r);
void program_destroy(void *state);
#endif

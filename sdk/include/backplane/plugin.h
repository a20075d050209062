/* The vendor's header: everything a backend needs, and nothing of the host to link.
 *
 *     #include <backplane/plugin.h>
 *     BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
 *     {
 *         (void)inputs;
 *         bp_print_tabular(gm, bp_sink(gm));
 *         return bp_forward(gm);
 *     }
 *
 * C99 to C23 and C++. Every function below is inline and calls through the host table that the first word of its
 * handle points to; a row that the host is too old for answers with its fallback. docs/plugin.md explains each row.
 *
 * Threads: without flags in backend_info, compiles of one backend are serial under one re-entrant lock, and runs of one
 * object are serial. Memory: what a function gives is the host's, and is valid until compile (or run) returns. */
#ifndef BP_PLUGIN_H
#define BP_PLUGIN_H

#include <backplane/types.h>
#include <stdarg.h>
#include <stdio.h>

/* The newest API of this header. Define BP_API before including it to be kept from using newer rows. */
#define BP_API_NEWEST 2
#ifndef BP_API
#define BP_API BP_API_NEWEST
#endif
#if BP_API < 1 || BP_API > BP_API_NEWEST
#error "BP_API must lie between 1 and the newest API of this header"
#endif

BP_EXTERN_C_BEGIN

/* The host's table. size: bytes that this host fills in. api: its newest API. */
struct bp_host {
    uint32_t size, api;
#define BP_API_ROW(since, result, name, params, args, handle, fallback) result(*name) params;
#define BP_API_VOID(since, name, params, args, handle) void(*name) params;
#include <backplane/host_api.def>
#undef BP_API_ROW
#undef BP_API_VOID
};

/* Every service as an inline function bp_<row>; rows newer than BP_API stay hidden. */
static inline const bp_host *bp_host_of_(const void *handle) /* NULL: no handle, or one without a table */
{
    return handle ? *(const bp_host *const *)handle : NULL;
}
#define BP_HOST_OF_(handle) bp_host_of_(handle)
#define BP_HOST_HAS_(host, row) \
    ((host) && (host)->size >= offsetof(bp_host, row) + sizeof((host)->row) && (host)->row != NULL)
#define BP_SINCE_1(text) text
#if BP_API >= 2
#define BP_SINCE_2(text) text
#else
#define BP_SINCE_2(text)
#endif
#define BP_API_ROW(since, result, name, params, args, handle, fallback)               \
    BP_SINCE_##since(static inline result bp_##name params {                          \
        const bp_host *table_ = BP_HOST_OF_(handle);                                  \
        return BP_HOST_HAS_(table_, name) ? table_->name args : (fallback);           \
    })
#define BP_API_VOID(since, name, params, args, handle)                                \
    BP_SINCE_##since(static inline void bp_##name params {                            \
        const bp_host *table_ = BP_HOST_OF_(handle);                                  \
        if (BP_HOST_HAS_(table_, name))                                               \
            table_->name args;                                                        \
    })
#include <backplane/host_api.def>
#undef BP_API_ROW
#undef BP_API_VOID

/* The host's table of a graph module, inputs, run or compiled object: what bp_alloc, bp_log_message, bp_parallel_for
 * and bp_once take outside init. It lives as long as the runtime, so it may be kept in a state. `api` is the host's
 * newest API. NULL for NULL. */
static inline const bp_host *bp_host_of(const void *handle)
{
    return bp_host_of_(handle);
}

/* The formatted forms. Text is cut at 1 KiB. */
#define BP_FORMAT_TEXT_(fmt)                                                          \
    char text_[1024];                                                                 \
    va_list ap_;                                                                      \
    int n_;                                                                           \
    va_start(ap_, fmt);                                                               \
    n_ = vsnprintf(text_, sizeof text_, fmt, ap_);                                    \
    va_end(ap_);                                                                      \
    size_t len_ = n_ < 0 ? 0 : (size_t)n_ < sizeof text_ ? (size_t)n_ : sizeof text_ - 1

/* Says that this backend does not take the graph, quietly: the next link is asked. node: the id of the node that is in
 * the way, or 0. Returns NULL, so that `return bp_decline(...)` ends compile. */
BP_PRINTF(3, 4) static inline bp_compiled *bp_decline(bp_graph_module *gm, uint32_t node, const char *fmt, ...)
{
    BP_FORMAT_TEXT_(fmt);
    bp_decline_text(gm, node, text_, len_);
    return NULL;
}

/* Says that compiling failed, loudly: the next link is asked, the failure is reported. code: not 0. Returns NULL. */
BP_PRINTF(3, 4) static inline bp_compiled *bp_fail(bp_graph_module *gm, bp_status code, const char *fmt, ...)
{
    BP_FORMAT_TEXT_(fmt);
    bp_fail_text(gm, code, text_, len_);
    return NULL;
}

/* Says that the caller made a mistake: no further link is asked. Returns NULL. */
BP_PRINTF(2, 3) static inline bp_compiled *bp_refuse(bp_graph_module *gm, const char *fmt, ...)
{
    BP_FORMAT_TEXT_(fmt);
    bp_refuse_text(gm, text_, len_);
    return NULL;
}

/* For init: says why it fails; returns code. */
BP_PRINTF(3, 4) static inline bp_status bp_init_fail(const bp_host *host, bp_status code, const char *fmt, ...)
{
    BP_FORMAT_TEXT_(fmt);
    return bp_init_fail_text(host, code, text_, len_);
}

/* For run: says why it fails; returns code. */
BP_PRINTF(3, 4) static inline bp_status bp_run_fail(bp_run *r, bp_status code, const char *fmt, ...)
{
    BP_FORMAT_TEXT_(fmt);
    return bp_run_fail_text(r, code, text_, len_);
}

#if BP_API >= 2
/* For the kernel or fake of an operator: says why it fails; returns code. */
BP_PRINTF(3, 4) static inline bp_status bp_call_fail(bp_op_call *k, bp_status code, const char *fmt, ...)
{
    BP_FORMAT_TEXT_(fmt);
    return bp_call_fail_text(k, code, text_, len_);
}
#endif

/* Logs a line under the plugin's name; never write to stdout or stderr yourself. level: BP_LOG_*. */
BP_PRINTF(3, 4) static inline void bp_log_message(const bp_host *host, int32_t level, const char *fmt, ...)
{
    BP_FORMAT_TEXT_(fmt);
    bp_log_text(host, level, text_, len_);
}

/* Optional: what a backend says of itself, as a const data symbol `backend_info`. Fill it by field names and set
 * size = sizeof(bp_backend_info); zero means the default. */
typedef struct {
    const char *name, *type, *default_value, *help; /* type: "bool", "int", "float", "string" */
} bp_option_row;
enum { BP_CONCURRENT_COMPILE = 1u, BP_CONCURRENT_RUN = 2u, BP_FORK_SAFE = 4u };
/* It takes dims that are symbolic (sym is not 0). Without this flag every dim that it reads is a number, and what it
 * compiled serves calls of that number alone; one that reads no size serves them all. */
enum { BP_DYNAMIC_SHAPES = 8u };
typedef struct {
    uint32_t size, flags;
    const char *version, *build_id, *vendor;
    int32_t graph; /* BP_GRAPH_*; unset: captured */
    uint32_t min_alignment; /* of input data, in bytes; 0: the element's own */
    /* 1: takes the node; 0: does not, and writes a reason (NUL-terminated, cut at cap). NULL: the backend takes whole
     * graphs or declines them. Called with the gm lock of compile held, any number of times. */
    int32_t (*supports)(const bp_graph_module *gm, uint32_t node, char *why, size_t cap);
    const char *const *whole_ops; /* operators that must not be decomposed, NULL-terminated */
    const bp_option_row *options; /* NULL-name-terminated; NULL: any option is accepted unchecked */
    /* Code of a compiled object, for logs and reports: writes at most cap bytes, returns the full length. */
    size_t (*describe)(void *state, char *text, size_t cap);
    /* Compile what a function that trains runs backward, and graphs that nobody differentiates. NULL: compile does. */
    bp_compile_fn compile_backward, compile_inference;
} bp_backend_info;

/* The ELF note that the host reads before a line of the plugin runs: the API the plugin needs and its sanitizers. */
enum { BP_SANITIZER_NONE = 0, BP_SANITIZER_ADDRESS = 1, BP_SANITIZER_THREAD = 2, BP_SANITIZER_MEMORY = 4 };
#if defined(__SANITIZE_ADDRESS__)
#define BP_SANITIZER_KIND BP_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define BP_SANITIZER_KIND BP_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BP_SANITIZER_KIND BP_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define BP_SANITIZER_KIND BP_SANITIZER_THREAD
#elif __has_feature(memory_sanitizer)
#define BP_SANITIZER_KIND BP_SANITIZER_MEMORY
#endif
#endif
#ifndef BP_SANITIZER_KIND
#define BP_SANITIZER_KIND BP_SANITIZER_NONE
#endif
#if defined(__ELF__) && defined(__GNUC__) && !defined(BP_NO_NOTE)
typedef struct {
    uint32_t owner_size, desc_size, type;
    char owner[12]; /* "backplane" and padding to 4 */
    uint32_t api, sanitizer;
} bp_elf_note;
__attribute__((section(".note.backplane"), used, aligned(4))) static const bp_elf_note bp_note_ = {
    10, 8, 1, "backplane", BP_API, BP_SANITIZER_KIND};
#endif

BP_EXTERN_C_END

#ifdef __cplusplus
/* Makes the symbol `compile` from a C++ function (bp_graph_module *, const bp_inputs *) -> bp_compiled *, and keeps its
 * exceptions inside: one that escapes becomes an INTERNAL failure with its what(). */
#include <exception>
#define BP_COMPILE_CXX(fn)                                                            \
    BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)      \
    {                                                                                 \
        try {                                                                         \
            return fn(gm, inputs);                                                    \
        } catch (const std::exception &e) {                                           \
            return bp_fail(gm, BP_INTERNAL, "C++ exception: %s", e.what());           \
        } catch (...) {                                                               \
            return bp_fail(gm, BP_INTERNAL, "a C++ exception of an unknown type");    \
        }                                                                             \
    }
/* The same for the function of a compiled object: defines `name`, to be given to bp_compiled_new, from fn. */
#define BP_RUN_CXX(name, fn)                                                          \
    static bp_status name(void *state, bp_run *r)                                     \
    {                                                                                 \
        try {                                                                         \
            return fn(state, r);                                                      \
        } catch (const std::exception &e) {                                           \
            return bp_run_fail(r, BP_INTERNAL, "C++ exception: %s", e.what());        \
        } catch (...) {                                                               \
            return bp_run_fail(r, BP_INTERNAL, "a C++ exception of an unknown type"); \
        }                                                                             \
    }
#endif
#endif

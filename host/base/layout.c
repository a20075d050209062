/* The layouts that may never change, pinned: every public struct's size and the offsets of its fields. Compiled with
 * the host, and by tests/abi as C and as C++ with each compiler. */
#define BP_WITHOUT_OPERATORS
#define BP_NO_NOTE
#include <backplane/backplane.h>
#include <backplane/plugin.h>

#ifdef __cplusplus
#define _Static_assert static_assert
#endif
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " has another size")
#define AT(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " moved")

_Static_assert(sizeof(void *) == 8, "a 64-bit machine is needed");
_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "IEEE floats are needed");

SIZE(bp_status, 4);
SIZE(bp_dtype, 4);
SIZE(bp_complex64, 8);
SIZE(bp_complex128, 16);

SIZE(bp_device, 8);
AT(bp_device, kind, 0);
AT(bp_device, index, 4);

SIZE(bp_dim, 16);
AT(bp_dim, value, 0);
AT(bp_dim, sym, 8);
AT(bp_dim, zero, 12);

SIZE(bp_operator_def, 56);
AT(bp_operator_def, name, 8);
AT(bp_operator_def, schema, 16);
AT(bp_operator_def, mutates_args, 24);
AT(bp_operator_def, kernel, 32);
AT(bp_operator_def, fake, 40);
AT(bp_operator_def, arg, 48);
SIZE(bp_symbol, 56);
AT(bp_symbol, flags, 4);
AT(bp_symbol, name, 8);
AT(bp_symbol, dim, 16);
AT(bp_symbol, hint, 32);
AT(bp_symbol, min, 40);
AT(bp_symbol, max, 48);

SIZE(bp_scalar, 24);
AT(bp_scalar, kind, 0);
AT(bp_scalar, sym, 4);
AT(bp_scalar, v, 8);

SIZE(bp_value, 24);
AT(bp_value, kind, 0);
AT(bp_value, count, 4);
AT(bp_value, v, 8);

SIZE(bp_view, 48);
AT(bp_view, size, 0);
AT(bp_view, dtype, 4);
AT(bp_view, device_kind, 8);
AT(bp_view, device_index, 12);
AT(bp_view, rank, 16);
AT(bp_view, flags, 20);
AT(bp_view, sizes, 24);
AT(bp_view, strides, 32);
AT(bp_view, data, 40);

SIZE(bp_dims, 16);
AT(bp_dims, n, 8);
AT(bp_dims, given, 12);
SIZE(bp_floats, 16);
AT(bp_floats, n, 8);
AT(bp_floats, given, 12);
SIZE(bp_scalars, 16);
AT(bp_scalars, n, 8);
AT(bp_scalars, given, 12);
SIZE(bp_operand, 32);
AT(bp_operand, number, 8);
SIZE(bp_tensor2, 16);
SIZE(bp_tensor8, 64);
SIZE(bp_tensors, 16);
AT(bp_tensors, n, 8);
SIZE(bp_args, 16);
AT(bp_args, n, 8);
SIZE(bp_outputs, 16);
AT(bp_outputs, n, 8);
AT(bp_outputs, cap, 12);

/* Grow at the end only; bp_compile passes their size. */
AT(bp_compile_options, backend, 0);
AT(bp_compile_options, backend_fn, 8);
AT(bp_compile_options, backend_init, 16);
AT(bp_compile_options, user, 24);
AT(bp_compile_options, options, 32);
AT(bp_compile_options, mode, 40);
AT(bp_compile_options, fullgraph, 48);
AT(bp_compile_options, dynamic, 52);
AT(bp_compile_options, recompile_limit, 56);
AT(bp_compile_options, isolate, 60);
AT(bp_compile_options, disable, 64);
SIZE(bp_compile_options, 72);

AT(bp_aot_options, name, 0);
AT(bp_aot_options, tags, 8);
AT(bp_aot_options, init, 16);
AT(bp_aot_options, partition, 24);
AT(bp_aot_options, decompose, 32);
AT(bp_aot_options, keep_inference_input_mutations, 36);
AT(bp_aot_options, disable_functionalization, 40);
AT(bp_aot_options, whole_ops, 48);
AT(bp_aot_options, pre_grad_passes, 56);
AT(bp_aot_options, compile_region_name, 64);
SIZE(bp_aot_options, 72);

AT(bp_callable_stats, size, 0);
AT(bp_callable_stats, graphs, 4);
AT(bp_callable_stats, outcomes, 12);
AT(bp_callable_stats, compiles, 20);
AT(bp_callable_stats, hits, 32);
AT(bp_callable_stats, slices, 44);
AT(bp_callable_stats, opened, 60);
AT(bp_callable_stats, resumed, 64);
AT(bp_callable_stats, steps, 68);
SIZE(bp_callable_stats, 72);

/* The host's table: one pointer a row, in the order of host_api.def; rows are only ever added. */
AT(bp_host, size, 0);
AT(bp_host, api, 4);
enum {
    ROW_first = 0,
#define BP_API_ROW(since, result, name, params, args, handle, fallback) ROW_##name,
#define BP_API_VOID(since, name, params, args, handle) ROW_##name,
#include <backplane/host_api.def>
#undef BP_API_ROW
#undef BP_API_VOID
    ROW_end
};
SIZE(bp_host, 8 + 8 * (ROW_end - 1));
AT(bp_host, print_tabular, 8);
AT(bp_host, log_text, 8 + 8 * 3);
AT(bp_host, forward, 8 + 8 * 4);
AT(bp_host, node_arg, 8 + 8 * 14);
AT(bp_host, input_count, 8 + 8 * 17);
AT(bp_host, decline_text, 8 + 8 * 23);
AT(bp_host, compiled_new, 8 + 8 * 27);
AT(bp_host, run_borrow, 8 + 8 * 30);
AT(bp_host, lookup_backend, 8 + 8 * 37);
AT(bp_host, once, 8 + 8 * 42);
AT(bp_host, symbol_count, 8 + 8 * 43);
AT(bp_host, run_dim, 8 + 8 * 51);

SIZE(bp_option_row, 32);
AT(bp_option_row, name, 0);
AT(bp_option_row, type, 8);
AT(bp_option_row, default_value, 16);
AT(bp_option_row, help, 24);

AT(bp_backend_info, size, 0);
AT(bp_backend_info, flags, 4);
AT(bp_backend_info, version, 8);
AT(bp_backend_info, build_id, 16);
AT(bp_backend_info, vendor, 24);
AT(bp_backend_info, graph, 32);
AT(bp_backend_info, min_alignment, 36);
AT(bp_backend_info, supports, 40);
AT(bp_backend_info, whole_ops, 48);
AT(bp_backend_info, options, 56);
AT(bp_backend_info, describe, 64);
AT(bp_backend_info, compile_backward, 72);
AT(bp_backend_info, compile_inference, 80);
SIZE(bp_backend_info, 88);

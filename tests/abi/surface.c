/* The vendor's surface for libabigail, which sees only types that an exported symbol leads to: a symbol for each public
 * struct, and the types of a plugin's own symbols. Compiled with debug information, never run. */
#include <backplane/backplane.h>
#include <backplane/library.h>
#include <backplane/nn.h>
#include <backplane/plugin.h>

#define SHOW(type) BP_EXPORT type *surface_##type; type *surface_##type
SHOW(bp_host);
SHOW(bp_backend_info);
SHOW(bp_option_row);
SHOW(bp_operator_def);
SHOW(bp_view);
SHOW(bp_value);
SHOW(bp_dim);
SHOW(bp_scalar);
SHOW(bp_device);
SHOW(bp_complex64);
SHOW(bp_complex128);
SHOW(bp_elf_note);
SHOW(bp_compile_options);
SHOW(bp_custom_op_options);
SHOW(bp_callable_stats);
SHOW(bp_aot_options);
SHOW(bp_args);
SHOW(bp_outputs);
SHOW(bp_dims);
SHOW(bp_floats);
SHOW(bp_scalars);
SHOW(bp_tensors);
SHOW(bp_operand);
SHOW(bp_compile_fn);
SHOW(bp_init_fn);
SHOW(bp_run_fn);
SHOW(bp_destroy_fn);
SHOW(bp_fn);
SHOW(bp_write_fn);
SHOW(bp_backend_name_fn);

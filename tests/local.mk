# Tests. A unit test of CMocka is one line here, in alphabetical order:
#     unit_tests += %D%/unit/ROOM/test_WHAT
# It is built from test_WHAT.c (say tests_unit_ROOM_test_WHAT_SOURCES = ... for more files) against libhost.la, includes
# "tests/lib/check.h", and runs one group of test functions. A script that prints TAP (a plan "1..N", then "ok 1 - name"
# or "not ok 1 - name") is one line in script_tests; .sh and .py need no execute bit. tests/driver records a result a
# function. Environment: top_srcdir and top_builddir (absolute), TMPDIR (a folder of its own), BP_CLI (the command).
unit_tests =
script_tests =

unit_tests += %D%/unit/base/test_ctx
unit_tests += %D%/unit/base/test_str
unit_tests += %D%/unit/base/test_tables
unit_tests += %D%/unit/cache/test_cache
unit_tests += %D%/unit/capture/test_outcome
unit_tests += %D%/unit/capture/test_trace
unit_tests += %D%/unit/compile/test_aot
unit_tests += %D%/unit/compile/test_aot_api
unit_tests += %D%/unit/compile/test_aot_symbolic
unit_tests += %D%/unit/compile/test_aot_cases
tests_unit_compile_test_aot_cases_SOURCES = %D%/unit/compile/test_aot_cases.c %D%/unit/compile/aot_cases.h
unit_tests += %D%/unit/compile/test_breaks
unit_tests += %D%/unit/compile/test_constant
unit_tests += %D%/unit/compile/test_control_flow
unit_tests += %D%/unit/compile/test_dynamic
unit_tests += %D%/unit/compile/test_dynamic_data
unit_tests += %D%/unit/compile/test_dynamic_rows
tests_unit_compile_test_dynamic_SOURCES = %D%/unit/compile/test_dynamic.c %D%/unit/compile/dynamic.h
unit_tests += %D%/unit/compile/test_dynamic_models
tests_unit_compile_test_dynamic_models_LDADD = $(world)
unit_tests += %D%/unit/compile/test_control_flow_grad
unit_tests += %D%/unit/compile/test_control_flow_random
unit_tests += %D%/unit/compile/test_entries
unit_tests += %D%/unit/compile/test_honest
unit_tests += %D%/unit/compile/test_opaque
tests_unit_compile_test_opaque_SOURCES = %D%/unit/compile/test_opaque.c %D%/unit/compile/steps.h
unit_tests += %D%/unit/compile/test_numbers
unit_tests += %D%/unit/compile/test_pains
unit_tests += %D%/unit/compile/test_pains_calls
unit_tests += %D%/unit/compile/test_library
unit_tests += %D%/unit/compile/test_named
unit_tests += %D%/unit/compile/test_slices
unit_tests += %D%/unit/compile/test_random
unit_tests += %D%/unit/compile/test_resume
unit_tests += %D%/unit/compile/test_rules
unit_tests += %D%/unit/compile/test_stance
unit_tests += %D%/unit/compile/test_threads
unit_tests += %D%/unit/compile/test_toy
unit_tests += %D%/unit/compile/test_transaction
tests_unit_compile_test_random_SOURCES = %D%/unit/compile/test_random.c %D%/unit/compile/program.c \
	%D%/unit/compile/program.h %D%/unit/compile/program.def
unit_tests += %D%/unit/grad/test_blocks
tests_unit_grad_test_blocks_SOURCES = %D%/unit/grad/test_blocks.c %D%/lib/blocks.c
unit_tests += %D%/unit/grad/test_joint
unit_tests += %D%/unit/grad/test_maxflow
unit_tests += %D%/unit/grad/test_partition
unit_tests += %D%/unit/grad/test_rows
unit_tests += %D%/unit/grad/test_tape
unit_tests += %D%/unit/grad/test_tape_calls
unit_tests += %D%/unit/grad/test_tape_fake
unit_tests += %D%/unit/grad/test_tape_random
unit_tests += %D%/unit/grad/test_tape_written
unit_tests += %D%/unit/guard/test_guard
unit_tests += %D%/unit/import/test_npy
unit_tests += %D%/unit/import/test_safetensors
unit_tests += %D%/unit/nn/test_nn
unit_tests += %D%/unit/nn/test_optim
unit_tests += %D%/unit/pass/test_formula
unit_tests += %D%/unit/pass/test_passes
unit_tests += %D%/unit/sym/test_dim
unit_tests += %D%/unit/sym/test_env
tests_unit_sym_test_env_SOURCES = %D%/unit/sym/test_env.c %D%/unit/sym/sizes.h
unit_tests += %D%/unit/sym/test_text
tests_unit_sym_test_text_SOURCES = %D%/unit/sym/test_text.c %D%/unit/sym/sizes.h
unit_tests += %D%/unit/sym/test_normal
tests_unit_sym_test_normal_SOURCES = %D%/unit/sym/test_normal.c %D%/unit/sym/sizes.h
unit_tests += %D%/unit/sym/test_prove
tests_unit_sym_test_prove_SOURCES = %D%/unit/sym/test_prove.c %D%/unit/sym/sizes.h
unit_tests += %D%/unit/sym/test_random
unit_tests += %D%/unit/tensor/test_dlpack
unit_tests += %D%/unit/tensor/test_dtype
unit_tests += %D%/unit/tensor/test_layout
unit_tests += %D%/unit/tensor/test_tensor
unit_tests += %D%/unit/graph/test_graph
unit_tests += %D%/unit/graph/test_mutations
unit_tests += %D%/unit/graph/test_symbols
unit_tests += %D%/unit/graph/test_print
unit_tests += %D%/unit/graph/test_run
unit_tests += %D%/unit/graph/test_text
unit_tests += %D%/unit/graph/test_verify
unit_tests += %D%/unit/tools/test_defined
unit_tests += %D%/unit/tools/test_opcheck
unit_tests += %D%/unit/tools/test_derivative
unit_tests += %D%/unit/tools/test_golden
unit_tests += %D%/unit/tools/test_show
unit_tests += %D%/unit/op/test_aten
unit_tests += %D%/unit/op/test_aten_cxx
tests_unit_op_test_aten_cxx_SOURCES = %D%/unit/op/test_aten_cxx.cpp
unit_tests += %D%/unit/op/test_conv
tests_unit_op_test_conv_SOURCES = %D%/unit/op/test_conv.c %D%/lib/op_text.c
unit_tests += %D%/unit/op/test_data_sizes
unit_tests += %D%/unit/op/test_dispatch
unit_tests += %D%/unit/op/test_fft
unit_tests += %D%/unit/op/test_found
tests_unit_op_test_found_SOURCES = %D%/unit/op/test_found.c %D%/lib/op_text.c
tests_unit_op_test_fft_SOURCES = %D%/unit/op/test_fft.c %D%/lib/op_text.c
unit_tests += %D%/unit/op/test_library
unit_tests += %D%/unit/op/test_index
tests_unit_op_test_index_SOURCES = %D%/unit/op/test_index.c %D%/lib/op_text.c
unit_tests += %D%/unit/op/test_linalg
tests_unit_op_test_linalg_SOURCES = %D%/unit/op/test_linalg.c %D%/lib/op_text.c
unit_tests += %D%/unit/op/test_matmul
tests_unit_op_test_matmul_SOURCES = %D%/unit/op/test_matmul.c %D%/lib/op_text.c
unit_tests += %D%/unit/op/test_pains
tests_unit_op_test_pains_SOURCES = %D%/unit/op/test_pains.c %D%/unit/op/pains.h %D%/lib/op_text.c
tests_unit_op_test_pains_LDADD = $(world)
unit_tests += %D%/unit/op/test_pains_shapes
tests_unit_op_test_pains_shapes_SOURCES = %D%/unit/op/test_pains_shapes.c %D%/unit/op/pains.h %D%/lib/op_text.c
tests_unit_op_test_pains_shapes_LDADD = $(world)
unit_tests += %D%/unit/op/test_own
unit_tests += %D%/unit/op/test_random
unit_tests += %D%/unit/op/test_shape_programs
tests_unit_op_test_shape_programs_SOURCES = %D%/unit/op/test_shape_programs.c %D%/unit/op/programs.c \
	%D%/unit/op/programs.h
unit_tests += %D%/unit/op/test_sort
tests_unit_op_test_sort_SOURCES = %D%/unit/op/test_sort.c %D%/lib/op_text.c
unit_tests += %D%/unit/op/test_loss
unit_tests += %D%/unit/op/test_norm
unit_tests += %D%/unit/op/test_pointwise
unit_tests += %D%/unit/op/test_reduce
tests_unit_op_test_loss_SOURCES = %D%/unit/op/test_loss.c %D%/lib/op_text.c
tests_unit_op_test_norm_SOURCES = %D%/unit/op/test_norm.c %D%/lib/op_text.c
tests_unit_op_test_pointwise_SOURCES = %D%/unit/op/test_pointwise.c %D%/lib/op_text.c
tests_unit_op_test_reduce_SOURCES = %D%/unit/op/test_reduce.c %D%/lib/op_text.c
unit_tests += %D%/unit/op/test_refusals
unit_tests += %D%/unit/op/test_rows
unit_tests += %D%/unit/op/test_schema
unit_tests += %D%/unit/op/test_vector

include %D%/abi/local.mk
include %D%/fail/local.mk
include %D%/features/local.mk
include %D%/unit/backend/local.mk
script_tests += %D%/cli/verbs.sh %D%/cli/symbols.sh
# Some thousand steps, which sanitizers would make minutes of; shorter trainings are among the unit tests.
if !SANITIZED
script_tests += %D%/models/train.py
endif

include %D%/bench/local.mk
include %D%/check/local.mk
include %D%/golden/local.mk
include %D%/model/local.mk
include %D%/oom/local.mk

EXTRA_DIST += %D%/models/train.py
EXTRA_DIST += %D%/unit/op/core_schemas.txt
EXTRA_DIST += %D%/models/nn/layers.safetensors %D%/models/nn/record.py \
	%D%/models/nn/optim.safetensors %D%/models/nn/record_optim.py
EXTRA_DIST += %D%/models/digits/README.md %D%/models/digits/images.npy %D%/models/digits/labels.npy \
	%D%/models/digits/logits.npy %D%/models/digits/train.py %D%/models/digits/weights.safetensors \
	%D%/models/digits/train_images.npy %D%/models/digits/train_labels.npy %D%/models/digits/start.safetensors \
	%D%/models/digits/losses.npy
EXTRA_DIST += %D%/unit/graph/expected.py %D%/unit/graph/expected %D%/unit/tools/shown.py %D%/unit/tools/shown

if HAVE_CMOCKA
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
TESTS += $(script_tests)
EXTRA_DIST += $(script_tests) %D%/driver %D%/sum %D%/lib/tap.sh %D%/lib/tap.py %D%/lib/rows.py \
	%D%/features.py %D%/features.def
noinst_HEADERS += %D%/lib/mylib.h
noinst_HEADERS += %D%/unit/grad/fixture.h %D%/lib/blocks.h %D%/lib/check.h %D%/lib/op_text.h %D%/lib/op_world.h \
	%D%/unit/tensor/casts.def %D%/unit/graph/build.h %D%/unit/compile/fixture.h

# Runtimes with a config and a folder of their own: NAME_LDADD = $(world).
check_LTLIBRARIES += %D%/lib/libworld.la
tests_lib_libworld_la_SOURCES = %D%/lib/world.c %D%/lib/world.h
world = tests/lib/libworld.la $(LDADD)

# Defaults of every program that does not say otherwise: the tests'.
LDADD = libhost.la $(CMOCKA_LIBS)

TEST_EXTENSIONS = .sh .py
LOG_DRIVER = $(SHELL) $(top_srcdir)/tests/driver
SH_LOG_DRIVER = $(LOG_DRIVER)
PY_LOG_DRIVER = $(LOG_DRIVER)
# Threads that wait sleep: tests run side by side, and idle threads that spin would take the cores of the others.
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; top_builddir='$(abs_top_builddir)'; export top_builddir; \
	BP_CLI='$(abs_top_builddir)/backplane'; export BP_CLI; CC='$(CC)'; export CC; CXX='$(CXX)'; export CXX; \
	ASAN_OPTIONS='detect_stack_use_after_return=1:strict_string_checks=1'; export ASAN_OPTIONS; \
	LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/conf/suppressions/leak:print_suppressions=0'; export LSAN_OPTIONS; \
	UBSAN_OPTIONS='print_stacktrace=1'; export UBSAN_OPTIONS; \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	TSAN_OPTIONS='suppressions=$(abs_top_srcdir)/conf/suppressions/thread:halt_on_error=0'; export TSAN_OPTIONS;

# The sum over all runners of the last `make check`: failed tests by name, then `N passed, N failed`; sum-all counts
# the golden cases and the features too.
.PHONY: sum sum-all
sum:
	@$(SHELL) $(top_srcdir)/tests/sum $(TEST_LOGS:.log=.trs)
sum-all:
	@$(SHELL) $(top_srcdir)/tests/sum $(TEST_LOGS:.log=.trs) results/features.trs $(golden_results)

check-local: need-cmocka
.PHONY: need-cmocka
need-cmocka:
if !HAVE_CMOCKA
	@echo 'CMocka is not found, and most tests are built on it: install libcmocka-dev and configure again' >&2; exit 1
endif

# A file a line or two, so that families can be added side by side without conflicts.
libhost_la_SOURCES += %D%/op.h %D%/rows.h %D%/run.h %D%/arg.c %D%/bind.c %D%/check.c %D%/dispatch.c %D%/inplace.c
libhost_la_SOURCES += %D%/promote.c %D%/run.c %D%/shape.c %D%/table.c
libhost_la_SOURCES += %D%/schema.c %D%/schema.h %D%/schema_text.c %D%/types.def %D%/value.c
libhost_la_SOURCES += %D%/flags.def %D%/page.c
libhost_la_SOURCES += %D%/ops.def %D%/higher.def
libhost_la_SOURCES += %D%/ops/conv.def
libhost_la_SOURCES += %D%/ops/create.def
libhost_la_SOURCES += %D%/ops/index.def
libhost_la_SOURCES += %D%/ops/inplace.def
libhost_la_SOURCES += %D%/ops/matmul.def
libhost_la_SOURCES += %D%/ops/norm.def
libhost_la_SOURCES += %D%/ops/pointwise.def
libhost_la_SOURCES += %D%/ops/random.def
libhost_la_SOURCES += %D%/ops/reduce.def
libhost_la_SOURCES += %D%/ops/sort.def
libhost_la_SOURCES += %D%/ops/view.def
libhost_la_SOURCES += %D%/view_rule.h %D%/shape_view.c %D%/shape_reshape.c %D%/shape_split.c %D%/shape_convert.c
libhost_la_SOURCES += %D%/shape_compose.c %D%/shape_facts.c
libhost_la_SOURCES += %D%/join_piece.h %D%/shape_join.c %D%/shape_move.c
libhost_la_SOURCES += %D%/reference/join.c %D%/reference/move.c %D%/reference/move.h
libhost_la_SOURCES += %D%/shape_create.c %D%/reference/create.c %D%/reference/view.c
libhost_la_SOURCES += %D%/shape_pointwise.c %D%/shape_pointwise.h %D%/reference/cx.h
libhost_la_SOURCES += %D%/reference/loop.c %D%/reference/loop.h %D%/reference/loop_vector.h %D%/reference/vmath.h
libhost_la_SOURCES += %D%/reference/vector.c %D%/reference/vector.h
libhost_la_SOURCES += %D%/reference/part.c %D%/reference/part.h %D%/reference/special.c %D%/reference/special.h
libhost_la_SOURCES += %D%/reference/pointwise_activation.c %D%/reference/pointwise_arith.c
libhost_la_SOURCES += %D%/reference/pointwise_compare.c
libhost_la_SOURCES += %D%/reference/pointwise_math.c %D%/reference/pointwise_special.c %D%/reference/pointwise_ternary.c
libhost_la_SOURCES += %D%/reference/pointwise_unary.c %D%/reference/pointwise_backward.c
libhost_la_SOURCES += %D%/library.c %D%/library.h %D%/custom.c %D%/custom_args.c %D%/custom_call.c
libhost_la_SOURCES += %D%/custom_schema.c %D%/custom_schema.h
libhost_la_SOURCES += %D%/aten.c %D%/aten.h

# aten.h and the functions behind it come from the rows. The stamp keeps an unchanged header's time, so that a new
# kernel does not compile the tree again.
noinst_PROGRAMS += %D%/gen/aten_gen
host_op_gen_aten_gen_SOURCES = \
	%D%/gen/aten_gen.c %D%/gen/calls.c %D%/gen/gen.h %D%/gen/macros.c %D%/gen/types.c \
	%D%/schema.c %D%/schema_text.c %D%/value.c
host_op_gen_aten_gen_LDADD = libbase.la
nodist_libhost_la_SOURCES += %D%/aten_calls.c
nodist_backplane_include_HEADERS += sdk/include/backplane/aten.h
BUILT_SOURCES += sdk/include/backplane/aten.h %D%/aten_calls.c
CLEANFILES += sdk/include/backplane/aten.h %D%/aten_calls.c %D%/gen/aten.stamp
aten_read = $(srcdir)/sdk/include/backplane/args.h $(srcdir)/sdk/include/backplane/backplane.h \
	$(srcdir)/sdk/include/backplane/plugin.h $(srcdir)/sdk/include/backplane/types.h

%D%/gen/aten.stamp: %D%/gen/aten_gen$(EXEEXT) $(aten_read)
	$(AM_V_GEN)$(MKDIR_P) sdk/include/backplane %D%/gen && \
	%D%/gen/aten_gen$(EXEEXT) header $(aten_read) >%D%/gen/aten.h.new && \
	%D%/gen/aten_gen$(EXEEXT) calls >%D%/gen/aten_calls.c.new && \
	{ cmp -s %D%/gen/aten.h.new sdk/include/backplane/aten.h || cp %D%/gen/aten.h.new sdk/include/backplane/aten.h; } && \
	{ cmp -s %D%/gen/aten_calls.c.new %D%/aten_calls.c || cp %D%/gen/aten_calls.c.new %D%/aten_calls.c; } && \
	rm -f %D%/gen/aten.h.new %D%/gen/aten_calls.c.new && echo made >$@
sdk/include/backplane/aten.h %D%/aten_calls.c: %D%/gen/aten.stamp
	@test -f $@ || { rm -f %D%/gen/aten.stamp; $(MAKE) $(AM_MAKEFLAGS) %D%/gen/aten.stamp; }
libhost_la_SOURCES += %D%/checks.c %D%/checks.h %D%/index_plan.c %D%/index_plan.h
libhost_la_SOURCES += %D%/shape_index.c %D%/shape_masked.c %D%/shape_search.c
libhost_la_SOURCES += %D%/shape_matmul.c
libhost_la_SOURCES += %D%/shape_sort.c
libhost_la_SOURCES += %D%/reference/number.c %D%/reference/number.h %D%/reference/walk.c %D%/reference/walk.h
libhost_la_SOURCES += %D%/reference/work.c %D%/reference/work.h
libhost_la_SOURCES += %D%/reference/index.c %D%/reference/masked.c %D%/reference/scatter.c
libhost_la_SOURCES += %D%/reference/search.c %D%/reference/unique.c
libhost_la_SOURCES += %D%/reference/matmul.c %D%/reference/gemm.h %D%/reference/grouped.c %D%/reference/product.c
libhost_la_SOURCES += %D%/reference/order.c %D%/reference/order.h %D%/reference/sort.c
# Alone in contracting multiply and add: how a sum of products rounds is not promised.
noinst_LTLIBRARIES += libgemm.la
libgemm_la_SOURCES = %D%/reference/gemm.c %D%/reference/gemm_typed.h
libgemm_la_CPPFLAGS = $(libhost_la_CPPFLAGS)
libgemm_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast
libhost_la_LIBADD += libgemm.la
libhost_la_SOURCES += %D%/shape_reduce.c %D%/shape_reduce.h %D%/reference/fold.c %D%/reference/fold.h
libhost_la_SOURCES += %D%/reference/reduce_best.c %D%/reference/reduce_norm.c
libhost_la_SOURCES += %D%/reference/reduce_scan.c %D%/reference/reduce_sum.c
libhost_la_SOURCES += %D%/conv_args.c %D%/conv_args.h %D%/shape_conv.c
libhost_la_SOURCES += %D%/reference/conv.c %D%/reference/conv.h %D%/reference/conv_image.c
libhost_la_SOURCES += %D%/shape_norm.c %D%/reference/norm.c %D%/reference/norm.h %D%/reference/norm_batch.c
libhost_la_SOURCES += %D%/reference/norm_layer.c %D%/reference/norm_softmax.c %D%/reference/norm_backward.c
libhost_la_SOURCES += %D%/pool_args.c %D%/pool_args.h %D%/shape_pool.c
libhost_la_SOURCES += %D%/reference/pool.c %D%/reference/pool_typed.h
libhost_la_SOURCES += %D%/resample_args.c %D%/resample_args.h %D%/shape_resample.c
libhost_la_SOURCES += %D%/reference/resample.c %D%/reference/resample_typed.h
libhost_la_SOURCES += %D%/reference/grid.c %D%/reference/grid_typed.h
libhost_la_SOURCES += %D%/shape_pad.c %D%/reference/pad.c
libhost_la_SOURCES += %D%/shape_overwrite.c %D%/reference/overwrite.c
libhost_la_SOURCES += %D%/reference/compose.c %D%/reference/compose.h %D%/reference/chain.c %D%/reference/einsum.c
libhost_la_SOURCES += %D%/shape_attention.c %D%/reference/attention.c
libhost_la_SOURCES += %D%/shape_random.c %D%/reference/random.c
libhost_la_SOURCES += %D%/ops/linalg.def %D%/shape_linalg.c %D%/shape_linalg.h %D%/shape_linalg_solve.c
libhost_la_SOURCES += %D%/shape_linalg_spectral.c
libhost_la_SOURCES += %D%/reference/lapack.c %D%/reference/lapack.def %D%/reference/lapack.h
libhost_la_SOURCES += %D%/reference/linalg.c %D%/reference/linalg.h %D%/reference/linalg_lapack.c
libhost_la_SOURCES += %D%/reference/linalg_check.c %D%/reference/linalg_factor.c %D%/reference/linalg_lstsq.c
libhost_la_SOURCES += %D%/reference/linalg_lu.c
libhost_la_SOURCES += %D%/reference/linalg_spectral.c
libhost_la_SOURCES += %D%/ops/fft.def %D%/fft_args.c %D%/fft_args.h %D%/shape_fft.c
libhost_la_SOURCES += %D%/ops/loss.def %D%/shape_loss.c %D%/reference/loss.c \
	%D%/reference/loss_compose.c %D%/reference/distance.c
libhost_la_SOURCES += %D%/reference/steps.h %D%/reference/reduce_compose.c
libhost_la_SOURCES += %D%/reference/bag.c
libhost_la_SOURCES += %D%/reference/fft.c %D%/reference/fft.h %D%/reference/fft_run.c %D%/reference/fft_stft.c
libhost_la_SOURCES += %D%/reference/linalg_compose.c %D%/reference/linalg_norm.c %D%/reference/linalg_pinv.c
libhost_la_SOURCES += %D%/reference/stats_compose.c
libhost_la_SOURCES += %D%/reference/segment.c %D%/reference/pool_fractional.c %D%/reference/loss_margin.c
libhost_la_SOURCES += %D%/reference/bag_backward.c %D%/reference/histogram.c
libhost_la_SOURCES += %D%/reference/quantile.c %D%/reference/attention_flash.c %D%/reference/special_bessel.c

libhost_la_SOURCES += %D%/derivative.h %D%/tape.h %D%/joint.h
libhost_la_SOURCES += %D%/maxflow.c %D%/maxflow.h %D%/parts.c %D%/parts.h %D%/parts_cut.c %D%/parts_budget.c \
	%D%/partition.c %D%/joint.c %D%/share.c %D%/share.h
libhost_la_SOURCES += %D%/rows.def %D%/rows/pointwise.def %D%/rows/reduce.def %D%/rows/view.def %D%/rows/create.def
libhost_la_SOURCES += %D%/rows/index.def %D%/rows/sort.def %D%/rows/matmul.def %D%/rows/conv.def %D%/rows/norm.def
libhost_la_SOURCES += %D%/rows/linalg.def %D%/rows/loss.def %D%/rows/fft.def %D%/rows/random.def
libhost_la_SOURCES += %D%/derivative.c %D%/derivative_call.c %D%/derivative_view.c
libhost_la_SOURCES += %D%/tape_node.h %D%/tape.c %D%/tape_node.c %D%/tape_save.c %D%/tape_run.c %D%/tape_view.c
libhost_la_SOURCES += %D%/rows.h %D%/write.c %D%/write.h
libhost_la_SOURCES += %D%/view.c %D%/strided.c %D%/index.c %D%/scatter.c %D%/matmul.c %D%/conv.c %D%/sample.c %D%/norm.c
libhost_la_SOURCES += %D%/fft.c %D%/linalg.c %D%/linalg.h %D%/reflect.c %D%/spectral.c
libhost_la_SOURCES += %D%/tape_leaf.c %D%/tape_backward.c %D%/tape_api.c %D%/tape_print.c %D%/tape_composite.c
libhost_la_SOURCES += %D%/math.h %D%/pointwise.c %D%/clamp.c %D%/special.c %D%/activation.c %D%/reduce.c %D%/scan.c
libhost_la_SOURCES += %D%/norms.c %D%/loss.c %D%/distance.c %D%/pick.c

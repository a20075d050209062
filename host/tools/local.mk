libhost_la_SOURCES += \
	%D%/golden.c %D%/golden.h %D%/golden.def %D%/golden_nodewise.def \
	%D%/golden_backend.c %D%/golden_captured.c %D%/golden_case.h %D%/golden_compare.c %D%/golden_decompose.c \
	%D%/golden_defined.c %D%/golden_defined.h %D%/golden_factors.c %D%/golden_fake.c \
	%D%/golden_graph.c %D%/golden_grad.c %D%/golden_grad_symbolic.c %D%/golden_op.c %D%/golden_read.c %D%/show.c %D%/show.h
libhost_la_SOURCES += %D%/golden_derivative.c %D%/golden_derivative.h %D%/golden_derivative.def
libhost_la_SOURCES += %D%/golden_partition.c %D%/golden_point.c %D%/golden_point.h
libhost_la_SOURCES += %D%/golden_grad_fake.c
libhost_la_SOURCES += %D%/golden_symbolic.c
libhost_la_SOURCES += %D%/golden_symbols.c %D%/golden_symbols.h %D%/symbolic.c %D%/symbolic.h
libhost_la_SOURCES += %D%/opcheck.c %D%/opcheck.def

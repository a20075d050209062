libhost_la_SOURCES += \
	%D%/op.h %D%/schema.h %D%/ops.def %D%/ops/pointwise.def %D%/ops/reduce.def %D%/ops/view.def %D%/ops/create.def \
	%D%/ops/index.def %D%/ops/sort.def %D%/ops/matmul.def %D%/ops/conv.def %D%/ops/norm.def %D%/ops/random.def \
	%D%/ops/inplace.def

libhost_la_SOURCES += \
	%D%/op.h %D%/rows.h %D%/schema.c %D%/schema.h %D%/schema_text.c %D%/types.def %D%/value.c \
	%D%/ops.def %D%/ops/pointwise.def %D%/ops/reduce.def %D%/ops/view.def %D%/ops/create.def \
	%D%/ops/index.def %D%/ops/sort.def %D%/ops/matmul.def %D%/ops/conv.def %D%/ops/norm.def %D%/ops/random.def \
	%D%/ops/inplace.def

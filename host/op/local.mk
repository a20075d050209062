# A file a line or two, so that families can be added side by side without conflicts.
libhost_la_SOURCES += %D%/op.h %D%/rows.h %D%/run.h %D%/arg.c %D%/bind.c %D%/check.c %D%/dispatch.c %D%/inplace.c
libhost_la_SOURCES += %D%/promote.c %D%/run.c %D%/shape.c %D%/table.c
libhost_la_SOURCES += %D%/schema.c %D%/schema.h %D%/schema_text.c %D%/types.def %D%/value.c
libhost_la_SOURCES += %D%/ops.def
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
libhost_la_SOURCES += %D%/shape_view.c %D%/reference/view.c

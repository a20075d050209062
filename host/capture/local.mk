libhost_la_SOURCES += \
	%D%/ask.c %D%/bind.c %D%/bind.h %D%/dynamic.c %D%/dynamic.h %D%/emit.c %D%/emit.h %D%/finish.c %D%/flow.c \
	%D%/flow_eager.c %D%/flow_part.h %D%/frame.c %D%/frame.h %D%/marks.c %D%/number.c %D%/outcome.c %D%/outcome.h \
	%D%/path.c %D%/path.h %D%/record.c %D%/resume.c %D%/size.c %D%/slice.c %D%/slice.h %D%/sources.c %D%/step.c \
	%D%/storage.c %D%/sub.c %D%/sub.h %D%/symbol.c %D%/trace.c %D%/trace.h %D%/tree.c %D%/tree.h \
	%D%/trace_ops.def

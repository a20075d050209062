libhost_la_SOURCES += \
	%D%/ask.c %D%/bind.c %D%/bind.h %D%/finish.c %D%/frame.c %D%/frame.h %D%/number.c %D%/outcome.c %D%/outcome.h \
	%D%/path.c %D%/path.h %D%/record.c %D%/resume.c %D%/slice.c %D%/slice.h \
	%D%/sources.c %D%/step.c %D%/storage.c %D%/trace.c %D%/trace.h %D%/tree.c %D%/tree.h \
	%D%/trace_ops.def

libhost_la_SOURCES += \
	%D%/aot.c %D%/aot.h %D%/aot_parts.h %D%/aot_run.c %D%/aot_api.c \
	%D%/build.c %D%/call.c %D%/callable.c %D%/callable.h %D%/canon.c %D%/check.c %D%/commit.c \
	%D%/graft.c %D%/miss.c %D%/narrow.c %D%/narrow.h %D%/outputs.c %D%/print.c %D%/resume.c %D%/run.c %D%/show.c \
	%D%/slice.c %D%/stance.c %D%/stance.h %D%/stances.def %D%/step.c %D%/supply.c %D%/symbols.c %D%/tree.c %D%/walk.c

libhost_la_SOURCES += \
	%D%/build.c %D%/call.c %D%/callable.c %D%/callable.h %D%/canon.c %D%/emit.c %D%/emit.h %D%/slice.c %D%/check.c %D%/commit.c %D%/graft.c \
	%D%/miss.c %D%/outputs.c %D%/print.c %D%/resume.c %D%/run.c %D%/show.c %D%/stance.c %D%/stance.h %D%/stances.def \
	%D%/step.c %D%/supply.c %D%/walk.c

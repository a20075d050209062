libhost_la_SOURCES += \
	%D%/clock.c %D%/clock.h %D%/ctx.c %D%/ctx.h %D%/diag.c %D%/diag.h %D%/env.c %D%/env.h %D%/env.def \
	%D%/isa.c %D%/isa.h %D%/log.c %D%/log.h %D%/logs.def %D%/parallel.c %D%/parallel.h \
	%D%/runtime.c %D%/runtime.h %D%/layout.c

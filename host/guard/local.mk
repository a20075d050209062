libhost_la_SOURCES += \
	%D%/ambient.def %D%/build.c %D%/check.c %D%/explain.c %D%/guard.h %D%/guards.def %D%/set.h %D%/shape.c

libhost_la_SOURCES += \
	%D%/code.c %D%/code.h %D%/epoch.c %D%/epoch.h %D%/segment.c %D%/segment.h %D%/tree.c %D%/tree.h

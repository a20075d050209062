libhost_la_SOURCES += %D%/derivative.h %D%/tape.h %D%/joint.h
libhost_la_SOURCES += %D%/maxflow.c %D%/maxflow.h %D%/parts.c %D%/parts.h %D%/parts_cut.c %D%/parts_budget.c \
	%D%/partition.c

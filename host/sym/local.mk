libhost_la_SOURCES += %D%/dim.c %D%/dim.h %D%/env.c %D%/env.h %D%/expr.c %D%/expr.h %D%/fact.c %D%/normal.c \
	%D%/parse.c %D%/poly.c %D%/program.c %D%/prove.c %D%/range.c %D%/text.c %D%/value.c

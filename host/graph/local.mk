libhost_la_SOURCES += \
	%D%/atom.c %D%/atom.h \
	%D%/bind.c %D%/builtin.c %D%/builtin.h %D%/higher.c %D%/higher.h %D%/higher_run.c \
	%D%/graph.c %D%/graph.h %D%/hash.c %D%/header.c %D%/header.h %D%/import.c %D%/lex.c %D%/lex.h %D%/module.c \
	%D%/namer.c %D%/namer.h %D%/parse.c \
	%D%/print.h %D%/print_readable.c %D%/print_tabular.c %D%/print_value.c %D%/propagate.c %D%/reserved.def \
	%D%/run.c %D%/run.h %D%/symbols.c %D%/symbols.h %D%/text.c %D%/text.h %D%/verify.c %D%/verify.h \
	%D%/verify_symbols.c

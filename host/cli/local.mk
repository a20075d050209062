bin_PROGRAMS += backplane
backplane_SOURCES = \
	%D%/backends.c %D%/cli.c %D%/cli.h %D%/golden.c %D%/main.c %D%/operators.c %D%/run.c %D%/source.c %D%/source.h \
	%D%/uninstalled.c %D%/verbs.def \
	sdk/examples/digits.c sdk/examples/examples.c sdk/examples/examples.def sdk/examples/examples.h
backplane_CPPFLAGS = $(AM_CPPFLAGS)
backplane_LDADD = libhost.la

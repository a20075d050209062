bin_PROGRAMS += backplane
backplane_SOURCES = \
	%D%/cli.c %D%/cli.h %D%/golden.c %D%/main.c %D%/uninstalled.c %D%/verbs.def
backplane_CPPFLAGS = $(AM_CPPFLAGS)
backplane_LDADD = libhost.la

noinst_HEADERS += %D%/examples.h
EXTRA_DIST += %D%/examples.def %D%/demo.ini.in

# Linked into the backplane command and the demo.
noinst_LTLIBRARIES += libexamples.la
libexamples_la_SOURCES = %D%/examples.c %D%/digits.c

noinst_PROGRAMS += %D%/demo
sdk_examples_demo_SOURCES = %D%/demo.c
sdk_examples_demo_LDADD = libexamples.la libbackplane.la -lm

# The two plugins that the demo's chain gets over; a module that is not installed needs an -rpath to become one.
noinst_LTLIBRARIES += backplane-fails-at-compile.la backplane-fails-at-third-run.la
backplane_fails_at_compile_la_SOURCES = %D%/plugins/fails_at_compile.c
backplane_fails_at_compile_la_LDFLAGS = $(PLUGIN_LINK) -rpath /nowhere
backplane_fails_at_third_run_la_SOURCES = %D%/plugins/fails_at_third_run.c
backplane_fails_at_third_run_la_LDFLAGS = $(PLUGIN_LINK) -rpath /nowhere

noinst_DATA += %D%/demo.ini
CLEANFILES += %D%/demo.ini
%D%/demo.ini: %D%/demo.ini.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed 's|@plugins@|$(abs_top_builddir)/.libs|' $(srcdir)/%D%/demo.ini.in >$@

.PHONY: demo
demo: all
	@BACKPLANE_SYSCONFDIR=$(abs_top_builddir)/conf/uninstalled BACKPLANE_CONFIG=$(abs_top_builddir)/%D%/demo.ini \
		%D%/demo $(top_srcdir)/tests/models/digits
	@echo; echo '== backplane backends'
	@BACKPLANE_CONFIG=$(abs_top_builddir)/%D%/demo.ini ./backplane backends --all

# Programs as a user writes them, and two backends that fail, for the demo's chain.
noinst_LTLIBRARIES += libexamples.la backplane-fails-at-compile.la backplane-fails-at-third-run.la
libexamples_la_SOURCES = %D%/examples.c %D%/examples.def %D%/examples.h %D%/digits.c
libexamples_la_LIBADD =

backplane_fails_at_compile_la_SOURCES = %D%/plugins/fails_at_compile.c
backplane_fails_at_compile_la_LDFLAGS = $(PLUGIN_LINK) -rpath $(plugindir)
backplane_fails_at_third_run_la_SOURCES = %D%/plugins/fails_at_third_run.c
backplane_fails_at_third_run_la_LDFLAGS = $(PLUGIN_LINK) -rpath $(plugindir)

noinst_PROGRAMS += %D%/demo
%C%_demo_SOURCES = %D%/demo.c
%C%_demo_LDADD = libexamples.la libbackplane.la

noinst_PROGRAMS += %D%/train_digits
%C%_train_digits_SOURCES = %D%/train_digits.c
%C%_train_digits_LDADD = libexamples.la libbackplane.la -lm

noinst_PROGRAMS += %D%/custom_ops
%C%_custom_ops_SOURCES = %D%/custom_ops.c
%C%_custom_ops_LDADD = libbackplane.la -lm

# The demo's backends, among those of the uninstalled config.
EXTRA_DIST += %D%/demo.ini.in
noinst_DATA += conf/uninstalled/backends.d/demo.ini
CLEANFILES += conf/uninstalled/backends.d/demo.ini
conf/uninstalled/backends.d/demo.ini: %D%/demo.ini.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed 's|@plugins@|$(abs_top_builddir)/.libs|' $(srcdir)/%D%/demo.ini.in >$@

.PHONY: demo
demo: all
	@BACKPLANE_SYSCONFDIR='$(abs_top_builddir)/conf/uninstalled' ./%D%/demo $(srcdir)/tests/models/digits
	@BACKPLANE_SYSCONFDIR='$(abs_top_builddir)/conf/uninstalled' ./backplane backends --all --probe

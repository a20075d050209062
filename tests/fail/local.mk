# Plugins that are wrong on purpose, a way each: the first rows of what every plugin is held against.
bad_plugins = \
	%D%/plugins/acts.so \
	%D%/plugins/bad_info.so %D%/plugins/bakes_size.so %D%/plugins/hint_size.so \
	%D%/plugins/borrower.so %D%/plugins/constructor_crash.so \
	%D%/plugins/constructor_exit.so %D%/plugins/constructor_hang.so %D%/plugins/declines.so %D%/plugins/errors.so \
	%D%/plugins/executable_stack.so %D%/plugins/fast_math.so %D%/plugins/few_outputs.so \
	%D%/plugins/foreign_sanitizer.so %D%/plugins/init_crash.so %D%/plugins/init_fails.so \
	%D%/plugins/init_no_device.so %D%/plugins/init_silent.so %D%/plugins/lender.so %D%/plugins/many_outputs.so \
	%D%/plugins/needs_gone.so %D%/plugins/no_compile.so %D%/plugins/reads_fake.so %D%/plugins/refuses.so \
	%D%/plugins/run_fails.so %D%/plugins/run_silent.so %D%/plugins/silent_null.so %D%/plugins/too_new.so \
	%D%/plugins/undefined.so %D%/plugins/wrong_dtype.so %D%/plugins/wrong_shape.so %D%/plugins/wrong_values.so
check_DATA = $(bad_plugins)
CLEANFILES += $(bad_plugins)

bad_compile = $(MKDIR_P) $(@D) && $(CC) $(AM_CPPFLAGS) $(CFLAGS) $(BP_SAN) -Wall -Wextra -Werror -fPIC -shared
bad_headers = $(top_srcdir)/sdk/include/backplane/plugin.h $(top_srcdir)/sdk/include/backplane/host_api.def
SUFFIXES = .so
.c.so:
	$(AM_V_CC)$(bad_compile) -o $@ $<
$(bad_plugins): $(bad_headers)
%D%/plugins/borrower.so: %D%/plugins/borrower.c %D%/plugins/lender.so
	$(AM_V_CC)$(bad_compile) -o $@ $(srcdir)/%D%/plugins/borrower.c %D%/plugins/lender.so '-Wl,-rpath,$$ORIGIN/../../..'
%D%/plugins/needs_gone.so: %D%/plugins/needs_gone.c %D%/plugins/gone.c
	$(AM_V_CC)$(bad_compile) -o %D%/plugins/libbp-gone.so $(srcdir)/%D%/plugins/gone.c \
		-Wl,-soname,libbp-gone.so && \
	$(bad_compile) -o $@ $(srcdir)/%D%/plugins/needs_gone.c %D%/plugins/libbp-gone.so; \
	status=$$?; rm -f %D%/plugins/libbp-gone.so; exit $$status
%D%/plugins/executable_stack.so: %D%/plugins/declines.c
	$(AM_V_CC)$(bad_compile) -Wl,-z,execstack -o $@ $(srcdir)/%D%/plugins/declines.c

EXTRA_DIST += \
	%D%/plugins/acts.c \
	%D%/plugins/bad_info.c %D%/plugins/bakes_size.c %D%/plugins/hint_size.c \
	%D%/plugins/borrower.c %D%/plugins/constructor_crash.c %D%/plugins/constructor_exit.c \
	%D%/plugins/constructor_hang.c %D%/plugins/declines.c %D%/plugins/errors.c %D%/plugins/fast_math.c \
	%D%/plugins/few_outputs.c %D%/plugins/foreign_sanitizer.c %D%/plugins/gone.c %D%/plugins/init_crash.c \
	%D%/plugins/init_fails.c %D%/plugins/init_no_device.c %D%/plugins/init_silent.c %D%/plugins/lender.c \
	%D%/plugins/many_outputs.c %D%/plugins/needs_gone.c %D%/plugins/no_compile.c %D%/plugins/reads_fake.c \
	%D%/plugins/refuses.c %D%/plugins/run_fails.c %D%/plugins/run_silent.c %D%/plugins/silent_null.c \
	%D%/plugins/too_new.c %D%/plugins/undefined.c %D%/plugins/wrong_dtype.c %D%/plugins/wrong_shape.c \
	%D%/plugins/wrong_values.c

unit_tests += %D%/test_acts
tests_fail_test_acts_LDADD = $(world)
unit_tests += %D%/test_fail
tests_fail_test_fail_LDADD = $(world)
unit_tests += %D%/test_sizes
tests_fail_test_sizes_LDADD = $(world)

# The model of captured calls and its oracle (README.md).
check_PROGRAMS += %D%/harness
tests_model_harness_SOURCES = %D%/harness.c %D%/census.c %D%/census.h %D%/census.def %D%/session.c %D%/session.h \
	%D%/seen.c %D%/seen.h %D%/claim.c %D%/claim.h %D%/train.c %D%/train.h \
	%D%/text.c %D%/text.h %D%/run.c %D%/run.h %D%/flow.c \
	%D%/links.c %D%/links.h %D%/opaque.c %D%/own.c %D%/kinds.def %D%/sizes.c
tests_model_harness_LDADD = libhost.la $(ZLIB_LIBS)
unit_tests += %D%/test_holes
hole_sources = %D%/hole.c %D%/hole.h %D%/train.c %D%/train.h \
	%D%/text.c %D%/text.h %D%/run.c %D%/run.h %D%/flow.c %D%/census.c %D%/census.h %D%/opaque.c \
	%D%/links.c %D%/links.h %D%/own.c %D%/kinds.def
tests_model_test_holes_SOURCES = %D%/test_holes.c $(hole_sources)
unit_tests += %D%/test_steps
tests_model_test_steps_SOURCES = %D%/test_steps.c $(hole_sources)
script_tests += %D%/check.sh %D%/check_train.sh %D%/check_dynamic.sh
EXTRA_DIST += %D%/README.md %D%/capture_model.py %D%/eager.py %D%/programs.py %D%/holes.py %D%/shrink.py \
	%D%/faults.py %D%/random %D%/programs.txt.gz %D%/rules.txt

# New random programs: 300 of 100 calls; every night 5,000. MODEL_SEED: which. Those of seed 1 give the table rules.txt.
.PHONY: check-model check-model-nightly model-rules
check-model: %D%/harness$(EXEEXT)
	@$(SHELL) $(srcdir)/%D%/random '$(abs_top_builddir)' 300 $${MODEL_SEED-1} $(srcdir)/%D%/rules.txt
model-rules: %D%/harness$(EXEEXT)
	@$(SHELL) $(srcdir)/%D%/random '$(abs_top_builddir)' 300 1 $(srcdir)/%D%/rules.txt write
check-model-nightly: %D%/harness$(EXEEXT)
	@$(SHELL) $(srcdir)/%D%/random '$(abs_top_builddir)' 5000 $${MODEL_SEED-2}

# Random programs of cond, while_loop, map and scan; FLOW_SEED=n begins elsewhere.
.PHONY: check-flow
check-flow: tests/unit/compile/test_control_flow_random$(EXEEXT)
	@FLOW_PROGRAMS=$${FLOW_PROGRAMS-5000} BP_TEST_TIMEOUT=1200 $(MAKE) -s check-TESTS \
		TESTS=tests/unit/compile/test_control_flow_random

# Everything that takes long: as many random programs, and a million calls.
.PHONY: check-nightly
check-nightly: check-model-nightly check-million check-faults

# Wrong readings of the rules, planted in the host: each fails the test of its rule.
.PHONY: check-faults
check-faults: %D%/test_holes$(EXEEXT) %D%/test_steps$(EXEEXT) %D%/harness$(EXEEXT)
	@TMPDIR=$$(mktemp -d) && export TMPDIR && top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		python3 $(srcdir)/%D%/faults.py $(tests_model_test_holes_OBJECTS) -- $(tests_model_test_steps_OBJECTS) \
		-- $(CC) $(libhost_la_CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -w -- $(LIBTOOL) --silent --tag=CC --mode=link $(CC) \
		$(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -- libhost.la $(CMOCKA_LIBS) $(ZLIB_LIBS) \
		-- $(tests_model_harness_OBJECTS); \
		status=$$?; rm -rf "$$TMPDIR"; exit $$status

# What never changes: the plugin and the program of the first day as they were compiled then, and the interface as
# libabigail sees it.
unit_tests += %D%/test_golden
tests_abi_test_golden_LDADD = $(world)
EXTRA_DIST += %D%/v1/BUILT.md %D%/v1/SHA256SUMS %D%/v1/golden_plugin.c %D%/v1/golden_plugin.so %D%/v1/golden_app.c \
	%D%/v1/golden_app %D%/v1/golden_app.txt

# Looks at the built library, so one build of many is enough.
if !SANITIZED
script_tests += %D%/abi.py
endif
EXTRA_DIST += %D%/abi.py %D%/surface.c %D%/baseline/libbackplane.abi.xz %D%/baseline/plugin.abi.xz

# check-abi: the interface against its baseline. abi-baseline: the baseline anew, in the source tree, after an addition;
# the check must pass before.
.PHONY: check-abi abi-baseline
check-abi: all
	@$(MAKE) -s check-TESTS TESTS=tests/abi/abi.py
abi-baseline: all
	@$(AM_TESTS_ENVIRONMENT) python3 $(top_srcdir)/%D%/abi.py write

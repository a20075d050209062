# Checks of the tree itself: what `make check` runs beside the programs, and targets that build it again in another way.

# They look at sources, so one build of many is enough.
if !SANITIZED
script_tests += %D%/sum.sh %D%/golden.sh %D%/bootstrap.sh %D%/includes.py %D%/headers.py %D%/style.py %D%/exports.py \
	%D%/docs.py %D%/install.sh %D%/tables.py %D%/operators.py
script_tests += %D%/rules.py
script_tests += %D%/rows.py
script_tests += %D%/sizes.py
endif
EXTRA_DIST += %D%/rows.own tests/rules.def tests/rows.def
EXTRA_DIST += %D%/sizes.allow
EXTRA_DIST += %D%/style.allow %D%/variant tests/vendor/hello.c tests/vendor/hello_cxx.cc tests/vendor/composer.c \
	tests/vendor/user.c tests/vendor/user_cxx.cc

.PHONY: check-includes check-headers check-style check-exports check-docs check-install check-tables check-operators
check-headers check-exports check-docs check-install check-tables check-operators: all
check-includes check-headers check-style check-exports check-docs check-tables check-operators:
	@$(MAKE) -s check-TESTS TESTS=tests/check/$(@:check-%=%).py
# Shape rules: random programs with symbols for sizes, 5,000 of them.
.PHONY: check-shapes
check-shapes: all
	@$(MAKE) -s tests/unit/op/test_shape_programs$(EXEEXT)
	@BP_SHAPE_PROGRAMS=5000 tests/unit/op/test_shape_programs

# Rules of captured calls, and which tests show them.
.PHONY: check-rules
check-rules:
	@$(MAKE) -s check-TESTS TESTS=tests/check/rules.py
check-install:
	@$(MAKE) -s check-TESTS TESTS=tests/check/install.sh

# The tree with sanitizers, each in a build of its own; thread with one OpenMP thread, since libgomp is not
# instrumented. What a sanitizer may overlook is listed in conf/suppressions, a reason each.
.PHONY: check-san check-san-address check-san-thread check-clang
check-san: check-san-address check-san-thread
check-san-address:
	@$(SHELL) $(top_srcdir)/tests/check/variant $(abs_top_builddir) san-address check \
		--enable-sanitizers=address,undefined CFLAGS='-O1 -g' CXXFLAGS='-O1 -g'
check-san-thread:
	@OMP_NUM_THREADS=1 $(SHELL) $(top_srcdir)/tests/check/variant $(abs_top_builddir) san-thread check \
		--enable-sanitizers=thread CFLAGS='-O1 -g' CXXFLAGS='-O1 -g'

# The whole tree, tests included, with the other compiler; warnings are errors.
check-clang:
	@$(SHELL) $(top_srcdir)/tests/check/variant $(abs_top_builddir) clang build \
		--enable-werror CC=clang CXX=clang++ CFLAGS='-O1 -g' CXXFLAGS='-O1 -g'

# Rows of features.def against the results of the last `make check`.
.PHONY: features check-features
features:
	@python3 $(top_srcdir)/tests/features.py write $(top_srcdir) $(TEST_LOGS:.log=.trs)
check-features:
	@mkdir -p results
	@$(LOG_DRIVER) --test-name features --log-file results/features.log --trs-file results/features.trs -- \
		$(top_srcdir)/tests/features.py check $(top_srcdir) $(TEST_LOGS:.log=.trs)

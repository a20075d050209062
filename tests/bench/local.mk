# What a call, a compile and a long run cost: docs/testing.md. The programs are a user's: they link libbackplane.
check_PROGRAMS += %D%/call
%C%_call_SOURCES = %D%/call.c %D%/bench.c %D%/bench.h
%C%_call_LDADD = libbackplane.la -lpthread
%C%_call_LDFLAGS = $(AM_LDFLAGS) -no-install

check_PROGRAMS += %D%/call_slow
tests_bench_call_slow_SOURCES = %D%/call.c %D%/bench.c %D%/slow.c
tests_bench_call_slow_LDADD = libhost.la -lpthread
tests_bench_call_slow_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=args_check
# Valgrind and malloc's own figures are for builds without sanitizers.
if !SANITIZED
script_tests += %D%/call.py %D%/million.sh %D%/symbolic.py
endif

# Shapes of symbols beside shapes of numbers, and guards on them.
check_PROGRAMS += %D%/symbolic
tests_bench_symbolic_SOURCES = %D%/symbolic.c %D%/process.h
tests_bench_symbolic_LDADD = libhost.la

# Long runs: memory is flat.
check_PROGRAMS += %D%/million
tests_bench_million_SOURCES = %D%/million.c
tests_bench_million_LDADD = libbackplane.la -lpthread
tests_bench_million_LDFLAGS = $(AM_LDFLAGS) -no-install
.PHONY: check-million
check-million: all
	@BP_CALLS=1000000 BP_TEST_TIMEOUT=1200 $(MAKE) -s check-TESTS TESTS=tests/bench/million.sh

PYTHON = python3
# Times of a call that hits, beside PyTorch's where PYTHON has it.
.PHONY: bench-call
bench-call: all %D%/call$(EXEEXT) %D%/plugin.so
	@top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' $(PYTHON) $(srcdir)/%D%/call.py show

check_DATA += %D%/plugin.so
CLEANFILES += %D%/plugin.so
%D%/plugin.so: $(bad_headers)
EXTRA_DIST += %D%/plugin.c %D%/instructions.py %D%/call.py
# Reference kernels against PyTorch eager, two threads each: `make bench-reference PYTHON=...` with a Python that has
# PyTorch; without, ours alone.
noinst_PROGRAMS += %D%/serve
tests_bench_serve_SOURCES = %D%/serve.c
tests_bench_serve_LDADD = libhost.la
EXTRA_DIST += %D%/reference.py


.PHONY: bench-reference
bench-reference: all
	@OMP_NUM_THREADS=2 GOMP_SPINCOUNT=10000 $(PYTHON) $(srcdir)/%D%/reference.py '$(abs_top_builddir)/%D%/serve'

# A training step of a transformer block, beside PyTorch's where PYTHON has it.
noinst_PROGRAMS += %D%/train
tests_bench_train_SOURCES = %D%/train.c %D%/process.h
tests_bench_train_LDADD = libbackplane.la
EXTRA_DIST += %D%/train.py
.PHONY: bench-train
bench-train: all
	@BACKPLANE_SYSCONFDIR='$(abs_top_builddir)/conf/uninstalled' OMP_NUM_THREADS=2 \
		$(PYTHON) $(srcdir)/%D%/train.py '$(abs_top_builddir)/%D%/train'

# What partitions save and cost, beside PyTorch's where PYTHON has it.
noinst_PROGRAMS += %D%/partition
tests_bench_partition_SOURCES = %D%/partition.c tests/lib/blocks.c
tests_bench_partition_LDADD = libhost.la
EXTRA_DIST += %D%/partition.py
.PHONY: bench-partition
bench-partition: all
	@OMP_NUM_THREADS=2 $(PYTHON) $(srcdir)/%D%/partition.py '$(abs_top_builddir)/%D%/partition'

# What symbols cost where shapes are found: `make bench-symbols`.
noinst_PROGRAMS += %D%/propagate
tests_bench_propagate_SOURCES = %D%/propagate.c
tests_bench_propagate_LDADD = libhost.la
.PHONY: bench-symbols
bench-symbols: all %D%/propagate$(EXEEXT)
	@%D%/propagate$(EXEEXT)

# PyTorch's recorded answers (FORMAT.md), run on each backend that floors names.
EXTRA_DIST += %D%/FORMAT.md %D%/floors %D%/run %D%/ops_handed.jsonl.gz %D%/graphs_handed.jsonl.gz \
	%D%/nodewise.py \
	%D%/pick.py %D%/small.jsonl.gz
script_tests += %D%/small.sh

# The same for operators that no handed case covers.
EXTRA_DIST += tests/torch/record.py tests/torch/recorded.jsonl.gz tests/torch/differ.py
EXTRA_DIST += tests/torch/record.py tests/torch/recorded.jsonl.gz tests/torch/train_digits.py
script_tests += tests/torch/recorded.sh

# Gradients of single operators.
EXTRA_DIST += tests/torch/differentiate.py tests/torch/differentiate_own.py tests/torch/differentiated.jsonl.gz
script_tests += tests/torch/differentiated.sh

.PHONY: check-golden
check-golden: all
	@$(MKDIR_P) results
	@BACKPLANE_SYSCONFDIR='$(abs_top_builddir)/conf/uninstalled' \
		$(SHELL) $(srcdir)/%D%/run '$(abs_top_builddir)/backplane' $(srcdir)/%D% results

golden_results = $$(sed -n 's|^\([a-z_]*\)[.][^ ]* \([^ ]*\) .*|results/golden-\1-\2.txt|p' $(srcdir)/%D%/floors)

# Derivatives against differences (sample.py wrote the cases that nobody recorded): all cases of all files.
EXTRA_DIST += %D%/sample.py %D%/derivatives.jsonl
script_tests += %D%/derivatives.sh

# Shape rules of operators with symbols for sizes.
script_tests += %D%/shapes.sh

# Gradients of graphs, ahead of time.
script_tests += %D%/ahead.sh

# Symbols for the sizes of inputs.
script_tests += %D%/symbolic.sh

# Gradients at the edges of operators.
EXTRA_DIST += tests/torch/flow.py tests/golden/flow.jsonl
EXTRA_DIST += tests/torch/edge.py tests/torch/edges.jsonl.gz
script_tests += tests/torch/edges.sh

.PHONY: check-derivatives
check-derivatives: all
	@BACKPLANE_SYSCONFDIR='$(abs_top_builddir)/conf/uninstalled' '$(abs_top_builddir)/backplane' golden \
		--check-derivatives $(srcdir)/%D%/ops_handed.jsonl.gz $(srcdir)/tests/torch/recorded.jsonl.gz \
		$(srcdir)/%D%/derivatives.jsonl

EXTRA_DIST += %D%/config.md %D%/plugin.md %D%/design.md %D%/ir.md %D%/capture.md %D%/testing.md \
	%D%/features.md %D%/operators.md %D%/autograd.md %D%/dynamic.md %D%/scope.md
dist_man_MANS = %D%/backplane.1

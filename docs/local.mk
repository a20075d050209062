EXTRA_DIST += %D%/design.md %D%/ir.md %D%/testing.md
dist_man_MANS = %D%/backplane.1

EXTRA_DIST += %D%/design.md %D%/ir.md %D%/testing.md

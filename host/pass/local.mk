libhost_la_SOURCES += %D%/formula.c %D%/formula.h %D%/formula_eval.c %D%/formula_tree.h %D%/decomp.h %D%/pass.h

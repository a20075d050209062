libhost_la_SOURCES += %D%/formula.c %D%/formula.h %D%/formula_eval.c %D%/formula_tree.h %D%/pass.h
libhost_la_SOURCES += %D%/decomp.c %D%/decomp.h %D%/decomps.def %D%/decomps_undef.h %D%/parts.h
libhost_la_SOURCES += %D%/parts_pointwise.c %D%/parts_view.c %D%/parts_join.c %D%/parts_matmul.c %D%/parts_nn.c
libhost_la_SOURCES += %D%/parts_linalg.c
libhost_la_SOURCES += %D%/decomps/pointwise.def %D%/decomps/reduce.def %D%/decomps/view.def %D%/decomps/create.def
libhost_la_SOURCES += %D%/decomps/index.def %D%/decomps/matmul.def %D%/decomps/norm.def %D%/decomps/conv.def
libhost_la_SOURCES += %D%/decomps/linalg.def %D%/decomps/loss.def %D%/decomps/fft.def %D%/decomps/random.def
libhost_la_SOURCES += %D%/decomps/kept.def

libhost_la_SOURCES += %D%/formula.h %D%/decomp.h %D%/pass.h

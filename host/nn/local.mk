libhost_la_SOURCES += %D%/nn.h %D%/params.c %D%/layers.c %D%/norms.c %D%/attention.c %D%/losses.c %D%/optim.c

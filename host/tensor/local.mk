libhost_la_SOURCES += \
	%D%/alloc.c %D%/alloc.h %D%/api.c %D%/copy.c %D%/dlpack.c %D%/dtype.c %D%/dtype.h %D%/layout.c %D%/module.c \
	%D%/marks.c %D%/marks.h %D%/module.h %D%/philox.c %D%/scope.c %D%/storage.c %D%/tensor.c %D%/tensor.h

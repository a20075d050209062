libhost_la_SOURCES += \
	%D%/tensor.h %D%/dtype.h %D%/module.h

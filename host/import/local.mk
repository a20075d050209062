libhost_la_SOURCES += %D%/file.c %D%/file.h %D%/npy.c %D%/safetensors.c

libhost_la_SOURCES += %D%/dim.c %D%/dim.h %D%/env.h

libhost_la_SOURCES += %D%/dim.h

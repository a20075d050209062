libhost_la_SOURCES += %D%/derivative.h %D%/tape.h %D%/joint.h

# What host and plugins share; knows neither.
noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	%D%/arena.c %D%/arena.h %D%/base64.c %D%/base64.h %D%/str.c %D%/str.h %D%/vec.c %D%/vec.h %D%/map.c %D%/map.h \
	%D%/hash.c %D%/hash.h %D%/checked.c %D%/checked.h %D%/match.c %D%/match.h

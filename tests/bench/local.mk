# What a call, a compile and a long run cost: docs/testing.md. The programs are a user's: they link libbackplane.
check_PROGRAMS += %D%/call
%C%_call_SOURCES = %D%/call.c %D%/bench.c %D%/bench.h
%C%_call_LDADD = libbackplane.la -lpthread
%C%_call_LDFLAGS = $(AM_LDFLAGS) -no-install

check_DATA += %D%/plugin.so
CLEANFILES += %D%/plugin.so
%D%/plugin.so: $(bad_headers)
EXTRA_DIST += %D%/plugin.c %D%/profile.py

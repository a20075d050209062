# Rooms without memory. A test lists tests/lib/oom.c among its sources and links with OOM_LINK.
OOM_LINK = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=aligned_alloc \
	-Wl,--wrap=strdup -Wl,--wrap=realpath -Wl,--wrap=free

unit_tests += %D%/test_rooms
tests_oom_test_rooms_SOURCES = %D%/test_rooms.c tests/lib/oom.c tests/lib/oom.h
tests_oom_test_rooms_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_oom_test_rooms_LDFLAGS = $(OOM_LINK)
tests_oom_test_rooms_LDADD = $(LDADD) $(JANSSON_LIBS)

unit_tests += %D%/test_graph
tests_oom_test_graph_SOURCES = %D%/test_graph.c tests/lib/oom.c tests/lib/oom.h
tests_oom_test_graph_LDFLAGS = $(OOM_LINK)

unit_tests += %D%/test_backend
tests_oom_test_backend_SOURCES = %D%/test_backend.c tests/lib/oom.c tests/lib/oom.h
tests_oom_test_backend_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_oom_test_backend_LDFLAGS = $(OOM_LINK)
tests_oom_test_backend_LDADD = $(LDADD) $(JANSSON_LIBS)

unit_tests += %D%/test_tape
tests_oom_test_tape_SOURCES = %D%/test_tape.c tests/lib/oom.c tests/lib/oom.h
tests_oom_test_tape_LDFLAGS = $(OOM_LINK)

unit_tests += %D%/test_sym
tests_oom_test_sym_SOURCES = %D%/test_sym.c tests/lib/oom.c tests/lib/oom.h
tests_oom_test_sym_LDFLAGS = $(OOM_LINK)

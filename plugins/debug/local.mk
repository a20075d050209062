plugin_LTLIBRARIES += backplane-debug.la
backplane_debug_la_SOURCES = %D%/print.c
backplane_debug_la_LDFLAGS = $(PLUGIN_LINK)

plugin_LTLIBRARIES += backplane-compose.la
backplane_compose_la_SOURCES = %D%/compose.c
backplane_compose_la_LDFLAGS = $(PLUGIN_LINK)

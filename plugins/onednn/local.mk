if HAVE_ONEDNN
plugin_LTLIBRARIES += backplane-onednn.la
backplane_onednn_la_SOURCES = \
	%D%/api.c %D%/api.h %D%/api.def %D%/loops.c %D%/loops.h %D%/lower.c %D%/lower.h %D%/node.c %D%/node.h \
	%D%/ops.def %D%/plugin.c %D%/program.c %D%/program.h %D%/shapes.c %D%/shapes.h
backplane_onednn_la_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CFLAGS) \
	-DPLUGIN_VERSION='"$(PACKAGE_VERSION)"' -DONEDNN_LIBRARY='"$(ONEDNN_LIBRARY)"'
backplane_onednn_la_LIBADD = libbase.la
backplane_onednn_la_LDFLAGS = $(PLUGIN_LINK)
endif

backplane_include_HEADERS += \
	%D%/backplane/types.h %D%/backplane/plugin.h %D%/backplane/backplane.h %D%/backplane/args.h \
	%D%/backplane/flow.h %D%/backplane/library.h \
	%D%/backplane/backplane.hpp %D%/backplane/nn.h \
	%D%/backplane/status.def %D%/backplane/dtype.def %D%/backplane/host_api.def

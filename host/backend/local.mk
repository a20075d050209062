libhost_la_SOURCES += \
	%D%/backend.h %D%/program.h %D%/states.def %D%/config.h %D%/config_keys.def %D%/config.c %D%/config_read.c %D%/core.c \
	%D%/room.h %D%/backend.c %D%/registry.c %D%/resolve.c %D%/protect.h %D%/protect.c %D%/builtin.h %D%/builtin.c \
	%D%/elf.h %D%/elf.c %D%/policy.h %D%/policy.c %D%/probe.h %D%/probe.c %D%/probe_store.c %D%/load.c \
	%D%/compiled.h %D%/compiled.c %D%/service.h %D%/service.c %D%/service_graph.c %D%/service_run.c \
	%D%/chain.h %D%/chain.c %D%/view.c %D%/plan.h %D%/assign.c %D%/cut.c %D%/program.c %D%/program_run.c \
	%D%/program_print.c %D%/variants.h %D%/variants.c %D%/sizes.c %D%/program_dynamic.c \
	%D%/dims.h %D%/dims.c %D%/text.h %D%/text.c %D%/watch.h %D%/watch.c %D%/verify.h %D%/verify.c %D%/blame.c

# Loads a plugin for the first time, in a process of its own.
libexec_PROGRAMS += backplane-probe
backplane_probe_SOURCES = %D%/probe_main.c
backplane_probe_LDADD =
libhost_la_SOURCES += %D%/service_op.c

EXTRA_DIST += %D%/backplane.ini.in %D%/onednn.txt %D%/suppressions/leak %D%/suppressions/thread

# The config that is installed, and the one of this build folder, which BACKPLANE_SYSCONFDIR makes an uninstalled
# program read. Paths in it are known to make only.
confdir = $(sysconfdir)/backplane
nodist_conf_DATA = %D%/backplane.ini
noinst_DATA += %D%/uninstalled/backplane.ini
CLEANFILES += %D%/backplane.ini %D%/uninstalled/backplane.ini

# Without oneDNN its section is left out, and the chain asks for it only in case somebody else adds it.
config_without_onednn = -e 's|, onednn-cpu,|, ?onednn-cpu,|' -e '/^\[backend onednn-cpu\]/,/^$$/d'
if HAVE_ONEDNN
config_parts =
else
config_parts = $(config_without_onednn)
endif
.PHONY: show-config
show-config:
	@sed -e 's|@plugins@|$(plugindir)|' $(config_parts) $(srcdir)/%D%/backplane.ini.in

%D%/backplane.ini: %D%/backplane.ini.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed -e 's|@plugins@|$(plugindir)|' $(config_parts) $(srcdir)/%D%/backplane.ini.in >$@
%D%/uninstalled/backplane.ini: %D%/backplane.ini.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%/uninstalled/backends.d && sed \
		-e 's|@plugins@|$(abs_top_builddir)/.libs|' \
		-e 's|^\[host\]|&\nprobe_helper = $(abs_top_builddir)/backplane-probe|' $(config_parts) \
		$(srcdir)/%D%/backplane.ini.in >$@

# Where a vendor's package drops its file.
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(confdir)/backends.d'
uninstall-hook:
	-rmdir '$(DESTDIR)$(confdir)/backends.d' '$(DESTDIR)$(confdir)' 2>/dev/null

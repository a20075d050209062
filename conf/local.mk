EXTRA_DIST += %D%/backplane.ini.in %D%/onednn.txt %D%/suppressions/leak %D%/suppressions/thread

# The config that is installed, and the one of this build folder, which BACKPLANE_SYSCONFDIR makes an uninstalled
# program read. Paths in it are known to make only.
confdir = $(sysconfdir)/backplane
nodist_conf_DATA = %D%/backplane.ini
noinst_DATA += %D%/uninstalled/backplane.ini
CLEANFILES += %D%/backplane.ini %D%/uninstalled/backplane.ini

%D%/backplane.ini: %D%/backplane.ini.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed 's|@plugins@|$(plugindir)|' $(srcdir)/%D%/backplane.ini.in >$@
%D%/uninstalled/backplane.ini: %D%/backplane.ini.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%/uninstalled/backends.d && sed \
		-e 's|@plugins@|$(abs_top_builddir)/.libs|' \
		-e 's|^\[host\]|&\nprobe_helper = $(abs_top_builddir)/backplane-probe|' \
		$(srcdir)/%D%/backplane.ini.in >$@

# Where a vendor's package drops its file.
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(confdir)/backends.d'
uninstall-hook:
	-rmdir '$(DESTDIR)$(confdir)/backends.d' '$(DESTDIR)$(confdir)' 2>/dev/null

# What `make install` leaves: a vendor builds plugins with what pkg-config says and nothing of the host on the link
# line, adds one drop-in file each, and a user's program, linked to the installed library, finds them.
. "$top_srcdir/tests/lib/tap.sh"
root=$TMPDIR/root vendor=$TMPDIR/vendor
mkdir -p "$vendor" "$TMPDIR/backplane/backends.d"

ok "make install" make -s -C "$top_builddir" install DESTDIR="$root"
prefix=$root$(sed -n 's/^prefix = //p' "$top_builddir/Makefile")
libdir=$root$(PKG_CONFIG_PATH="$top_builddir/conf" pkg-config --variable=libdir backplane)
export PKG_CONFIG_PATH="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
export LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# The installed config names folders of the real system; its chain and keys are the shipped ones all the same.
BACKPLANE_SYSCONFDIR=$TMPDIR/etc
export BACKPLANE_SYSCONFDIR
mkdir -p "$BACKPLANE_SYSCONFDIR"
sysconfdir=$root$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=sysconfdir backplane)
sed "s|= */|= $root/|" "$sysconfdir/backplane/backplane.ini" >"$BACKPLANE_SYSCONFDIR/backplane.ini"

# plugin NAME COMPILER SOURCE: builds it outside the tree and adds its drop-in.
plugin() {
    # shellcheck disable=SC2046,SC2086 # a word an argument
    $2 -shared -fPIC -Wall -Wextra -Werror -o "$vendor/$1.so" "$top_srcdir/tests/vendor/$3" \
        $(pkg-config --cflags backplane) &&
        printf '[backend %s]\nlibrary = %s\n' "$1" "$vendor/$1.so" >"$TMPDIR/backplane/backends.d/$1.ini"
}
ok "a five-line plugin builds from Cflags" plugin hello "$CC" hello.c
ok "its C++ form does too" plugin hello-cxx "$CXX" hello_cxx.cc
ok "so does a composer of one's own" plugin hello-composer "$CC" composer.c
is "no plugin needs a library of the host" \
    "$(readelf -d "$vendor"/*.so | grep -c 'NEEDED.*backplane')" 0
# shellcheck disable=SC2046 # a word an argument
ok "a user's program builds from Cflags and Libs" \
    $CC -Wall -Wextra -Werror -o "$vendor/user" "$top_srcdir/tests/vendor/user.c" \
    $(pkg-config --cflags --libs backplane)
# shellcheck disable=SC2046 # a word an argument
ok "one in C++ does too" \
    $CXX -Wall -Wextra -Werror -o "$vendor/user_cxx" "$top_srcdir/tests/vendor/user_cxx.cc" \
    $(pkg-config --cflags --libs backplane)
ok "and runs" "$vendor/user_cxx"

for backend in eager hello hello-cxx hello-composer fallback; do
    like "the program runs on $backend" "$("$vendor/user" $backend 2>&1)" "answer 1"
done
like "the plugin prints the graph" "$("$vendor/user" hello 2>&1)" "call_function*aten.cos.default"
like "a C++ exception is an error with its text" "$("$vendor/user" hello-cxx refused 2>&1)" \
    "no input may be called refused"
like "the installed command lists them" "$("$prefix/bin/backplane" backends 2>&1)" "hello*hello-composer*hello-cxx"
# shellcheck disable=SC2016 # make's variable
without=$(make -s -C "$top_builddir" show-config config_parts='$(config_without_onednn)')
is "a build without oneDNN installs no section of it" "$(printf '%s\n' "$without" | grep -c '^.backend onednn')" 0
like "and its chain goes on without it" "$without" "backend debug-print*cuda-fused, ?onednn-cpu, eager"
like "one that a run throws is, too" "$("$vendor/user" hello-cxx thrown 2>&1)" "thrown by a run*answer 1"
ok "make uninstall" make -s -C "$top_builddir" uninstall DESTDIR="$root"
is "it leaves no file behind" "$(find "$root" -type f)" ""
plan

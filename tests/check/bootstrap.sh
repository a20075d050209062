# ./bootstrap on machines that lack something, played by a PATH of few tools and a make-believe apt-get.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
mkdir -p tree/conf bin
cp "$top_srcdir/bootstrap" tree/ && cp "$top_srcdir/conf/onednn.txt" tree/conf/ && : >tree/configure.ac
for tool in sh dirname nproc cat sed tr date mkdir tail cmp env uname rm; do
    ln -s "$(command -v $tool)" bin/$tool
done
fake() { printf '#!/bin/sh\n%s\n' "$2" >bin/"$1"; chmod +x bin/"$1"; }
build() { PATH=$TMPDIR/bin BACKPLANE_ONEDNN=no sh tree/bootstrap "$@" 2>&1; }

fake id 'echo 1000'
like "without apt-get it names what is missing" "$(build build)" \
    "these are missing, under their Debian names: build-essential autoconf*zlib1g-dev python3"
fake apt-get 'echo "$DEBIAN_FRONTEND apt-get $*" >>"$TMPDIR/apt"'
like "without root and sudo it names them and stops" "$(build build; echo "status $?")" \
    "neither root nor sudo is at hand: build-essential autoconf*status 1"
is "and runs no apt-get" "$(cat apt 2>/dev/null)" ""

fake sudo 'shift; exec "$@"'
fake true "exit 0"
for tool in gcc g++ make autoconf automake libtoolize python3; do fake $tool 'exit 0'; done
fake pkg-config 'test "$2" != jansson'
out=$(build build)
like "with sudo it says what it installs" "$out" "installs these Debian packages: libjansson-dev"
like "only that, and never asks" "$(cat apt)" "noninteractive apt-get -y * install libjansson-dev"

rm -f apt
fake id 'echo 0'
fake sudo 'echo sudo was asked >>"$TMPDIR/apt"'
build build >out
is "root needs no sudo" "$(grep -c sudo apt)" 0
fake pkg-config 'exit 0'
rm -f apt
build build >out
is "with everything there apt-get is not run" "$(cat apt 2>/dev/null)" ""

fake autoreconf 'for n in 1 2 3 4 5 6 7 8; do for m in a b c d; do echo line $n$m; done; done; exit 3'
like "a step that fails shows the end of its log" "$(build build)" \
    "autoreconf failed with exit status 3; the end of build/log/autoreconf.log:
line 1c
line 1d"
like "a misspelt verb is named" "$(build biuld; echo "status $?")" 'unknown verb "biuld"*status 1'
like "an oneDNN that is none is refused" "$(PATH=$TMPDIR/bin BACKPLANE_ONEDNN=/nowhere sh tree/bootstrap build 2>&1)" \
    "BACKPLANE_ONEDNN=/nowhere has no include/oneapi/dnnl/dnnl.h"
plan

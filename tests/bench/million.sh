# Fifty thousand calls, and again on eight threads: memory is flat; `make check-million` makes a million.
. "$top_srcdir/tests/lib/tap.sh"
million=$top_builddir/tests/bench/million
cd "$TMPDIR" || exit 1
"$million" 5000 1 leak >leak.out
like "planted: a tensor kept by each call is seen" "$(cat leak.out)" "not ok 2 - nothing more is held"
ok "memory is flat on one thread" "$million" ${BP_CALLS:-50000} 1
ok "memory is flat on eight threads" "$million" ${BP_CALLS:-50000} 8
plan

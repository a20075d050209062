# A few cases of every operator against PyTorch's recorded answers; `make check-golden` runs all of them.
. "$top_srcdir/tests/lib/tap.sh"
out=$("$BP_CLI" golden "$top_srcdir/tests/golden/small.jsonl.gz" 2>&1)
closing=$(printf '%s\n' "$out" | tail -n 1)
failing=$(printf '%s\n' "$out" | grep '^small' | grep -v ' cases in ')
is "no case differs from PyTorch" "$failing" ""
like "none failed" "$closing" ", 0 failed, "
ok "at least 1,000 cases pass" test "${closing%% passed*}" -ge 1000
out=$("$BP_CLI" golden --functionalize --round-trip "$top_srcdir/tests/golden/small.jsonl.gz" 2>&1)
closing=$(printf '%s\n' "$out" | tail -n 1)
failing=$(printf '%s\n' "$out" | grep '^small' | grep -v ' cases in ')
captured=$(printf '%s\n' "$out" | sed -n 's/ captured and functionalized.*//p')
is "no captured case differs" "$failing" ""
like "none failed under capture" "$closing" ", 0 failed, "
ok "at least 1,000 cases are captured" test "$captured" -ge 1000
for how in --decompose-deep --passes; do
    closing=$("$BP_CLI" golden "$how" "$top_srcdir/tests/golden/small.jsonl.gz" 2>&1 | tail -n 1)
    like "none failed with $how" "$closing" ", 0 failed, "
    ok "at least 1,000 cases pass with $how" test "${closing%% passed*}" -ge 1000
done
plan

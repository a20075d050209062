# Each derivative against differences in float64, a case of each operator; `make check-derivatives` takes all cases.
. "$top_srcdir/tests/lib/tap.sh"
out=$("$BP_CLI" golden --check-derivatives --once "$top_srcdir/tests/golden/ops_handed.jsonl.gz" \
    "$top_srcdir/tests/torch/recorded.jsonl.gz" "$top_srcdir/tests/golden/derivatives.jsonl" 2>&1)
closing=$(printf '%s\n' "$out" | tail -n 1)
proven=$(printf '%s\n' "$out" | sed -n 's/ derivatives are proven, .*//p')
second=$(printf '%s\n' "$out" | sed -n 's/.* derivatives are proven, \([0-9]*\) .*/\1/p')
is "no derivative differs, and each has a case" "$(printf '%s\n' "$out" | grep '[:] *aten[.]\|^aten[.]')" ""
like "none failed" "$closing" ", 0 failed, "
ok "at least 735 derivatives are proven" test "${proven:-0}" -ge 735
ok "at least 700 of them with the second" test "${second:-0}" -ge 700
out=$("$BP_CLI" golden --check-derivatives --op aten.exp. "$top_srcdir/tests/golden/derivatives.jsonl" 2>&1)
like "planted: a file without a case of a row fails" "$(printf '%s\n' "$out" | tail -n 1)" "0 passed, 1 failed"
plan

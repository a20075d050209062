# PyTorch's answers for the operators that no handed golden case covers (record.py wrote them); a changed one is found.
. "$top_srcdir/tests/lib/tap.sh"
file=$top_srcdir/tests/torch/recorded.jsonl.gz
out=$("$BP_CLI" golden --check-fake "$file" 2>&1)
closing=$(printf '%s\n' "$out" | tail -n 1)
is "no case differs from PyTorch" "$(printf '%s\n' "$out" | grep '^recorded' | grep -v ' cases in ')" ""
like "none failed and none is unsupported" "$closing" ", 0 failed, 0 unsupported"
ok "at least 1,000 cases pass" test "${closing%% passed*}" -ge 1000
for how in --decompose --decompose-deep; do
    closing=$("$BP_CLI" golden "$how" "$file" 2>&1 | tail -n 1)
    like "none fails by its parts ($how)" "$closing" ", 0 failed, 0 unsupported"
done
gzip -dc "$file" | grep -m 1 '"op": "aten.absolute.default"' | sed 's/\("out": {"dtype": "\)float32/\1float64/' \
    | gzip >"$TMPDIR/planted.jsonl.gz"
closing=$("$BP_CLI" golden "$TMPDIR/planted.jsonl.gz" 2>&1 | tail -n 1)
like "planted: another answer fails" "$closing" "0 passed, 1 failed"
plan

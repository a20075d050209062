# PyTorch's gradients at ties, bounds, zeros, infinities and NaN (edge.py wrote them), by the eager tape.
. "$top_srcdir/tests/lib/tap.sh"
file=$top_srcdir/tests/torch/edges.jsonl.gz
out=$("$BP_CLI" golden --grad "$file" 2>&1)
closing=$(printf '%s\n' "$out" | tail -n 1)
is "no gradient differs from PyTorch" "$(printf '%s\n' "$out" | grep '^edges' | grep -v ' cases in ')" ""
like "none failed and none is unsupported" "$closing" ", 0 failed, 0 unsupported"
ok "at least 940 cases pass" test "${closing%% passed*}" -ge 940
gzip -dc "$file" | grep -m 1 '"name": "maximum"' | sed 's/"target": "aten.maximum/"target": "aten.fmax/' \
    | gzip >"$TMPDIR/planted.jsonl.gz"
closing=$("$BP_CLI" golden --grad "$TMPDIR/planted.jsonl.gz" 2>&1 | tail -n 1)
like "planted: a NaN that takes the gradient is found" "$closing" "0 passed, 1 failed"
plan

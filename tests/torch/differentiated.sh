# PyTorch's gradients of single operators (differentiate.py wrote them), by the eager tape; a changed one is found.
. "$top_srcdir/tests/lib/tap.sh"
file=$top_srcdir/tests/torch/differentiated.jsonl.gz
out=$("$BP_CLI" golden --grad --check-fake "$file" 2>&1)
closing=$(printf '%s\n' "$out" | tail -n 1)
is "no gradient differs from PyTorch" "$(printf '%s\n' "$out" | grep '^differentiated' | grep -v ' cases in ')" ""
like "none failed, on fakes neither, and none is unsupported" "$closing" ", 0 failed, 0 unsupported"
ok "at least 1,300 cases pass" test "${closing%% passed*}" -ge 1300
gzip -dc "$file" | grep -m 1 '"name": "aten.cos.default"' | sed 's/aten.cos.default"/aten.sin.default"/g' \
    | gzip >"$TMPDIR/planted.jsonl.gz"
closing=$("$BP_CLI" golden --grad "$TMPDIR/planted.jsonl.gz" 2>&1 | tail -n 1)
like "planted: the gradient of another operator is found" "$closing" "0 passed, 1 failed"
plan

# Shape rules of all recorded operator cases, with symbols for sizes: right at the recorded sizes and at others.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
"$BP_CLI" golden --check-symbolic "$top_srcdir/tests/golden/ops_handed.jsonl.gz" \
    "$top_srcdir/tests/torch/recorded.jsonl.gz" >said 2>told
closing=$(tail -n 1 said)
stay=$(sed -n 's/^numbers as arguments: sizes stay symbols in \([0-9]*\) cases.*/\1/p' said)
others=$(sed -n 's/^compared at \([0-9]*\) other sizes.*/\1/p' said)
is "no rule differs from what it says of numbers" "$(grep '^[a-z_]*[.]jsonl[.]gz:[0-9]' said)" ""
like "none failed" "$closing" ", 0 failed, "
ok "at least 11,100 cases pass" test "${closing%% passed*}" -ge 11100
ok "sizes stay symbols in at least 8,850 of them" test "$stay" -ge 8850
ok "at least 75,000 other sizes were compared" test "$others" -ge 75000
plan

# All recorded graphs with symbols for the sizes of their inputs.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
"$BP_CLI" golden --symbolic "$top_srcdir/tests/golden/graphs_handed.jsonl.gz" >said 2>told
is "types, texts and results are those of the static graphs" "$(tail -n 1 said)" "8879 passed, 0 failed, 0 unsupported"
kept=$(sed -n 's/ kept symbols in the sizes of results.*//p' said)
ok "at least 2,300 graphs keep symbols" test "$kept" -ge 2300
plan

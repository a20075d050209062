# Gradients of all recorded graphs, made ahead of time by both partitions.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
for kind in default min-cut; do
    "$BP_CLI" golden --grad --aot $kind "$top_srcdir/tests/golden/graphs_handed.jsonl.gz" >said 2>told
    is "every gradient is right by the partition $kind" "$(tail -n 1 said)" "1151 passed, 0 failed, 0 unsupported"
    is "7 functions run as they are" "$(sed -n 's/.*, \([0-9]*\) declined and ran eagerly/\1/p' said)" 7
    "$BP_CLI" golden --grad --aot $kind --symbolic "$top_srcdir/tests/golden/graphs_handed.jsonl.gz" >said 2>told
    is "so is it with symbols for sizes" "$(tail -n 1 said)" "1151 passed, 0 failed, 0 unsupported"
    is "954 are made with symbols" "$(sed -n 's/^\([0-9]*\) kept symbols.*/\1/p' said)" 954
done
"$BP_CLI" golden --aot best x >said 2>&1
like "another partition is refused" "$(cat said)" "default or min-cut"
plan

# tests/driver and tests/sum: each way in which a test program can go wrong is a failure that names the test.
. "$top_srcdir/tests/lib/tap.sh"

# run TEXT: what the driver records of a program with this shell text, on one line.
run() {
    printf '%s\n' "$1" >program.sh
    BP_TEST_TIMEOUT=1 sh "$top_srcdir/tests/driver" --test-name p --log-file p.log --trs-file p.trs -- ./program.sh >out
    tr '\n' ' ' <p.trs
}
cd "$TMPDIR" || exit 1

is "a program that passes" "$(run 'echo 1..1; echo "ok 1 - a"')" \
    ":test-result: PASS a :global-test-result: PASS :recheck: no :copy-in-global-log: no "
like "a failed function" \
    "$(run 'echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"; exit 1')" "PASS a *FAIL b :global-test-result: FAIL"
like "a program that dies" \
    "$(run 'echo 1..2; echo "ok 1 - a"; kill -SEGV $$')" "FAIL 1 of 2 tests did not report*after a"
like "a program that hangs" "$(run 'echo 1..2; echo "ok 1 - a"; sleep 9')" "FAIL hung (stopped after 1 s) after a"
like "a program without a plan" "$(run 'echo hello')" "FAIL printed no plan (exit status 0)"
like "a bad exit after passed tests" "$(run 'echo 1..1; echo "ok 1 - a"; exit 23')" "FAIL exit status 23"
like "a skipped function" "$(run 'echo 1..1; echo "not ok 1 # SKIP a"')" "SKIP a :global-test-result: SKIP"
like "the tester's variables stay out" \
    "$(BACKPLANE_LOGS=x run 'test -z "${BACKPLANE_LOGS-}" && echo 1..1 && echo "ok 1 - a"')" "PASS a"

sum() { sh "$top_srcdir/tests/sum" "$@" | tr '\n' ' '; }
printf ':test-result: PASS a\n:test-result: FAIL b\n' >one.trs
printf 'noise\n7 passed, 2 failed, 3 unsupported\n' >golden.txt
: >empty.trs
is "functions are counted, not programs" "$(sum one.trs)" "FAIL: one: b 1 passed, 1 failed "
is "runners are added up" "$(sum one.trs golden.txt)" \
    "FAIL: one: b FAIL: golden.txt: 7 passed, 2 failed, 3 unsupported 8 passed, 3 failed "
is "an empty result is a failure" "$(sum empty.trs)" "FAIL: empty: no test reported 0 passed, 1 failed "
is "a missing result is a failure" "$(sum none.trs)" "FAIL: none: no result 0 passed, 1 failed "
is "nothing passed is no success" "$(sh "$top_srcdir/tests/sum" >/dev/null; echo $?)" 1
plan

# F060: each rule of docs/capture.md is shown by test functions that bear its number, in programs of `make check`.
. "$top_srcdir/tests/lib/tap.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

table() { top_srcdir=$1 python3 "$top_srcdir/tests/check/rules.py" table; }
alone() { awk '/^C/ { if (rule && !n) print rule; rule = $1; n = 0 } /^    c/ { n++ } END { if (!n) print rule }'; }
nowhere() { # functions of a table that no source defines
    sed -n 's/^    \(c.*\)/\1/p' | sort -u >"$TMPDIR/named"
    find "$top_srcdir/tests" -name 'test_*.c' -exec cat {} + | sed -n 's/^static void \(c[0-9]_*[a-z0-9_]*\)(.*/\1/p
        s/^[A-Z]*(\(c[0-9][a-z0-9_]*\),.*/\1/p' | sort -u | comm -23 "$TMPDIR/named" -
}

told=$(table "$top_srcdir")
is F060_each_rule_is_in_the_table "$(printf '%s\n' "$told" | grep '^C')" "$(cat "$top_srcdir/tests/rules.def")"
is F060_each_rule_has_functions "$(printf '%s\n' "$told" | alone)" ""
is F060_each_function_is_there "$(printf '%s\n' "$told" | nowhere)" ""

mkdir -p "$TMPDIR/top/tests"
ln -s "$top_srcdir"/tests/* "$TMPDIR/top/tests"
rm "$TMPDIR/top/tests/rules.def"
{ cat "$top_srcdir/tests/rules.def"; echo "C9.9 nobody keeps this one"; } >"$TMPDIR/top/tests/rules.def"
is F060_a_rule_that_no_function_shows_is_seen "$(table "$TMPDIR/top" | alone)" C9.9
is F060_a_function_that_no_source_has_is_seen "$(echo "    c9_9_absent" | nowhere)" c9_9_absent
plan

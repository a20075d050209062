# F047: the example of custom operators: one made of operators, one that wraps a C function.
. "$top_srcdir/tests/lib/tap.sh"
BACKPLANE_SYSCONFDIR=$TMPDIR
export BACKPLANE_SYSCONFDIR
program=$top_builddir/sdk/examples/custom_ops
for backend in aot_eager eager; do
    told=$("$program" $backend 2>&1)
    is F047_compiled_on_$backend "$(printf '%s\n' "$told" | sed -n 1p)" "compiled: f32[2] [5.0, 13.0]"
    is F047_differentiated_on_$backend "$(printf '%s\n' "$told" | sed -n 2p)" \
        "gradient: f32[2] [1.2000000476837158, 0.7692307829856873]"
    is F047_eagerly_the_same_on_$backend "$(printf '%s\n' "$told" | sed -n 3p)" "eager: f32[2] [5.0, 13.0]"
done
is F047_both_pass_opcheck "$(printf '%s\n' "$told" | grep -c 'test_.*: SUCCESS$')" 8
plan

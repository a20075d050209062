# Texts with symbols, run at sizes of one's choice.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
cat >s.bpg <<'TEXT'
graph s {
  symbol s0 in [2, inf] hint 6
  symbol s1 in [2, 64] hint 3
  symbol u0 in [0, inf] unbacked
  fact Mod(s0, 2) == 0
  assert u0 >= 3
  %x: f32[s0, 2*s1] = placeholder "x" user
  %s1: Sym(s1) = placeholder "s1" symint
  %abs_1: f32[s0, 2*s1] = aten.abs.default(%x)
  %view: f32[2*s0*s1] = aten.view.default(%abs_1, [2*s0*s1])
  %nonzero: i64[u0, 1; 1, u0] = aten.nonzero.default(%view)
  output(%view, %nonzero, s0 + s1)
}
TEXT
run() { "$BP_CLI" run s.bpg "$@" 2>&1 | tr '\n' '~'; }
like "hints are the sizes" "$(run)" "view: f32\[36]~"
like "and sizes may be chosen" "$(run --size s0=4 --size s1=5)" "view: f32\[40]~"
like "numbers are results" "$(run --size s0=4 --size s1=5)" "output 2: i64\[]~9~"
like "a fact of the text that is broken is told" "$(run --size s0=5)" \
    'graph "s" is for sizes with Mod(s0, 2) == 0, which these inputs break'
like "as is a bound" "$(run --size s1=65)" 'the symbol "s1" of graph "s" is 65, expected one in \[2, 64]'
like "a symbol that is none" "$(run --size s7=5)" "the text has no symbol of that name"
like "a size that is none" "$(run --size s0=x)" "is not NAME=NUMBER"
"$BP_CLI" run s.bpg --size s0=2 --size s1=20 --save out >said 2>&1
printf 'graph x {\n  symbol s0 in [2, inf] hint 2\n  %%x: f32[s0] = placeholder "x" user\n  output(%%x)\n}\n' >x.bpg
like "files have any size that fits" "$("$BP_CLI" run x.bpg --input out0.npy 2>&1)" "x: f32\[80]"
sed -i 's/f32.s0/f32[s0, 4/' x.bpg
like "one that does not is told" "$("$BP_CLI" run x.bpg --input out0.npy 2>&1)" \
    'input "x" of graph "x" must have 2 dimensions'
like "who runs a node is told" "$("$BP_CLI" why s.bpg 2>&1)" "nonzero (aten.nonzero.default) -> eager"
plan

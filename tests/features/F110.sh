# F110: the core ATen overloads with PyTorch's schemas, and every overload that surveyed models use.
# F116: each operator's page is made from its row.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
here=$top_srcdir/tests/features

"$BP_CLI" operators --core --pages | sed -n 's/^  schema    //p' | LC_ALL=C sort >core
ok F110_the_core_overloads_have_their_schemas diff core "$here/core.txt"
is F110_there_are_193_of_them "$(wc -l <core | tr -d ' ')" 193
"$BP_CLI" operators | sed 's/ .*//' | LC_ALL=C sort >all
is F110_each_overload_of_surveyed_models_is_there "$(LC_ALL=C comm -13 all "$here/surveyed.txt")" ""
is F110_a_missing_one_would_be_named "$(echo aten.nothing.default | LC_ALL=C comm -13 all -)" aten.nothing.default

"$BP_CLI" operators --pages >pages
is F116_every_operator_has_a_page "$(grep -c '^[a-z_]' pages)" "$(wc -l <all | tr -d ' ')"
is F116_every_page_says_what_it_does "$(grep -A 1 '^[a-z_]' pages | grep -c '^  [^ ].*\.$')" "$(wc -l <all | tr -d ' ')"
is F116_every_page_has_its_schema "$(grep -c '^  schema    [a-z_]*::' pages)" "$(wc -l <all | tr -d ' ')"
sed -n 's/^  in C      \(bp_aten_[a-z0-9_]*\),.*/\1/p' pages | LC_ALL=C sort -u >functions
grep -o '\<bp_aten_[a-z0-9_]*(' "$top_builddir/sdk/include/backplane/aten.h" | tr -d '(' | LC_ALL=C sort -u >declared
is F116_every_function_is_declared "$(LC_ALL=C comm -23 functions declared)" ""
page=$("$BP_CLI" operators aten.add_.Tensor 2>&1)
like F116_a_page_says_what_is_written "$page" "writes    the result of aten.add.Tensor into its first argument"
like F116_a_name_means_all_its_overloads "$("$BP_CLI" operators relu | tr '\n' '~')" "aten.relu.out~  Writes relu"
like F116_an_unknown_name_names_the_nearest "$("$BP_CLI" operators aten.add.Tensr 2>&1)" \
    'no operator "aten.add.Tensr", did you mean "aten.add.Tensor"?'
plan

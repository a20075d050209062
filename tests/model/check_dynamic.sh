# The same programs with sizes that change, and control flow in the graph: each call gives what eager gives.
exec "$top_builddir/tests/model/harness" --dynamic "$top_srcdir/tests/model/programs.txt.gz"

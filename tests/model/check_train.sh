# The same programs with arguments that require grad: backward behind each call gives what eager's gives.
exec "$top_builddir/tests/model/harness" --train "$top_srcdir/tests/model/programs.txt.gz"

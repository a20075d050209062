# The random programs of programs.txt.gz, with what the model says of each: through the host, through eager, compared.
exec "$top_builddir/tests/model/harness" "$top_srcdir/tests/model/programs.txt.gz"

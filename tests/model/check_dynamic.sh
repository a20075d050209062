#!/bin/sh
# The programs with sizes that change and control flow in the graph, against eager.
exec "$top_builddir/tests/model/harness" --dynamic "$top_srcdir/tests/model/programs.txt.gz"

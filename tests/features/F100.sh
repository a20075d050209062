# F100: plain C, and C++ through backplane.hpp, against the shared library.
. "$top_srcdir/tests/lib/tap.sh"
BACKPLANE_SYSCONFDIR=$TMPDIR
export BACKPLANE_SYSCONFDIR
answers="6 3 6 3 graphs 3"
is F100_a_plain_C_program_is_captured_and_compiled "$("$top_builddir/tests/features/hello" 2>&1)" "$answers"
told=$("$top_builddir/tests/features/hello_cxx" 2>&1)
is F100_so_is_a_Cxx_program "$(printf '%s\n' "$told" | head -n 1)" "$answers"
like F100_its_exceptions_become_errors "$told" "thrown on purpose"
plan

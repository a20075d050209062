# F026: the command tells each backend's state and reason, and which backend runs which node.
. "$top_srcdir/tests/lib/tap.sh"
BACKPLANE_SYSCONFDIR=$TMPDIR/etc BACKPLANE_CACHE_DIR=$TMPDIR/cache
export BACKPLANE_SYSCONFDIR BACKPLANE_CACHE_DIR
mkdir -p "$BACKPLANE_SYSCONFDIR"
cat >"$BACKPLANE_SYSCONFDIR/backplane.ini" <<END
[host]
probe_helper = $top_builddir/backplane-probe
[backend good]
library = $top_builddir/.libs/backplane-debug.so
[backend absent]
library = absent.so
[backend crashing]
library = $top_builddir/tests/fail/plugins/constructor_crash.so
[backend declining]
library = $top_builddir/tests/fail/plugins/declines.so
[backend chain]
library = $top_builddir/.libs/backplane-compose.so
opt.chain = absent, crashing, declining, eager
END
state() { printf '%s\n' "$1" | sed -n "s/^$2  *//p"; }

listed=$("$BP_CLI" backends 2>&1)
is F026_listing_loads_nothing "$(state "$listed" good), $(state "$listed" crashing)" "not-loaded, not-loaded"
probed=$("$BP_CLI" backends --probe 2>&1)
is F026_probing_shows_the_state_of_each "$(state "$probed" good)" ok
like F026_a_missing_one_says_where_it_was_looked_for "$(state "$probed" absent)" \
    "missing*etc/absent.so: no such file*backplane.ini:6"
like F026_a_crashing_one_says_how "$(state "$probed" crashing)" "crashed*constructors crashed in a probe*SIGABRT"

told=$("$BP_CLI" doctor good 2>&1)
like F026_doctor_tells_origin_and_library "$told" "good: ok*from*backplane.ini:3*library*backplane-debug.so"
like F026_doctor_tells_what_it_says_of_itself "$("$BP_CLI" doctor chain 2>&1)" \
    "graphs   captured, whole or not at all*threads  several compile at *option   chain = *string: backends in order"
told=$("$BP_CLI" doctor crashing 2>&1)
is F026_doctor_fails_for_one_that_is_not_usable $? 1
like F026_doctor_tells_how_to_try_again "$told" "crashed*doctor --forget"
like F026_doctor_forgets_probes "$("$BP_CLI" doctor good --forget 2>&1)" "forgotten: 4 verdicts of probes"
told=$("$BP_CLI" doctor 2>&1)
like F026_doctor_names_the_origin_of_each_key "$told" \
    "[[]backend chain] opt.chain = absent, crashing, declining, eager  (*backplane.ini:13)"
like F026_doctor_suggests_near_names "$("$BP_CLI" doctor goood 2>&1)" "did you mean \"good\"?"

why=$("$BP_CLI" why cos_sin --backend chain 2>/dev/null)
like F026_why_names_node_backend_and_reason "$why" "cos (aten.cos.default) -> eager -> *"
like F026_why_has_a_reason_of_each_link "$why" \
    "absent: missing: *crashing: crashed: *declining: node \"y\": no pooling in 3 dimensions"
plan

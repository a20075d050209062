# TAP for shell tests: is, like and ok report one test each; `plan` at the end prints how many there were.
tap_n=0
tap_report() { # STATUS NAME
    tap_n=$((tap_n + 1))
    if [ "$1" = 0 ]; then echo "ok $tap_n - $2"; else echo "not ok $tap_n - $2"; fi
    }
is() { # NAME GOT EXPECTED
    if [ "$2" = "$3" ]; then tap_report 0 "$1"; return; fi
    tap_report 1 "$1"
    echo "# got:      $2"
    echo "# expected: $3"
}
like() { # NAME GOT GLOB: the glob may match anywhere
    case $2 in *$3*) tap_report 0 "$1"; return ;; esac
    tap_report 1 "$1"
    echo "# got: $2"
    echo "# which does not have: $3"
}
ok() { # NAME COMMAND...: passes when the command does; its output is shown when not
    tap_name=$1
    shift
    if tap_out=$("$@" 2>&1); then tap_report 0 "$tap_name"; return; fi
    tap_report 1 "$tap_name"
    printf '%s\n' "$tap_out" | tail -n 30 | sed 's/^/# /'
}
plan() { echo "1..$tap_n"; }

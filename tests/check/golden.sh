# tests/golden/run: what it says of a runner that fails, dies, does less than before or exits badly; and the command on
# a backend that is not there, and on a file that unpacks without end.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
printf '# floors\ncases.jsonl.gz eager 10\n' >floors

# run OUTPUT STATUS: how a command that prints this and exits so is judged.
run() {
    printf '#!/bin/sh\nprintf "%%s\\n" "%s"\nexit %s\n' "$1" "$2" >command
    chmod +x command
    sh "$top_srcdir/tests/golden/run" ./command . . | tr '\n' ' '
    cat golden-cases-eager.txt >last
}
is "cases that pass" "$(run '12 passed, 0 failed, 3 unsupported' 0)" \
    "golden cases.jsonl.gz on eager: 12 passed, 0 failed, 3 unsupported "
is "a case that fails" "$(run '12 passed, 2 failed, 3 unsupported' 1)" \
    "golden cases.jsonl.gz on eager: 12 passed, 2 failed, 3 unsupported "
is "fewer than before" "$(run '9 passed, 0 failed, 6 unsupported' 0)" \
    "golden cases.jsonl.gz on eager: 9 passed, 1 failed "
is "no count" "$(run 'Segmentation fault' 139)" "golden cases.jsonl.gz on eager: 0 passed, 1 failed "
is "a bad exit" "$(run '12 passed, 0 failed, 0 unsupported' 7)" "golden cases.jsonl.gz on eager: 12 passed, 1 failed "
run '12 passed, 0 failed, 0 unsupported' 7 >/dev/null
is "the sum reads the verdict" "$(sh "$top_srcdir/tests/sum" golden-cases-eager.txt | tail -n 1)" "12 passed, 1 failed"
printf '#!/bin/sh\necho 12 passed, 0 failed, 0 unsupported\n' >command
ok "success is an exit of 0" sh "$top_srcdir/tests/golden/run" ./command . .
printf '#!/bin/sh\necho 12 passed, 1 failed, 0 unsupported\n' >command
is "failure is not" "$(sh "$top_srcdir/tests/golden/run" ./command . . >/dev/null; echo $?)" 1
small=$top_srcdir/tests/golden/small.jsonl.gz
"$BP_CLI" golden --backend nowhere "$small" >said 2>&1
is "a backend that is not there is told once" "$(grep -c 'invalid backend "nowhere"' said)" 1
like "and no case is counted" "$(grep -c passed said)" 0
head -c 80000000 /dev/zero | tr '\0' x | gzip -1 >bomb.jsonl.gz
like "a line without end is refused" \
    "$( (ulimit -v 2000000; "$BP_CLI" golden bomb.jsonl.gz 2>&1) )" "is over 64 MiB long"
plan

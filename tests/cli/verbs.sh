# The command: verbs, options, exit codes, and what each verb prints.
. "$top_srcdir/tests/lib/tap.sh"
cd "$TMPDIR" || exit 1
cat >g.bpg <<'TEXT'
graph g {
  %a: f32[3, 4] = placeholder "a" user
  %w: f32[4] = placeholder "fc.weight" parameter
  %cos: f32[3, 4] = aten.cos.default(%a)
  %mul = aten.mul.Tensor(%cos, %w)
  %relu = aten.relu.default(%mul)
  output(%relu, None)
}
TEXT

# said ARG...: both outputs of the command in one line, then its exit status.
said() {
    text=$("$BP_CLI" "$@" 2>&1 | tr '\n' '~')
    "$BP_CLI" "$@" >/dev/null 2>&1
    echo "$text exit $?"
}

# -- the command itself
like "no verb is a mistake" "$(said)" "exit 2"
like "help lists the verbs" "$(said --help)" "  golden "
like "help is no failure" "$(said --help)" "exit 0"
like "the version" "$(said --version)" "backplane 0."
like "an unknown verb names the nearest" "$(said golen)" 'backplane: unknown verb "golen"; did you mean "golden"?'
like "an unknown verb is a mistake" "$(said golen)" "exit 2"
like "an unknown option names the nearest" "$(said run g.bpg --sed 1)" 'unknown option "--sed", did you mean "--seed"?'
like "an option without its value" "$(said run g.bpg --seed)" '"--seed" needs N'
like "a switch with a value" "$(said backends --all=1)" '"--all" takes no value'
like "a number that is none" "$(said run g.bpg --seed=1x)" 'wants a whole number, got "1x"'
verbs=$("$BP_CLI" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for verb in $verbs; do
    like "$verb has help" "$(said "$verb" --help)" "usage: backplane $verb"
    ok "$verb is in the manual" grep -q "^\.SS $verb " "$top_srcdir/docs/backplane.1"
done

# -- run
like "run prints outputs by name" "$(said run g.bpg)" "relu: f32\[3, 4]~\[\["
like "run prints absent outputs" "$(said run g.bpg)" "output 1: None~ exit 0"
is "the same seed gives the same numbers" "$(said run g.bpg --seed 7)" "$(said run g.bpg --seed 7)"
ok "another seed gives others" test "$(said run g.bpg --seed 7)" != "$(said run g.bpg --seed 8)"
is "backends agree" "$(said run g.bpg --backend eager)" "$(said run g.bpg --backend fallback)"
like "run prints the graph" "$(said run g.bpg --print)" "placeholder    w       fc.weight"
"$BP_CLI" run g.bpg --save out >saved || exit 1
ok "run saves outputs" test -s out0.npy
printf 'graph same {\n  %%a: f32[3, 4] = placeholder "a" user\n  output(%%a)\n}\n' >same.bpg
is "run reads inputs" "$("$BP_CLI" run same.bpg --input out0.npy | sed 's/^a: /relu: /')" "$(sed '$d' saved)"
like "the number of inputs must be right" "$(said run g.bpg --input out0.npy)" \
    "it has 2 inputs, and --input was given 1 times"
like "inputs must be as declared" "$(said run g.bpg --input out0.npy --input out0.npy)" \
    'input 1 is f32\[3, 4], and "fc.weight" is f32\[4]'
like "a file that is not there" "$(said run gone.bpg)" 'cannot open "gone.bpg"'
like "a text that is wrong" "$(sed 's/relu.def/rleu.def/' g.bpg >bad.bpg; said run bad.bpg)" \
    'bad.bpg:6:11: unknown operator'
like "which is a failure, no misuse" "$(said run bad.bpg)" "exit 1"
like "a text that lies about a type" "$(sed 's/%cos: f32.3, 4/%cos: f32[4, 3/' g.bpg >lie.bpg; said run lie.bpg)" \
    '"cos" is declared as f32\[4, 3], and its operator gives f32\[3, 4]'
like "an input that does not fit names its file" "$(said run g.bpg --input out0.npy --input out0.npy)" \
    '(file "out0.npy")'
like "a text has no weights" "$(said run g.bpg --weights out0.npy)" \
    "weights is for examples*give each by --input*exit 2"
like "a folder that is not there is named" "$(said run g.bpg --save /nosuch/x)" \
    'cannot create "/nosuch/x0.npy": *exit 1'
like "no call tells nothing" "$(said why toy_example --calls 0)" '"--calls" is 0: *exit 2'
printf '[host]\ndefault = nosuch\n' >default.ini
like "a default that is unknown names its line" \
    "$(BACKPLANE_CONFIG=default.ini said run g.bpg)" 'invalid backend "nosuch"*default.ini:2'
cat >huge.bpg <<'TEXT'
graph huge {
  %full: f32[1000000000000] = aten.full.default([1000000000000], 1.0)
  %sum_1: f32[] = aten.sum.default(%full)
  output(%sum_1)
}
TEXT
may_fail=allocator_may_return_null=1 # what sanitizers else take for an error
like "memory that is not there names node and line" \
    "$(ASAN_OPTIONS=$may_fail:$ASAN_OPTIONS TSAN_OPTIONS=$may_fail:$TSAN_OPTIONS said run huge.bpg)" \
    'out of memory*huge.bpg:2*running "full" of graph "huge"'
like "an unknown backend" "$(said run g.bpg --backend eagre)" 'invalid backend "eagre"'
like "an example" "$(said run cos_sin)" "output 0: f32\[10]~\["
like "an example shows its graphs" "$(said run toy_example --print)" "__resume_at_"
like "a near example is named" "$(said run toy_exampel)" 'did you mean "toy_example"?'
like "an example with weights" "$(said run digits --weights "$top_srcdir/tests/models/digits/weights.safetensors")" \
    "output 0: f32\[1, 10]"
like "an example that lacks them" "$(said run digits)" "exit 1"

# -- why, explain
like "why names node, backend and reason of a text" "$(said why g.bpg --backend eager)" \
    "mul (aten.mul.Tensor) -> eager -> "
like "why does so of an example" "$(said why relu_cos --backend eager)" "relu (aten.relu.default) -> eager -> "
like "explain counts graphs" "$(said explain toy_example --calls 100 --backend eager)" \
    "graphs: 3, break sites: 1, outcomes: 2"
like "a text cannot be explained" "$(said explain g.bpg)" "exit 2"

# -- backends, doctor
like "backends hides debug ones" "$(said backends | tr '~' '\n' | grep -c debug)" 0
like "backends --all shows them" "$(said backends --all)" "debug-print"
like "backends --probe loads them" "$(said backends --probe)" "fallback    ok"
like "doctor names each key's origin" "$(said doctor)" "\[host] default = fallback  ("
like "doctor examines one" "$(said doctor eager)" "eager: built-in~  from     the host itself~*exit 0"
printf '[backend gone]\nlibrary = gone.so\n' >gone.ini
export BACKPLANE_CONFIG="$TMPDIR/gone.ini"
like "doctor says what is wrong" "$(said doctor gone)" "gone: missing"
like "a backend that cannot be used is a failure" "$(said doctor gone)" "exit 1"
like "backends --probe shows it, and goes on" "$(said backends --probe)" "gone        missing"
printf '[host]\ndefualt = eager\n' >gone.ini
like "a config that is wrong" "$(said doctor)" 'gone.ini:2: '
like "is a failure" "$(said doctor)" "exit 1"
unset BACKPLANE_CONFIG

# -- golden
like "golden counts" "$(said golden --op aten.relu. "$top_srcdir/tests/golden/small.jsonl.gz")" " passed, 0 failed, "
like "a file that is not there" "$(said golden gone.jsonl)" 'golden file "gone.jsonl" cannot be read: No such file'
like "no file is a mistake" "$(said golden)" "exit 2"
gzip -dc "$top_srcdir/tests/golden/small.jsonl.gz" | grep '"aten.bitwise_not.default"' | head -n 1 |
    sed 's/"out": {"tensor": {"dtype": "[a-z0-9]*"/"out": {"tensor": {"dtype": "float64"/' >wrong.jsonl
like "a wrong answer fails" "$(said golden wrong.jsonl)" "0 passed, 1 failed, 0 unsupported~ exit 1"
plan

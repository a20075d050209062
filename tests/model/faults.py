"""Wrong readings of the rules, planted in the host one at a time: each must fail the test that names its rule.

usage: faults.py OBJECTS OF TEST_HOLES -- OBJECTS OF TEST_STEPS -- COMPILER AND FLAGS -- LINKER AND FLAGS -- LIBRARIES
                 -- OBJECTS OF THE HARNESS

A fault is a file of the host with one text replaced. It is compiled and linked in front of the host's library; then
tests/model/test_holes must fail in the function that is named, and in an unchanged build must not. The environment is
that of every test (top_srcdir, top_builddir, TMPDIR). Prints TAP. Faults of training must fail in `harness --train`.
"""
import os
import subprocess
import sys

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

# (reading, file, text, what it becomes, test that fails, and more pairs of texts)
FINAL = ("host/compile/call.c", "    if (s == STEP_EAGER && (k.steps.len ||",
         "    if (s == STEP_EAGER && k.steps.len)\n        ctx_fail(c, BP_INTERNAL, \"final\"), s = STEP_FAILED;\n"
         "    if (s == STEP_EAGER && (k.steps.len ||")
FAULTS = [
    ("epilogue: it writes as it reads", "host/compile/commit.c", "if (share_memory(", "if (0 && share_memory(",
     "the_epilogue_reads_before_it_writes"),
    ("lists: a list belongs to the tree node", "host/compile/supply.c",
     "buf_add(&text, (const char *)&n->ambient, sizeof n->ambient);", "buf_printf(&text, \"%u\", n->first_item);",
     "a_list_belongs_to_the_canonical_graph"),
    ("baked: offsets count from the call's start", "host/compile/run.c", "k->rng_base + n->rng_start", "k->rng_base",
     "random_numbers_count_from_the_segment_s_start"),
    ("error: no leaf", "host/compile/graft.c", "(t->why == TRACE_AT_BREAK ||",
     "(t->why == TRACE_FAILED || t->why == TRACE_AT_BREAK ||", "an_error_by_metadata_grafts_a_leaf"),
    ("leaf: a bad index opens its break", "host/compile/graft.c", "if (t->why == TRACE_OPEN)",
     "if (t->why == TRACE_OPEN || t->why == TRACE_AT_BREAK)", "an_error_by_data_grafts_no_leaf"),
    ("blame: a bad index retires the link", "host/backend/program_run.c",
     "    TRY(run_program(c, rest, io));\n    blame(", "    first = run_program(c, rest, io);\n    blame(",
     "a_bad_index_blames_no_link",
     "return st == BP_OK || st == BP_OUT_OF_RANGE ||", "return st == BP_OK ||",
     "rest);\n    return BP_OK;\n}\n\nstatic bp_status check_f",
     "rest);\n    return first;\n}\n\nstatic bp_status check_f"),
    ("dead: what may fail on data is dropped", "host/compile/build.c", "(OP_MAY_FAIL_ON_DATA | OP_RANDOM)", "OP_RANDOM",
     "what_may_fail_on_data_is_never_dead"),
    ("kept: a guess that nobody confirmed counts", "host/compile/walk.c",
     "    for (uint32_t i = k->next_fresh; i < k->fresh.len; i++)\n        node_destroy(k->fresh.at[i]);\n"
     "    k->fresh.len = k->next_fresh;",
     "    place *p = node_add_place(k->epochs, n, k->guesses.at[k->next_fresh - 1]);\n"
     "    place_add(k->epochs, p, k->fresh.at[k->next_fresh]);\n    k->fresh.len = k->next_fresh;",
     "a_guess_that_nobody_confirmed_does_not_count"),
    ("share: a value is an output as it is", "host/compile/commit.c",
     "    if (whole)\n        t = m->is_last ? bind_take(&m->k->vals, o->value) : tensor_ref(v);",
     "    t = whole ? tensor_ref(v) : tensor_ref(v);", "an_output_is_no_argument_s_memory"),
    ("grown: a list that cannot grow is an error", "host/compile/run.c",
     "KEY_ACCUMULATED_RECOMPILE_LIMIT))\n        return STEP_OK;",
     "KEY_ACCUMULATED_RECOMPILE_LIMIT))\n        return call_eager(k, \"%s\", \"limit\");",
     "a_list_that_cannot_grow_leaves_the_old_code"),
    ("open: no outcome of an open break matches", "host/compile/walk.c", "at = node_place(n, out);",
     "at = atomic_load(&n->open) ? NULL : node_place(n, out);", "known_outcomes_of_an_open_break_still_match"),
    ("told: what was asked is computed again", "host/compile/supply.c",
     "        if (s->asked[it->node.first + j])\n            return false;", "        (void)0;",
     "what_was_asked_is_handed_on"),
    ("modes: a segment serves under any modes", "host/compile/build.c",
     "buf_add(&text, (const char *)&b->n->ambient, sizeof b->n->ambient);", "(void)0;",
     "modes_are_part_of_a_segment_s_key"),
    ("escaped: only arguments are written back", "host/capture/finish.c", "if (fs->source < 0 || !fs->written ||",
     "if (fs->source < 0 || (uint32_t)fs->source >= t->r->vals->nargs || !fs->written ||",
     "what_a_disabled_function_has_seen_is_committed"),
    ("rng: the generator is read once a call", "host/compile/step.c", "k->rng_base = k->c->rng_offset;",
     "k->rng_base += n->term->end.rng_total;", "the_generator_is_read_again_behind_a_step"),
    ("handon: a step hands on what it is given", "host/capture/finish.c", "if (!is_made(fs) || !fs->lives)",
     "if (!is_made(fs) || !fs->lives || state->end.nouts)", "nothing_is_recomputed_across_a_commit"),
    ("final: a run that fails behind a commit is final", *FINAL, "a_run_that_fails_behind_a_commit_goes_on_there"),
    ("final: what fails behind a commit is final", *FINAL, "a_failure_behind_a_commit_goes_on_there"),
]


# (reading, file, text, what it becomes): programs that train find them
TRAINED = [
    ("history: a write to a view is not its base's", "host/grad/share.c",
     "    tape_set_node(c, to->base, w->node, 0);\n", "    (void)c;\n"),
    ("history: a replay sees what a commit gave", "host/capture/sources.c",
     "tensor_grad_flags(trace_layout_of(t, real))", "tensor_grad_flags(real)"),
    ("saved: an input that the call writes is no copy", "host/compile/aot_run.c",
     "bool copied = is_written(io, written, values[i]);", "bool copied = 0 && is_written(io, written, values[i]);"),
    ("gradients: that of the first result alone flows", "host/compile/aot_run.c",
     "TRY(fit_tangent(c, a, i, grads[i], &in", "TRY(fit_tangent(c, a, i, i ? NULL : grads[i], &in"),
]


def failed(program):
    """Names of the test functions that fail; None: it does not run to its end."""
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    got = subprocess.run([program], capture_output=True, text=True, env=env, timeout=120, check=False)
    lines = got.stdout.split("\n")
    if not any(line.startswith("1..") for line in lines): return None
    return {line.split(" - ", 1)[1] for line in lines if line.startswith("not ok")}


def plant(fault, objects, compiler, linker, libraries, folder):
    """Builds the test with the fault in it. Returns its path, or what is wrong."""
    file, pairs = fault[1], [*fault[2:4], *fault[5:]]
    with open(os.path.join(top, file), encoding="utf-8") as f: text = f.read()
    for old, new in zip(pairs[::2], pairs[1::2]):
        if text.count(old) != 1: return None, f"{file} has this {text.count(old)} times, so nothing is planted: {old}"
        text = text.replace(old, new)
    source, program = os.path.join(folder, os.path.basename(file)), os.path.join(folder, "test")
    with open(source, "w", encoding="utf-8") as f: f.write(text)
    for command in ([*compiler, "-c", source, "-o", source + ".o"],
                    [*linker, "-o", program, source + ".o", *objects, *libraries]):
        got = subprocess.run(command, capture_output=True, text=True, cwd=build, check=False)
        if got.returncode: return None, got.stderr[-2000:]
    return program, None


def main():
    words = " ".join(sys.argv[1:]).split(" -- ")
    parts = [w.split() for w in words]
    folder = os.environ.get("TMPDIR", "/tmp")
    holes, steps, compiler, linker, libraries, harness = parts
    commands = (compiler, linker, libraries)
    sound = set()
    for program in ("test_holes", "test_steps"):
        bad = failed(os.path.join(build, "tests/model", program))
        report(bad is not None, f"{program} runs")
        sound |= bad or set()
    with open(os.path.join(top, "tests/model/test_steps.c"), encoding="utf-8") as f: text_of_steps = f.read()
    for fault in FAULTS:
        name, test = fault[0], fault[4]
        program, why = plant(fault, steps if test in text_of_steps else holes, *commands, folder)
        bad = failed(program) if program else set()
        report(why is None and test not in sound and (bad is None or test in bad), name,
               [why] if why else [f"{test} fails unplanted: {test in sound}; planted, these fail: {bad}"])
    texts = os.path.join(top, "tests/model/programs.txt.gz")
    for fault in TRAINED:
        program, why = plant(fault, harness, *commands, folder)
        got = program and subprocess.run([program, "--train", texts], capture_output=True, timeout=300, check=False)
        report(why is None and got.returncode != 0, fault[0], [why or "no program fails"])
    plan()


main()

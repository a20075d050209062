/* Random programs of shapes with symbols against runs on numbers.
 *
 * Of each program: what the symbols say is right at the hints; it is right, without an error, at other sizes for which
 * the guards hold (they suffice); and at sizes that violate a guard, but none before it, the program fails or decides
 * otherwise: its guards there exclude the first sizes (the guard is needed). BP_SHAPE_PROGRAMS says how many; the seeds
 * are 1, 2, 3 ... */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "tests/unit/op/programs.h"
#include <backplane/backplane.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { OTHERS = 3, NO_FACT = -1 };

typedef struct { uint64_t programs, steps, others, guards, needed, unmet; } figures;

/* A fault that is planted in the check, to be found: one guard is forgotten, or slices end early. */
typedef struct { int64_t forget; bool bend; } fault;

static void fail_program(const program *p, const symbolic *s, const int64_t *values, uint64_t seed, const char *what,
                         buf *why)
{
    buf_printf(why, "program %" PRIu64 ": %s\n", seed, what);
    program_print(p, why);
    buf_puts(why, "  at ");
    symbolic_print(s, values, why);
    for (uint32_t i = 0; i < sym_fact_count(s->e); i++) {
        buf_puts(why, "\n  guard ");
        sym_print(s->e, sym_fact_at(s->e, i)->holds, false, why);
    }
    buf_putc(why, '\n');
}

static bool dims_agree(const symbolic *s, uint32_t n, const bp_dim *a, const bp_dim *b, const int64_t *values)
{
    int64_t v;
    for (uint32_t d = 0; d < n; d++)
        if (!symbolic_at(s, a[d], values, &v) || v != b[d].value)
            return false;
    return true;
}

static bool tensors_agree(const symbolic *s, const bp_tensor *a, const bp_tensor *b, const int64_t *values)
{
    return a->rank == b->rank && a->dtype == b->dtype && dims_agree(s, a->rank, a->sizes, b->sizes, values) &&
           dims_agree(s, a->rank, a->strides, b->strides, values) && dims_agree(s, 1, &a->offset, &b->offset, values);
}

/* Runs on numbers, and compares with what the symbols said. */
static bool agrees_at(const symbolic *s, const program *p, const run *sym, const int64_t *values, bool bend, buf *why)
{
    symbolic numbers = {.c = s->c};
    run r;
    bool ok = program_run(&numbers, p, values, bend, &r) == BP_OK && r.n == sym->n;
    if (!ok)
        buf_printf(why, "step %u fails on numbers: %s\n", r.n - p->nin, s->c->diag.message);
    for (uint32_t i = 0; ok && i < r.n; i++) {
        char a[200], b[200];
        ok = tensors_agree(s, sym->t[i], r.t[i], values);
        sym_scope former = sym_push(s->e, s->c);
        if (!ok)
            buf_printf(why, "t%u is %s by symbols, and %s, or they differ in strides\n", i,
                       tensor_describe(sym->t[i], a, sizeof a), tensor_describe(r.t[i], b, sizeof b));
        sym_pop(former);
    }
    diag_clear(&s->c->diag);
    run_fini(&r);
    return ok;
}

/* -- whether guards suffice ---------------------------------------------------------------------------------------- */

static bool fact_holds(const symbolic *s, uint32_t i, const int64_t *values)
{
    int64_t holds = 0;
    return symbolic_at(s, sym_fact_at(s->e, i)->holds, values, &holds) && holds;
}

static void draw(symbolic *s, const program *p, int64_t *values)
{
    for (uint32_t k = 0; k < p->nsymbols; k++)
        values[k] = symbolic_random(s, 3) ? 2 + (int64_t)symbolic_random(s, 8) : p->hints[k];
}

/* Sizes for which all facts hold but those from `upto` on and, if not NO_FACT, `forget`. */
static bool find(symbolic *s, const program *p, uint32_t upto, int64_t forget, int64_t *values)
{
    for (int tries = 0; tries < 150; tries++) {
        draw(s, p, values);
        bool ok = true;
        for (uint32_t i = 0; ok && i < upto; i++)
            ok = i == forget || fact_holds(s, i, values);
        if (ok)
            return true;
    }
    return false;
}

static bool check_enough(symbolic *s, const program *p, const run *sym, fault f, figures *n, buf *why, int64_t *values)
{
    for (uint32_t i = 0; i < OTHERS; i++) {
        bool found = symbolic_other(s, values) && f.forget == NO_FACT;
        if (!found && !find(s, p, sym_fact_count(s->e), f.forget, values))
            return true;
        n->others++;
        if (!agrees_at(s, p, sym, values, f.bend, why))
            return false;
    }
    return true;
}

/* -- whether a guard is needed ------------------------------------------------------------------------------------- */

/* Sizes for which the facts before `i` hold, and that one does not. */
static bool find_violation(symbolic *s, const program *p, uint32_t i, int64_t *values)
{
    for (int tries = 0; tries < 300; tries++) {
        draw(s, p, values);
        bool ok = !fact_holds(s, i, values);
        for (uint32_t k = 0; ok && k < i; k++)
            ok = fact_holds(s, k, values);
        if (ok)
            return true;
    }
    return false;
}

/* With these hints, which violate a guard of s: an error, or guards that the hints of p violate. If those held there
 * too, one program would be right for both, and the violated guard be needless. */
static bool decides_otherwise(const symbolic *s, const program *p, const int64_t *values)
{
    symbolic fresh;
    run r;
    assert_true(program_symbols(s->c, p, values, &fresh));
    bool failed = program_run(&fresh, p, values, false, &r) != BP_OK;
    bool other = !symbolic_holds(&fresh, p->hints);
    diag_clear(&s->c->diag);
    run_fini(&r);
    symbolic_end(&fresh);
    return failed || other;
}

static bool check_needed(symbolic *s, const program *p, figures *n, buf *why, int64_t *values)
{
    for (uint32_t i = 0; i < sym_fact_count(s->e); i++) {
        n->guards++;
        if (!find_violation(s, p, i, values)) {
            n->unmet++;
            continue;
        }
        n->needed++;
        if (!decides_otherwise(s, p, values)) {
            buf_printf(why, "guard %u is not needed\n", i);
            return false;
        }
    }
    return true;
}

/* -- programs ------------------------------------------------------------------------------------------------------ */

static bool check_program(bp_ctx *c, uint64_t seed, fault f, figures *n, buf *why)
{
    program p;
    symbolic s;
    run sym;
    int64_t values[PROGRAM_SYMBOLS];
    program_make(c, seed, &p);
    assert_true(program_symbols(c, &p, p.hints, &s));
    s.random = seed << 8 | 1;
    memcpy(values, p.hints, sizeof values);
    bool ok = program_run(&s, &p, p.hints, false, &sym) == BP_OK;
    if (!ok)
        buf_printf(why, "step %u fails on symbols: %s\n", sym.n - p.nin, c->diag.message);
    diag_clear(&c->diag);
    n->programs++;
    n->steps += p.n;
    ok = ok && agrees_at(&s, &p, &sym, p.hints, f.bend, why) && check_enough(&s, &p, &sym, f, n, why, values) &&
         check_needed(&s, &p, n, why, values);
    if (!ok)
        fail_program(&p, &s, values, seed, "symbols and numbers differ", why);
    run_fini(&sym);
    symbolic_end(&s);
    return ok;
}

static uint64_t wanted(void)
{
    const char *text = getenv("BP_SHAPE_PROGRAMS");
    return text ? strtoull(text, NULL, 10) : 400;
}

static void show(const figures *n, uint64_t all)
{
    if (isatty(STDERR_FILENO) && (n->programs % 50 == 0 || n->programs == all))
        fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " programs%s", n->programs, all, n->programs == all ? "\n" : "");
}

static void guards_of_random_programs_suffice_and_are_needed(void **state)
{
    bp_ctx *c = bp_ctx_new(NULL);
    figures n = {0};
    uint64_t failed = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= wanted(); seed++) {
        buf why = {0};
        if (!check_program(c, seed, (fault){.forget = NO_FACT}, &n, &why) && failed++ < 5)
            print_message("%s", buf_text(&why));
        buf_fini(&why);
        show(&n, wanted());
    }
    print_message("%" PRIu64 " programs of %" PRIu64 " steps, %" PRIu64 " failed; at %" PRIu64 " other sizes\n",
                  n.programs, n.steps, failed, n.others);
    print_message("%" PRIu64 " guards: %" PRIu64 " shown to be needed, %" PRIu64 " that no sizes tried violate\n",
                  n.guards, n.needed, n.unmet);
    bp_ctx_destroy(c);
    assert_int_equal(failed, 0);
    assert_true(n.others > n.programs && n.needed > n.programs / 2);
}

/* How many of the first programs show a planted fault. */
static uint64_t found(fault f)
{
    bp_ctx *c = bp_ctx_new(NULL);
    figures n = {0};
    uint64_t wrong = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        buf why = {0};
        wrong += !check_program(c, seed, f, &n, &why);
        buf_fini(&why);
    }
    bp_ctx_destroy(c);
    return wrong;
}

static void a_guard_that_is_forgotten_is_found(void **state)
{
    (void)state;
    assert_true(found((fault){.forget = 0}) > 5);
}

static void a_slice_that_ends_early_is_found(void **state)
{
    (void)state;
    assert_true(found((fault){.forget = NO_FACT, .bend = true}) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guards_of_random_programs_suffice_and_are_needed),
        cmocka_unit_test(a_guard_that_is_forgotten_is_found),
        cmocka_unit_test(a_slice_that_ends_early_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

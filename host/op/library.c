/* The registry of custom operators: libraries, what they define, and what is registered for it.
 *
 * Everything is under one lock. Rows and their names are in an arena of the process; registrations die with their
 * library. The newest registration of a kind counts, so that what an override replaced counts again when it goes. */
#include "host/op/library.h"
#include "host/op/custom_schema.h"
#include "host/op/rows.h"
#include "sdk/base/map.h"
#include <stdio.h>
#include <string.h>

struct bp_library {
    int32_t kind;
    char *ns;
    char *device;      /* of kernels whose registration names none; NULL: "" */
    const char *file;
    int32_t line;
    bp_library *next;
};

typedef struct { enum custom_what what; const bp_library *lib; bp_op_fn fn; void *arg; } fallback;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static arena memory;
static map by_target;             /* -> op_row * */
static custom *all;
static uint32_t nrows;
static bp_library *libraries;
static VEC(fallback) fallbacks;

static const char *const what_names[] = {
    [CUSTOM_CPU] = "cpu", [CUSTOM_CUDA] = "cuda", [CUSTOM_META] = "meta",       [CUSTOM_ALL] = "all",
    [CUSTOM_COMPOSITE] = "", [CUSTOM_FAKE] = "fake", [CUSTOM_AUTOGRAD] = "autograd", [CUSTOM_AUTOCAST] = "autocast",
};

static const char *const reserved[] = {"prim", "prims", "aten", "at", "torch", "pytorch"};

/* -- looking up ---------------------------------------------------------------------------------------------------- */

static const op_row *find_row(const char *target)
{
    const map_value *v = map_get(&by_target, str_of(target));
    return v ? v->p : NULL;
}

const op_row *custom_by_target(const char *target)
{
    pthread_mutex_lock(&lock);
    const op_row *row = find_row(target);
    row = row && row->own->live ? row : NULL;
    pthread_mutex_unlock(&lock);
    return row;
}

static bool target_of(const char *ns, const char *name, char *target, size_t cap)
{
    const char *dot = strchr(name, '.');
    int n = snprintf(target, cap, "%s.%s%s", ns, name, dot ? "" : ".default");
    return n > 0 && (size_t)n < cap;
}

/* "ns::op" or, in a library, "op" -> its namespace and the rest. */
static bp_status split_name(bp_ctx *c, const bp_library *lib, const char *name, char *ns, size_t cap,
                            const char **rest)
{
    const char *colons = name ? strstr(name, "::") : NULL;
    size_t n = colons ? (size_t)(colons - name) : lib ? strlen(lib->ns) : 0;
    if (!name || !n || n >= cap)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is no operator's name, expected \"namespace::name\"",
                        name ? name : "NULL");
    memcpy(ns, colons ? name : lib->ns, n);
    ns[n] = 0;
    *rest = colons ? colons + 2 : name;
    if (lib && strcmp(ns, lib->ns) && strcmp(lib->ns, "_"))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is of namespace \"%s\", and the library of \"%s\"", name, ns,
                        lib->ns);
    return BP_OK;
}

custom *custom_named(bp_ctx *c, const bp_library *lib, const char *name)
{
    char ns[96], target[200];
    const char *rest = NULL;
    if (!ctx_ok(c) || split_name(c, lib, name, ns, sizeof ns, &rest) != BP_OK)
        return NULL;
    const op_row *row = target_of(ns, rest, target, sizeof target) ? custom_by_target(target) : NULL;
    if (row && row == &row->own->row)
        return (custom *)(uintptr_t)row->own;
    ctx_fail(c, BP_NOT_FOUND, "there is no custom operator \"%s::%s\"", ns, rest);
    diag_hint(&c->diag, "define it first: bp_library_define, or bp_custom_op");
    return NULL;
}

bool custom_is_live(const custom *k)
{
    pthread_mutex_lock(&lock);
    bool live = k->live;
    pthread_mutex_unlock(&lock);
    return live;
}

static const custom_reg *newest(const custom *k, enum custom_what what)
{
    for (uint32_t i = k->regs.len; i-- > 0;)
        if (k->regs.at[i].what == what)
            return &k->regs.at[i];
    return NULL;
}

bool custom_find(const custom *k, enum custom_what what, custom_reg *out)
{
    pthread_mutex_lock(&lock);
    const custom_reg *r = newest(k, what);
    if (r)
        *out = *r;
    pthread_mutex_unlock(&lock);
    return r != NULL;
}

bool custom_find_autocast(const custom *k, int32_t device, custom_reg *out)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = k->regs.len; i-- > 0 && !found;) {
        found = k->regs.at[i].what == CUSTOM_AUTOCAST && k->regs.at[i].device == device;
        if (found)
            *out = k->regs.at[i];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* -- kernels ------------------------------------------------------------------------------------------------------- */

static const custom_reg *definer_of(const custom *k)
{
    for (uint32_t i = k->regs.len; i-- > 0;)
        if (k->regs.at[i].definer)
            return &k->regs.at[i];
    return NULL;
}

static bool pick(const custom *k, enum custom_what what, custom_reg *out)
{
    const custom_reg *r = NULL;
    const enum custom_what tried[] = {what, CUSTOM_ALL, CUSTOM_COMPOSITE};
    for (uint32_t i = 0; i < sizeof tried / sizeof *tried && !r; i++) {
        r = newest(k, tried[i]);
        if (r && r->off)
            r = definer_of(k);
    }
    if (r) {
        *out = *r;
        return true;
    }
    for (uint32_t i = fallbacks.len; i-- > 0;)
        if (fallbacks.at[i].what == what || fallbacks.at[i].what == CUSTOM_ALL) {
            *out = (custom_reg){.what = what, .fn = fallbacks.at[i].fn, .arg = fallbacks.at[i].arg};
            return true;
        }
    return false;
}

static void list_devices(const custom *k, buf *out)
{
    for (int w = CUSTOM_CPU; w <= CUSTOM_META; w++)
        if (newest(k, (enum custom_what)w))
            buf_printf(out, "%s%s", out->n ? ", " : "", what_names[w]);
}

bool custom_kernel(bp_ctx *c, const custom *k, int32_t device, custom_reg *out)
{
    static const char *const kinds[] = {[BP_CPU] = "cpu", [BP_CUDA] = "cuda", [BP_FAKE_DEVICE] = "fake"};
    enum custom_what what = device == BP_CUDA ? CUSTOM_CUDA : CUSTOM_CPU;
    const char *kind = device > 0 && device <= BP_FAKE_DEVICE ? kinds[device] : "?";
    buf there = {0};
    pthread_mutex_lock(&lock);
    bool live = k->live, found = live && device != BP_FAKE_DEVICE && pick(k, what, out);
    if (live && !found)
        list_devices(k, &there);
    pthread_mutex_unlock(&lock);
    if (!live) {
        ctx_fail(c, BP_NOT_FOUND, "operator \"%s\" is gone: what defined it was destroyed", k->name);
        diag_hint(&c->diag, "keep its library while graphs and compiled functions use it");
    } else if (!found) {
        ctx_fail(c, BP_UNIMPLEMENTED, "\"%s\" has no kernel for %s; those that it has: %s", k->name, kind,
                 there.n ? buf_text(&there) : "none");
        diag_hint(&c->diag, "register one: bp_library_impl, or bp_register_kernel");
    }
    buf_fini(&there);
    return found;
}

bool custom_device(bp_ctx *c, const char *device, enum custom_what *out)
{
    for (int w = CUSTOM_CPU; w <= CUSTOM_COMPOSITE; w++)
        if (!strcmp(device, what_names[w])) {
            *out = (enum custom_what)w;
            return true;
        }
    ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is no device of a kernel, expected cpu, cuda, meta, all or \"\"", device);
    return false;
}

static void say_where(bp_ctx *c, const char *what, const char *file, int32_t line)
{
    if (file)
        diag_detail(&c->diag, "%s at %s:%d.", what, file, (int)line);
}

static bp_status taken(bp_ctx *c, const custom *k, const custom_reg *there, const char *how)
{
    ctx_fail(c, BP_ALREADY_EXISTS, "there is already a %s of \"%s\"%s%s", how, k->name,
             there->what < CUSTOM_COMPOSITE ? " for " : "",
             there->what < CUSTOM_COMPOSITE ? what_names[there->what] : "");
    say_where(c, "It was registered", there->file, there->line);
    diag_hint(&c->diag, "take it back first, or set allow_override");
    return c->diag.code;
}

static bp_status no_fake_beside(bp_ctx *c, const custom *k, const char *beside)
{
    ctx_fail(c, BP_FAILED_PRECONDITION, "\"%s\" takes no fake beside its %s", k->name, beside);
    diag_hint(&c->diag, "an operator that is made of others has the fakes of those");
    return c->diag.code;
}

static bp_status may_register(bp_ctx *c, const custom *k, const custom_reg *r, bool override)
{
    const custom_reg *there = newest(k, r->what);
    bool fake = r->what == CUSTOM_FAKE || r->what == CUSTOM_META;
    if (fake && newest(k, CUSTOM_COMPOSITE))
        return no_fake_beside(c, k, "composite kernel");
    if (r->what == CUSTOM_FAKE && newest(k, CUSTOM_META))
        return no_fake_beside(c, k, "kernel for meta");
    if (there && !override && r->what < CUSTOM_AUTOGRAD)
        return taken(c, k, there, r->what == CUSTOM_FAKE ? "fake" : "kernel");
    return BP_OK;
}

bp_status custom_register(bp_ctx *c, custom *k, const custom_reg *r, bool override)
{
    if (!ctx_ok(c))
        return c->diag.code;
    pthread_mutex_lock(&lock);
    bp_status st = may_register(c, k, r, override);
    if (st == BP_OK && !vec_push(&k->regs, *r))
        st = ctx_nomem(c);
    pthread_mutex_unlock(&lock);
    return st;
}

static void drop_regs(custom *k, const bp_library *lib)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->regs.len; i++)
        if (k->regs.at[i].lib != lib)
            k->regs.at[kept++] = k->regs.at[i];
    k->regs.len = kept;
}

void custom_undefine(custom *k, const bp_library *lib)
{
    pthread_mutex_lock(&lock);
    drop_regs(k, lib);
    k->live = false;
    pthread_mutex_unlock(&lock);
}

int custom_switch(custom *k, enum custom_what what, bool on)
{
    int former = -1;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < k->regs.len; i++)
        if (k->regs.at[i].what == what) {
            former = !k->regs.at[i].off;
            k->regs.at[i].off = !on;
        }
    pthread_mutex_unlock(&lock);
    return former;
}

/* -- definitions --------------------------------------------------------------------------------------------------- */

static bool publish(custom *k, op_row *row)
{
    map_value *v = map_put(&by_target, str_of(row->target), NULL);
    if (v)
        v->p = row;
    row->own = k;
    row->number = ROW_COUNT + nrows++;
    return v != NULL;
}

static custom *made_before(const schema *s, const char *text, bool conservative)
{
    char target[200];
    snprintf(target, sizeof target, "%s.%s.%s", s->ns, s->name, s->overload);
    const op_row *row = find_row(target);
    if (!row || row != &row->own->row)
        return NULL;
    custom *k = (custom *)(uintptr_t)row->own;
    bool same = !strcmp(row->schema_text, text) && !(row->flags & OP_MAY_FAIL_ON_DATA) == !conservative;
    return k->live || same ? k : NULL;
}

static custom *make_row(bp_ctx *c, const schema *s, const char *text, bool conservative)
{
    custom *k = arena_alloc(&memory, sizeof *k);
    if (!k || !custom_fill(k, &memory, s, text, conservative) || !publish(k, &k->row) ||
        (k->twin.schema && !publish(k, &k->twin))) {
        ctx_nomem(c);
        return NULL;
    }
    k->next = all;
    all = k;
    return k;
}

static custom *define_locked(bp_ctx *c, const bp_library *lib, const char *ns, const char *text, bool conservative,
                             const char *file, int32_t line)
{
    const schema *s = custom_parse(c, &memory, ns, text);
    buf printed = {0};
    if (!s)
        return NULL;
    schema_print(s, &printed);
    custom *k = printed.failed ? NULL : made_before(s, buf_text(&printed), conservative);
    if (k && k->live && k->by_short_form && !lib) { /* the short form takes the place of what it defined before */
        drop_regs(k, NULL);
        k->live = false;
        k = made_before(s, buf_text(&printed), conservative);
    }
    if (k && k->live) {
        ctx_fail(c, BP_ALREADY_EXISTS, "operator \"%s\" is defined twice: %s", k->name, buf_text(&printed));
        say_where(c, "It was defined before", k->file, k->line);
        k = NULL;
    } else {
        k = k ? k : make_row(c, s, buf_text(&printed), conservative);
    }
    buf_fini(&printed);
    if (!k)
        return NULL;
    k->live = true;
    k->by_short_form = !lib;
    k->lib = lib;
    k->file = file;
    k->line = line;
    return k;
}

custom *custom_define(bp_ctx *c, const bp_library *lib, const char *ns, const char *text, bool conservative,
                      const char *file, int32_t line)
{
    if (!ctx_ok(c) || !op_table_ready())
        return NULL;
    pthread_mutex_lock(&lock);
    custom *k = define_locked(c, lib, ns, text, conservative, file, line);
    pthread_mutex_unlock(&lock);
    return k;
}

/* -- libraries ----------------------------------------------------------------------------------------------------- */

static bp_status check_namespace(bp_ctx *c, int32_t kind, const char *ns)
{
    if (kind < BP_LIBRARY_DEF || kind > BP_LIBRARY_FRAGMENT)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%d is no kind of library, expected BP_LIBRARY_DEF, _IMPL or _FRAGMENT",
                        (int)kind);
    return custom_check_namespace(c, ns, kind != BP_LIBRARY_IMPL);
}

bp_status custom_check_namespace(bp_ctx *c, const char *ns, bool defines)
{
    size_t n = ns ? strspn(ns, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") : 0;
    if (!n || ns[n] || (ns[0] >= '0' && ns[0] <= '9') || n > 40)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is no namespace, expected letters, digits and underscores",
                        ns ? ns : "NULL");
    for (size_t i = 0; defines && i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(ns, reserved[i])) {
            ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is a reserved namespace", ns);
            diag_hint(&c->diag, "choose another name for the library");
            return c->diag.code;
        }
    return BP_OK;
}

static bp_status add_library(bp_ctx *c, bp_library *lib)
{
    const bp_library *there = libraries;
    while (there && !(lib->kind == BP_LIBRARY_DEF && there->kind == BP_LIBRARY_DEF && !strcmp(there->ns, lib->ns)))
        there = there->next;
    if (there) {
        ctx_fail(c, BP_ALREADY_EXISTS, "there is already a library that defines namespace \"%s\"", lib->ns);
        say_where(c, "It was made", there->file, there->line);
        diag_hint(&c->diag, "put all definitions in that one, or make a BP_LIBRARY_FRAGMENT");
        return c->diag.code;
    }
    lib->next = libraries;
    libraries = lib;
    return BP_OK;
}

static void library_free(bp_library *lib)
{
    if (lib) {
        free(lib->ns);
        free(lib->device);
    }
    free(lib);
}

bp_library *bp_library_new_at(bp_ctx *c, int32_t kind, const char *ns, const char *device, const char *file,
                              int32_t line)
{
    enum custom_what what;
    if (!ctx_ok(c) || check_namespace(c, kind, ns) != BP_OK || (device && !custom_device(c, device, &what)))
        return NULL;
    bp_library *lib = calloc(1, sizeof *lib);
    if (lib)
        *lib = (bp_library){kind, strdup(ns), device ? strdup(device) : NULL, file, line, NULL};
    if (!lib || !lib->ns || (device && !lib->device)) {
        library_free(lib);
        ctx_nomem(c);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    bp_status st = add_library(c, lib);
    pthread_mutex_unlock(&lock);
    if (st == BP_OK)
        return lib;
    library_free(lib);
    return NULL;
}

static void drop_fallbacks(const bp_library *lib)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fallbacks.len; i++)
        if (fallbacks.at[i].lib != lib)
            fallbacks.at[kept++] = fallbacks.at[i];
    fallbacks.len = kept;
    if (!kept)
        vec_fini(&fallbacks);
}

void bp_library_destroy(bp_library *lib)
{
    if (!lib)
        return;
    pthread_mutex_lock(&lock);
    for (custom *k = all; k; k = k->next) {
        drop_regs(k, lib);
        if (k->lib == lib && k->live)
            k->live = false;
    }
    drop_fallbacks(lib);
    bp_library **at = &libraries;
    while (*at && *at != lib)
        at = &(*at)->next;
    if (*at)
        *at = lib->next;
    pthread_mutex_unlock(&lock);
    library_free(lib);
}

const char *bp_library_define_at(bp_ctx *c, bp_library *lib, const char *schema_text, const char *alias_analysis,
                                 const char *file, int32_t line)
{
    const char *how = alias_analysis ? alias_analysis : "";
    bool conservative = !strcmp(how, "CONSERVATIVE");
    if (!ctx_ok(c))
        return NULL;
    if (*how && !conservative && strcmp(how, "FROM_SCHEMA"))
        ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is no alias analysis, expected \"\", FROM_SCHEMA or CONSERVATIVE",
                 how);
    else if (!lib || !schema_text)
        ctx_fail(c, BP_INVALID_ARGUMENT, "the %s of a definition is NULL", lib ? "schema" : "library");
    else if (lib->kind == BP_LIBRARY_IMPL)
        ctx_fail(c, BP_FAILED_PRECONDITION, "a library of kind IMPL defines no operators, expected DEF or FRAGMENT");
    custom *k = ctx_ok(c) ? custom_define(c, lib, lib->ns, schema_text, conservative, file, line) : NULL;
    return k ? k->short_name : NULL;
}

bp_status bp_library_impl(bp_ctx *c, bp_library *lib, const char *op, const char *device, bp_op_fn kernel, void *arg,
                          int32_t allow_override)
{
    custom_reg r = {.lib = lib, .fn = kernel, .arg = arg, .file = c->site_file, .line = c->site_line};
    if (!ctx_ok(c))
        return c->diag.code;
    if (!lib || !kernel)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the %s of an implementation is NULL", lib ? "kernel" : "library");
    const char *named = device ? device : lib->device ? lib->device : "";
    if (!custom_device(c, named, &r.what))
        return c->diag.code;
    custom *k = custom_named(c, lib, op);
    return k ? custom_register(c, k, &r, allow_override != 0) : c->diag.code;
}

bp_status bp_library_fallback(bp_ctx *c, bp_library *lib, const char *device, bp_op_fn kernel, void *arg)
{
    fallback f = {.lib = lib, .fn = kernel, .arg = arg};
    if (!ctx_ok(c))
        return c->diag.code;
    if (!lib || !kernel)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the %s of a fallback is NULL", lib ? "kernel" : "library");
    if (lib->kind != BP_LIBRARY_FRAGMENT || strcmp(lib->ns, "_"))
        return ctx_fail(c, BP_FAILED_PRECONDITION,
                        "a fallback belongs to a library fragment of the namespace \"_\", and this one is of \"%s\"",
                        lib->ns);
    if (!custom_device(c, device ? device : "all", &f.what))
        return c->diag.code;
    pthread_mutex_lock(&lock);
    bool ok = vec_push(&fallbacks, f);
    pthread_mutex_unlock(&lock);
    return ok ? BP_OK : ctx_nomem(c);
}

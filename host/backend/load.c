/* From a config section to a mapped library and its functions.
 *
 * The order is the point: whatever can be known without running the plugin's code is checked first (place, owner, ELF
 * header, notes), then it is loaded in a child, then here. A library that was mapped stays mapped, whatever its symbols
 * turn out to be, since its constructors have run. Each failure is a state with a reason; nothing is half loaded. */
#include "host/backend/elf.h"
#include "host/backend/policy.h"
#include "host/backend/probe.h"
#include "host/backend/text.h"
#include "host/base/log.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    bp_ctx *c;
    backend *b;
    char path[PATH_MAX];     /* real and absolute */
    struct stat st;
    elf_facts facts;
    void *library;
    struct link_map *map;
} loading;

#define STOP(l, state, ...) (backend_set_state((l)->b, (state), __VA_ARGS__), false)

/* -- the file ------------------------------------------------------------------------------------------------------ */

static bool find_path(loading *l)
{
    const config_section *s = l->b->section;
    const char *text = config_backend_str(s, KEY_LIBRARY);
    if (!*text)
        return STOP(l, STATE_MISSING, "its section names no library (%s:%d)", s->at.file, s->at.line);
    if (realpath(text, l->path))
        return true;
    if (errno == ENOENT || errno == ENOTDIR)
        return STOP(l, STATE_MISSING, "%s: no such file (named in %s:%d)", text, s->keys[KEY_LIBRARY].at.file,
                    s->keys[KEY_LIBRARY].at.line);
    return STOP(l, STATE_REFUSED, "%s: %s", text, strerror(errno));
}

static bool check_version(loading *l)
{
    uint32_t foreign = l->facts.sanitizer & ~(uint32_t)BP_SANITIZER_KIND;
    if (l->facts.api > BP_API_NEWEST)
        return STOP(l, STATE_VERSION, "%s needs API %u, this host gives up to %d: update the host, or build the plugin "
                    "with BP_API=%d", l->path, (unsigned)l->facts.api, BP_API_NEWEST, BP_API_NEWEST);
    if (foreign)
        return STOP(l, STATE_VERSION, "%s is built with the %s sanitizer, this host is not", l->path,
                    foreign & BP_SANITIZER_ADDRESS ? "address" : foreign & BP_SANITIZER_THREAD ? "thread" : "memory");
    return true;
}

static bool check_elf(loading *l, int fd)
{
    char why[300];
    if (!elf_read(fd, (uint64_t)l->st.st_size, &l->facts, why, sizeof why))
        return STOP(l, STATE_BAD_FILE, "%s: %s", l->path, why);
    if (l->facts.is_pie)
        return STOP(l, STATE_BAD_FILE, "%s is a program, not a library", l->path);
    if (l->facts.has_text_relocations)
        return STOP(l, STATE_REFUSED, "%s has text relocations: its code would be writable; build it with -fPIC",
                    l->path);
    if (l->facts.has_executable_stack)
        return STOP(l, STATE_REFUSED, "%s wants an executable stack; link it with -Wl,-z,noexecstack", l->path);
    return check_version(l);
}

static bool check_file(loading *l)
{
    char why[PATH_MAX + 200];
    int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return STOP(l, STATE_REFUSED, "%s: %s", l->path, strerror(errno));
    bool ok;
    if (fstat(fd, &l->st) != 0)
        ok = STOP(l, STATE_REFUSED, "%s: %s", l->path, strerror(errno));
    else if (!policy_allows(l->path, &l->st, why, sizeof why))
        ok = STOP(l, STATE_REFUSED, "%s", why);
    else
        ok = check_elf(l, fd);
    close(fd);
    return ok;
}

/* -- the probe ----------------------------------------------------------------------------------------------------- */

/* The reason as users should read it: who lacks the library. */
static bool stop_by_linker(loading *l, enum backend_state state, const char *error)
{
    char needed[256];
    probe_classify(l->path, error, needed, sizeof needed);
    if (state != STATE_MISSING_DEP || !*needed)
        return STOP(l, state, "%s", error);
    bool direct = false;
    for (uint32_t i = 0; i < l->facts.needed.len; i++)
        direct |= strcmp(l->facts.needed.at[i], needed) == 0;
    return STOP(l, state, "%s needs %s%s: %s", l->path, needed, direct ? "" : " through another library", error);
}

static bool probe(loading *l)
{
    bp_runtime *rt = l->c->rt;
    int64_t mode = config_int(rt, KEY_PROBE);
    if (mode == PROBE_OFF)
        return true;
    probe_request q = {l->path, mode == PROBE_FULL ? config_backend_str(l->b->section, KEY_INIT) : "", &l->st,
                       config_int(rt, KEY_PROBE_DEADLINE), config_str(rt, KEY_PROBE_HELPER)};
    probe_verdict v;
    probe_ask(rt, &q, &v);
    if (!v.usable)
        log_warn(rt, "backend \"%s\" is loaded without a probe: %s (\"probe = off\" in [host] says that this is meant)",
                 l->b->name, v.why);
    if (!v.usable || v.state == STATE_OK)
        return true;
    if (v.state == STATE_CRASHED || v.state == STATE_HUNG)
        return STOP(l, v.state, "%s: %s; `backplane doctor --forget` lets it be tried again", l->path, v.why);
    return stop_by_linker(l, v.state, v.why);
}

/* -- mapping ------------------------------------------------------------------------------------------------------- */

/* What dlopen mapped is what was checked. */
static bool is_same_file(loading *l)
{
    struct stat now;
    return dlinfo(l->library, RTLD_DI_LINKMAP, &l->map) == 0 && stat(l->path, &now) == 0 &&
           now.st_dev == l->st.st_dev &&
           now.st_ino == l->st.st_ino && now.st_size == l->st.st_size && now.st_mtim.tv_sec == l->st.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == l->st.st_mtim.tv_nsec;
}

static bool map_library(loading *l)
{
    char error[700] = "";
    dlerror();
    fp_word word = protect_begin();
    l->library = dlopen(l->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool changed = protect_end(word);
    if (!l->library) {
        const char *text = dlerror();
        char needed[256];
        snprintf(error, sizeof error, "%s", text ? text : "dlopen gave no reason");
        return stop_by_linker(l, probe_classify(l->path, error, needed, sizeof needed), error);
    }
    if (changed)
        log_warn(l->c->rt, "loading %s changed the floating-point control word; it was put back (is it linked with "
                 "-ffast-math?)", l->path);
    return is_same_file(l) || STOP(l, STATE_REFUSED, "%s was replaced while it was loaded", l->path);
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

/* dlsym also finds a symbol of a library that the plugin links to; that one is not the plugin's. NULL: none of its own;
 * *foreign then names the library that has it, or is "". */
static void *own_symbol(const loading *l, const char *name, const char **foreign)
{
    *foreign = "";
    void *symbol = dlsym(l->library, name);
    Dl_info info;
    struct link_map *of = NULL;
    if (!symbol || !dladdr1(symbol, &info, (void **)&of, RTLD_DL_LINKMAP) || of == l->map)
        return symbol;
    *foreign = info.dli_fname;
    return NULL;
}

/* What the symbol table says that a symbol is; NULL: what is wanted. One that is not in it is taken at its word. */
static const char *wrong_kind(const void *symbol, bool is_function)
{
    Dl_info info;
    ElfW(Sym) *s = NULL; /* only read */
    if (!dladdr1(symbol, &info, (void **)&s, RTLD_DL_SYMENT) || !s || info.dli_saddr != symbol)
        return NULL;
    unsigned type = ELF64_ST_TYPE(s->st_info);
    if (type == STT_OBJECT || type == STT_COMMON)
        return is_function ? "data" : NULL;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return is_function ? NULL : "a function";
    return type == STT_NOTYPE ? NULL : "neither a function nor data";
}

/* " (named in FILE:LINE)", or "" for a key that no file sets. */
static const char *named_at(const loading *l, enum config_key key, char *out, size_t cap)
{
    const config_value *v = &l->b->section->keys[key];
    out[0] = '\0';
    if (v->text && v->at.file)
        snprintf(out, cap, " (named in %s:%d)", v->at.file, v->at.line);
    return out;
}

static bool find_compile(loading *l, bp_compile_fn *out)
{
    const char *name = config_backend_str(l->b->section, KEY_COMPILE), *foreign;
    char at[PATH_MAX];
    void *symbol = own_symbol(l, name, &foreign);
    const char *wrong = symbol ? wrong_kind(symbol, true) : NULL;
    if (wrong)
        return STOP(l, STATE_NOT_A_PLUGIN, "%s: \"%s\" is %s, expected the function bp_compiled *%s(bp_graph_module *, "
                    "const bp_inputs *)%s", l->path, name, wrong, name, named_at(l, KEY_COMPILE, at, sizeof at));
    if (symbol) {
        memcpy(out, &symbol, sizeof *out);
        return true;
    }
    if (*foreign)
        return STOP(l, STATE_NOT_A_PLUGIN, "%s defines no \"%s\"; the one that it sees belongs to its dependency %s",
                    l->path, name, foreign);
    return STOP(l, STATE_NOT_A_PLUGIN, "%s defines no \"%s\"%s; it must export bp_compiled *%s(bp_graph_module *, "
                "const bp_inputs *), or its section names another symbol by compile =", l->path, name,
                named_at(l, KEY_COMPILE, at, sizeof at), name);
}

static bool find_init(loading *l, bp_init_fn *out)
{
    const config_section *s = l->b->section;
    const char *name = config_backend_str(s, KEY_INIT), *foreign;
    void *symbol = own_symbol(l, name, &foreign);
    *out = NULL;
    char at[PATH_MAX];
    const char *wrong = symbol ? wrong_kind(symbol, true) : NULL;
    if (wrong)
        return STOP(l, STATE_NOT_A_PLUGIN, "%s: \"%s\" is %s, expected the function bp_status %s(const bp_host *)%s",
                    l->path, name, wrong, name, named_at(l, KEY_INIT, at, sizeof at));
    if (symbol)
        memcpy(out, &symbol, sizeof *out);
    else if (s->keys[KEY_INIT].text)
        return STOP(l, STATE_NOT_A_PLUGIN, "%s defines no \"%s\", which %s:%d names as its init hook", l->path, name,
                    s->keys[KEY_INIT].at.file, s->keys[KEY_INIT].at.line);
    return true;
}

/* Its texts are shown on terminals. */
static const char *own_text(const loading *l, const char *text)
{
    char clean[200];
    return text ? backend_keep_text(l->b->room, plugin_text(clean, sizeof clean, text, strlen(text))) : NULL;
}

/* Copies what this host knows of backend_info; fields beyond its size are zero, which means their defaults. */
static bool read_info(loading *l, bp_backend_info *out)
{
    const char *foreign;
    const bp_backend_info *info = own_symbol(l, "backend_info", &foreign);
    *out = (bp_backend_info){0};
    if (!info)
        return true;
    const char *wrong = wrong_kind(info, false);
    if (wrong)
        return STOP(l, STATE_NOT_A_PLUGIN, "%s: \"backend_info\" is %s, expected a const bp_backend_info", l->path,
                    wrong);
    uint32_t size = info->size;
    if (size < offsetof(bp_backend_info, version) || size > 1 << 16)
        return STOP(l, STATE_NOT_A_PLUGIN, "%s: backend_info.size is %u, expected sizeof(bp_backend_info): at "
                    "least %zu, and %zu in this host; set .size = sizeof(bp_backend_info)", l->path,
                    (unsigned)size, offsetof(bp_backend_info, version), sizeof *out);
    memcpy(out, info, size < sizeof *out ? size : sizeof *out);
    if (out->graph < BP_GRAPH_UNSET || out->graph > BP_GRAPH_CORE)
        return STOP(l, STATE_NOT_A_PLUGIN, "%s: backend_info.graph is %d, expected BP_GRAPH_*", l->path,
                    (int)out->graph);
    if (out->min_alignment & (out->min_alignment - 1))
        return STOP(l, STATE_NOT_A_PLUGIN, "%s: backend_info.min_alignment is %u, expected a power of two", l->path,
                    (unsigned)out->min_alignment);
    out->version = own_text(l, out->version);
    out->build_id = own_text(l, out->build_id);
    out->vendor = own_text(l, out->vendor);
    return true;
}

static bool find_symbols(loading *l)
{
    bp_compile_fn compile;
    bp_init_fn init;
    bp_backend_info info;
    if (!find_compile(l, &compile) || !find_init(l, &init) || !read_info(l, &info))
        return false;
    l->b->info = info;
    l->b->forks = protect_forks();
    backend_set_code(l->b, compile, init, STATE_OK);
    return true;
}

bp_status backend_load(bp_ctx *c, backend *b)
{
    loading l = {.c = c, .b = b};
    bool ok = find_path(&l) && check_file(&l) && probe(&l) && map_library(&l) && find_symbols(&l);
    if (ok && !b->path)
        b->path = strdup(l.path);
    elf_fini(&l.facts);
    const char *why;
    enum backend_state state = backend_get_state(b, &why);
    log_line(c->rt, LOG_backend, "load of \"%s\": %s%s%s", b->name, backend_state_name(state), *why ? ": " : "", why);
    return ok ? BP_OK : backend_unusable(c, b);
}

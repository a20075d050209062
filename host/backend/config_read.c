/* Reads one ini file into the config: inih splits lines into keys and values, and each line is judged before it gets
 * it.
 *
 * inih cuts long lines and names silently, hides where a section begins, and takes an indented "key = value" for
 * more of the value above. A config that reads otherwise than it looks is worse than none, so all of these are
 * errors with file and line. inih asks for a line and calls the handler before it asks for the next one, which ties
 * keys to lines. */
#include "host/backend/config.h"
#include "sdk/base/match.h"
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 20, MAX_LINE = 199, MAX_NAME = 49, MAX_BACKEND_NAME = 32 };

typedef struct {
    config *cfg;
    const char *file;        /* owned by the config */
    uint32_t layer;
    str rest;                /* text that is still to be read; s NULL: none */
    int line;
    str raw;                 /* the line itself */
    config_section *section; /* NULL before the first header */
    bool continued;          /* the line goes on with the value above */
} reader;

BP_PRINTF(3, 4) static bp_status fail(reader *r, bp_status code, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_fail(&r->cfg->error, code, "%s:%d: %s", r->file, r->line, text);
}

/* The same at a place in the line. at: within r->raw. */
BP_PRINTF(3, 4) static bp_status fail_at(reader *r, const char *at, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_fail(&r->cfg->error, BP_INVALID_ARGUMENT, "%s:%d:%d: %s", r->file, r->line,
                     (int)(at - r->raw.s) + 1, text);
}

static bool failed(const reader *r)
{
    return r->cfg->error.code != BP_OK;
}

static config_place here(const reader *r)
{
    return (config_place){r->file, r->line, r->layer};
}

/* -- sections ------------------------------------------------------------------------------------------------------ */

static bool is_backend_name(str name)
{
    if (!name.n || name.n > MAX_BACKEND_NAME || name.s[0] < 'a' || name.s[0] > 'z')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char ch = name.s[i];
        if (!(ch >= 'a' && ch <= 'z') && !(ch >= '0' && ch <= '9') && ch != '-' && ch != '_')
            return false;
    }
    return true;
}

/* Names that mean something else where a backend could stand. */
static bool is_reserved(str name)
{
    return str_is(name, "cpu") || str_is(name, "auto") || str_is(name, "none");
}

static config_section *find_section(reader *r, str name)
{
    for (uint32_t i = 0; i < r->cfg->backends.len; i++)
        if (str_is(name, r->cfg->backends.at[i]->name))
            return r->cfg->backends.at[i];
    config_section *s = calloc(1, sizeof *s);
    if (s && (s->name = str_dup(name)) && vec_push(&r->cfg->backends, s))
        return s;
    if (s)
        free(s->name);
    free(s);
    diag_nomem(&r->cfg->error);
    return NULL;
}

static bp_status begin_section(reader *r, config_section *s, str header)
{
    if (s->at.file && s->at.layer == r->layer) {
        fail(r, BP_ALREADY_EXISTS, "section [%.*s] is given twice: here and at %s:%d", (int)header.n, header.s,
             s->at.file, s->at.line);
        diag_hint(&r->cfg->error, "inside a layer a section stands once; a higher layer may override its keys");
        return r->cfg->error.code;
    }
    s->at = here(r);
    r->section = s;
    return BP_OK;
}

static bp_status open_backend(reader *r, str name, str header)
{
    if (!is_backend_name(name))
        return fail(r, BP_INVALID_ARGUMENT,
                    "bad backend name \"%.*s\": a letter a to z, then up to 31 of a to z, 0 to 9, - and _", (int)name.n,
                    name.s);
    if (is_reserved(name))
        return fail(r, BP_INVALID_ARGUMENT, "the backend name \"%.*s\" is reserved", (int)name.n, name.s);
    config_section *s = find_section(r, name);
    return s ? begin_section(r, s, header) : BP_RESOURCE_EXHAUSTED;
}

/* line: trimmed, begins with "[". */
static bp_status open_section(reader *r, str line)
{
    const char *end = memchr(line.s, ']', line.n);
    if (!end)
        return fail(r, BP_INVALID_ARGUMENT, "a section header lacks its \"]\"");
    str header = str_trim((str){line.s + 1, (size_t)(end - line.s) - 1});
    str after = str_trim((str){end + 1, line.n - (size_t)(end + 1 - line.s)});
    if (after.n && after.s[0] != ';' && after.s[0] != '#')
        return fail(r, BP_INVALID_ARGUMENT, "\"%.*s\" stands behind a section header", (int)after.n, after.s);
    if (end - line.s - 1 > MAX_NAME)
        return fail(r, BP_INVALID_ARGUMENT, "a section header of %d bytes, %d at most", (int)(end - line.s - 1),
                    MAX_NAME);
    if (str_is(header, "host")) {
        if (!r->cfg->host.name && !(r->cfg->host.name = strdup("")))
            return diag_nomem(&r->cfg->error);
        return begin_section(r, &r->cfg->host, header);
    }
    str rest = header, kind = str_split(&rest, ' ');
    if (str_is(kind, "backend"))
        return open_backend(r, str_trim(rest), header);
    return fail(r, BP_INVALID_ARGUMENT, "unknown section [%.*s], expected [host] or [backend NAME]", (int)header.n,
                header.s);
}

/* -- lines --------------------------------------------------------------------------------------------------------- */

static bool is_known_key(str name, bool host)
{
    if (name.n && name.s[0] == '?')
        name = (str){name.s + 1, name.n - 1};
    if (!host && str_starts(name, "opt."))
        return true;
    for (uint32_t i = 0; i < CONFIG_KEYS; i++)
        if (config_key_row((enum config_key)i)->host == host && str_is(name, config_key_row((enum config_key)i)->name))
            return true;
    return false;
}

/* What stands before the first "="; {NULL, 0} when there is none. */
static str key_of(str line)
{
    const char *eq = memchr(line.s, '=', line.n);
    return eq ? str_trim((str){line.s, (size_t)(eq - line.s)}) : (str){NULL, 0};
}

static bp_status check_continuation(reader *r, str line)
{
    str key = key_of(line);
    if (line.s[0] == '[' || (key.s && r->section && is_known_key(key, r->section == &r->cfg->host)))
        return fail(r, BP_INVALID_ARGUMENT, "\"%.*s\" is indented, and would be read as more of the value above",
                    (int)(line.n < 60 ? line.n : 60), line.s);
    return BP_OK;
}

static bp_status check_key(reader *r, str line)
{
    str key = key_of(line);
    if (!key.s)
        return fail(r, BP_INVALID_ARGUMENT, "\"%.*s\" is no section, key = value, or comment",
                    (int)(line.n < 60 ? line.n : 60), line.s);
    if (memchr(key.s, ':', key.n))
        return fail(r, BP_INVALID_ARGUMENT, "\":\" stands before \"=\"; write key = value");
    if (!key.n || key.n > MAX_NAME)
        return fail(r, BP_INVALID_ARGUMENT, "a key of %zu bytes, 1 to %d are possible", key.n, MAX_NAME);
    if (key.s[0] == '?' && (key.n == 1 || key.s[1] == '?' || key.s[1] == ' ' || key.s[1] == '\t'))
        return fail_at(r, key.s + 1, "expected a key's name right behind one \"?\", as in \"?opt.threads = 4\"");
    if (memchr(key.s, ';', key.n))
        return fail(r, BP_INVALID_ARGUMENT, "a key holds no \";\"");
    if (!r->section)
        return fail(r, BP_INVALID_ARGUMENT, "the key \"%.*s\" stands before any section", (int)key.n, key.s);
    return BP_OK;
}

/* The first byte that is no text; NULL: none. */
static const char *odd_byte(str raw)
{
    for (size_t i = 0; i < raw.n;) {
        unsigned char c = (unsigned char)raw.s[i];
        size_t len = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        if (len > raw.n - i || !str_is_utf8((str){raw.s + i, len}) || (c < 0x20 && c != '\t') || c == 0x7f)
            return raw.s + i;
        i += len;
    }
    return NULL;
}

static bp_status check_line(reader *r, str raw)
{
    if (raw.n > MAX_LINE) {
        fail(r, BP_INVALID_ARGUMENT, "a line of %zu bytes, %d at most", raw.n, MAX_LINE);
        diag_hint(&r->cfg->error, "a long value goes on in lines that begin with a blank");
        return r->cfg->error.code;
    }
    const char *odd = odd_byte(raw);
    if (odd && !*odd)
        return fail(r, BP_INVALID_ARGUMENT, "a line holds a NUL byte");
    if (odd)
        return fail_at(r, odd, "the byte 0x%02x is no part of a UTF-8 character, or is a control character; expected "
                       "UTF-8 text", (unsigned)(unsigned char)*odd);
    str line = str_trim(raw);
    if (!line.n || line.s[0] == ';' || line.s[0] == '#')
        return BP_OK;
    /* inih goes on with a value at an indented line, but not right after a section's header. */
    if (line.s != raw.s && r->continued)
        return check_continuation(r, line);
    r->continued = false;
    return line.s[0] == '[' ? open_section(r, line) : check_key(r, line);
}

/* inih's way to ask for a line, after fgets: at most cap - 1 bytes. */
static char *next_line(char *to, int cap, void *arg)
{
    reader *r = arg;
    if (!r->rest.s || failed(r))
        return NULL;
    bool last = !memchr(r->rest.s, '\n', r->rest.n);
    str line = str_split(&r->rest, '\n');
    if (last && !line.n)
        return NULL;
    r->line++;
    if (line.n && line.s[line.n - 1] == '\r')
        line.n--;
    r->raw = line;
    if (check_line(r, line) != BP_OK)
        return NULL;
    if (line.n + 1 > (size_t)cap) {
        fail(r, BP_INVALID_ARGUMENT, "a line of %zu bytes, the ini library takes %d at most", line.n, cap - 1);
        return NULL;
    }
    memcpy(to, line.s, line.n);
    to[line.n] = '\0';
    return to;
}

/* -- keys ---------------------------------------------------------------------------------------------------------- */

/* A PATH that is not absolute belongs to the file's folder. NULL: out of memory. */
static char *resolve_path(const reader *r, const char *text)
{
    const char *slash = strrchr(r->file, '/');
    if (*text == '/' || !slash)
        return strdup(text);
    buf path = {0};
    buf_add(&path, r->file, (size_t)(slash - r->file) + 1);
    buf_puts(&path, text);
    if (path.failed)
        buf_fini(&path);
    return path.s;
}

/* Takes text. A value that this very file has given already is an error with both lines. */
static bp_status store(reader *r, config_value *v, const char *key, char *text)
{
    if (!text)
        return diag_nomem(&r->cfg->error);
    if (v->text && v->at.layer == r->layer) {
        free(text);
        return fail(r, BP_ALREADY_EXISTS, "the key \"%s\" is given twice: here and in line %d", key, v->at.line);
    }
    free(v->text);
    *v = (config_value){text, here(r)};
    return BP_OK;
}

/* More of the value above, joined by a blank. */
static bp_status extend(reader *r, config_value *v, const char *more)
{
    buf text = {0};
    buf_printf(&text, "%s %s", v->text ? v->text : "", more);
    if (text.failed) {
        buf_fini(&text);
        return diag_nomem(&r->cfg->error);
    }
    free(v->text);
    v->text = text.s;
    return BP_OK;
}

static bp_status set_option(reader *r, const char *name, const char *value, bool optional)
{
    config_section *s = r->section;
    config_option *o = NULL;
    for (uint32_t i = 0; i < s->options.len; i++)
        if (strcmp(s->options.at[i].name, name) == 0)
            o = &s->options.at[i];
    if (o && r->continued)
        return extend(r, &o->value, value);
    if (!*name)
        return fail(r, BP_INVALID_ARGUMENT, "\"opt.\" lacks the option's name");
    if (!o) {
        char *copy = strdup(name);
        if (!copy || !vec_push(&s->options, (config_option){copy, {0}, optional})) {
            free(copy);
            return diag_nomem(&r->cfg->error);
        }
        o = &vec_last(&s->options);
    }
    o->optional = optional;
    return store(r, &o->value, name, strdup(value));
}

static bp_status set_key(reader *r, enum config_key k, const char *value)
{
    const config_row *row = config_key_row(k);
    config_value *v = &r->section->keys[k];
    if (r->continued)
        TRY(extend(r, v, value));
    else
        TRY(store(r, v, row->name, row->type == CONFIG_PATH && *value ? resolve_path(r, value) : strdup(value)));
    int64_t number;
    char why[200];
    if (config_parse_value(row, v->text, &number, why, sizeof why))
        return BP_OK;
    const char *eq = r->continued ? NULL : memchr(r->raw.s, '=', r->raw.n), *at = eq ? eq + 1 : r->raw.s;
    while (at < r->raw.s + r->raw.n && (*at == ' ' || *at == '\t'))
        at++;
    return fail_at(r, at, "\"%s\" is set to \"%s\", expected %s", row->name, v->text, why);
}

static bp_status set(reader *r, const char *name, const char *value)
{
    bool optional = *name == '?', host = r->section == &r->cfg->host;
    const char *key = name + optional;
    if (!host && strncmp(key, "opt.", 4) == 0)
        return set_option(r, key + 4, value, optional);
    for (uint32_t i = 0; i < CONFIG_KEYS; i++)
        if (config_key_row((enum config_key)i)->host == host && strcmp(config_key_row((enum config_key)i)->name,
                                                                       key) == 0)
            return set_key(r, (enum config_key)i, value);
    if (optional)
        return BP_OK;
    char where[PATH_MAX];
    snprintf(where, sizeof where, "%s:%d: ", r->file, r->line);
    return config_unknown_key(&r->cfg->error, where, key, host);
}

static int on_key(void *arg, const char *section, const char *name, const char *value)
{
    (void)section; /* known from its header, with its place */
    reader *r = arg;
    if (!failed(r) && r->section)
        set(r, name, value);
    r->continued = true;
    return 1;
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static bp_status read_all(config *cfg, const char *path, buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return diag_fail(&cfg->error, errno == ENOENT ? BP_NOT_FOUND : BP_PERMISSION_DENIED, "%s: %s", path,
                         strerror(errno));
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    char block[4096];
    ssize_t n = 0;
    while (regular && out->n <= MAX_FILE && (n = read(fd, block, sizeof block)) > 0)
        buf_add(out, block, (size_t)n);
    int error = errno;
    close(fd);
    if (!regular)
        return diag_fail(&cfg->error, BP_INVALID_ARGUMENT, "%s: not a regular file", path);
    if (n < 0)
        return diag_fail(&cfg->error, BP_DATA_LOSS, "%s: %s", path, strerror(error));
    if (out->n > MAX_FILE)
        return diag_fail(&cfg->error, BP_INVALID_ARGUMENT, "%s: over %d bytes", path, MAX_FILE);
    return out->failed ? diag_nomem(&cfg->error) : BP_OK;
}

/* The file's absolute name, owned by the config: `library` is relative to it. */
static char *own_path(config *cfg, const char *path)
{
    char *full = realpath(path, NULL);
    if (!full)
        full = strdup(path);
    if (!full || !vec_push(&cfg->strings, full)) {
        free(full);
        return NULL;
    }
    return vec_push(&cfg->files, full) ? full : NULL;
}

bp_status config_read_file(config *cfg, const char *path, uint32_t layer)
{
    buf text = {0};
    bp_status st = read_all(cfg, path, &text);
    reader r = {.cfg = cfg, .layer = layer, .rest = {text.s, text.n}};
    if (!st && !(r.file = own_path(cfg, path)))
        st = diag_nomem(&cfg->error);
    if (!st && text.n) {
        if (text.n >= 3 && memcmp(text.s, "\xEF\xBB\xBF", 3) == 0)
            r.rest = (str){text.s + 3, text.n - 3};
        int bad = ini_parse_stream(next_line, &r, on_key, &r);
        if (bad && !failed(&r))
            fail(&r, BP_INVALID_ARGUMENT, "the ini library refuses line %d", bad);
    }
    buf_fini(&text);
    return cfg->error.code;
}

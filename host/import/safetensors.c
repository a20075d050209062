/* safetensors: 8 bytes of header length, a JSON object name -> {dtype, shape, data_offsets}, then the elements.
 *
 * The file is mapped and tensors lie in the mapping (copied only if an element would be misaligned). All of the header
 * is checked before the first tensor is made, and a module takes all tensors of a file or none. */
#define BP_WITHOUT_OPERATORS
#include "host/import/file.h"
#include "host/tensor/module.h"
#include "sdk/base/checked.h"
#include <backplane/backplane.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 100 * 1000 * 1000 };

typedef struct {
    const char *name; /* the JSON's */
    bp_dtype dtype;
    uint32_t rank;
    int64_t begin, end; /* into the elements */
    bp_dim sizes[TENSOR_MAX_RANK];
} entry;

typedef struct {
    bp_ctx *c;
    file_map *f;
    json_t *json;
    size_t data_at, data_n;
    VEC(entry) entries;
    VEC(bp_tensor *) tensors; /* one an entry */
} reader;

BP_PRINTF(4, 5) static bool bad(reader *r, bp_status code, const char *field, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    file_fail(r->c, r->f->path, code, field, "%s", text);
    return false;
}

/* -- the header ---------------------------------------------------------------------------------------------------- */

static bool read_json(reader *r)
{
    if (r->f->n < 8)
        return bad(r, BP_DATA_LOSS, "header length", "the file ends inside it");
    uint64_t n = 0;
    for (int i = 8; i-- > 0;)
        n = n << 8 | r->f->data[i];
    if (n > MAX_HEADER)
        return bad(r, BP_DATA_LOSS, "header length", "%" PRIu64 " bytes: at most %d are allowed", n, MAX_HEADER);
    if (n > r->f->n - 8)
        return bad(r, BP_DATA_LOSS, "header", "%" PRIu64 " bytes are announced, and the file has %zu", n, r->f->n - 8);
    json_error_t e;
    r->json = json_loadb((const char *)r->f->data + 8, (size_t)n, JSON_REJECT_DUPLICATES, &e);
    if (!r->json && json_error_code(&e) == json_error_out_of_memory) {
        ctx_nomem(r->c);
        return false;
    }
    if (!r->json)
        return bad(r, BP_DATA_LOSS, "header", "at byte %d: %s", e.position, e.text);
    if (!json_is_object(r->json))
        return bad(r, BP_DATA_LOSS, "header", "a JSON object is expected");
    r->data_at = 8 + (size_t)n;
    r->data_n = r->f->n - r->data_at;
    return true;
}

static bool read_dtype(reader *r, entry *e, json_t *v)
{
    const char *text = json_string_value(v);
    if (!text)
        return bad(r, BP_DATA_LOSS, e->name, "dtype is missing or no string");
    for (bp_dtype d = 1; d < BP_DTYPE_END; d++) {
        if (strcmp(dtype_get(d)->safetensors, text) == 0) {
            e->dtype = d;
            return true;
        }
    }
    return bad(r, BP_UNIMPLEMENTED, e->name, "dtype \"%.40s\" is not supported", text);
}

/* Reads the shape; *nbytes is what it needs. */
static bool read_shape(reader *r, entry *e, json_t *v, int64_t *nbytes)
{
    if (!json_is_array(v))
        return bad(r, BP_DATA_LOSS, e->name, "shape is missing or no list");
    if (json_array_size(v) > TENSOR_MAX_RANK)
        return bad(r, BP_UNIMPLEMENTED, e->name, "shape has %zu dimensions: at most %d are supported",
                   json_array_size(v), TENSOR_MAX_RANK);
    bool fits = true, empty = false;
    *nbytes = (int64_t)dtype_size(e->dtype);
    for (e->rank = 0; e->rank < json_array_size(v); e->rank++) {
        json_t *item = json_array_get(v, e->rank);
        int64_t size = json_integer_value(item);
        if (!json_is_integer(item) || size < 0)
            return bad(r, BP_DATA_LOSS, e->name, "shape holds what is no size at index %u", e->rank);
        e->sizes[e->rank] = dim_const(size);
        empty |= size == 0;
        fits = fits && checked_mul(*nbytes, size, nbytes);
    }
    if (empty)
        *nbytes = 0;
    return fits || empty || bad(r, BP_DATA_LOSS, e->name, "shape needs more bytes than 64 bits count");
}

static bool read_offsets(reader *r, entry *e, json_t *v, int64_t nbytes)
{
    json_t *begin = json_array_get(v, 0), *end = json_array_get(v, 1);
    if (json_array_size(v) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return bad(r, BP_DATA_LOSS, e->name, "data_offsets is missing or not a list of two integers");
    e->begin = json_integer_value(begin);
    e->end = json_integer_value(end);
    if (e->begin < 0 || e->end < e->begin || (uint64_t)e->end > r->data_n)
        return bad(r, BP_DATA_LOSS, e->name,
                   "data_offsets %" PRId64 " to %" PRId64 " lie outside the file's %zu bytes of data", e->begin, e->end,
                   r->data_n);
    if (e->end - e->begin != nbytes)
        return bad(r, BP_DATA_LOSS, e->name, "data_offsets give %" PRId64 " bytes where the shape needs %" PRId64,
                   e->end - e->begin, nbytes);
    return true;
}

static bool read_entry(reader *r, const char *name, json_t *v)
{
    int64_t nbytes = 0;
    entry e = {.name = name};
    if (!json_is_object(v))
        return bad(r, BP_DATA_LOSS, name, "an object with dtype, shape and data_offsets is expected");
    if (!module_is_name(name))
        return bad(r, BP_DATA_LOSS, name, "this is no name: parts joined by dots are expected");
    if (!read_dtype(r, &e, json_object_get(v, "dtype")) ||
        !read_shape(r, &e, json_object_get(v, "shape"), &nbytes) ||
        !read_offsets(r, &e, json_object_get(v, "data_offsets"), nbytes))
        return false;
    if (!vec_push(&r->entries, e)) {
        ctx_nomem(r->c);
        return false;
    }
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The format wants every byte to belong to exactly one tensor. */
static bool check_cover(reader *r)
{
    int64_t at = 0;
    if (r->entries.len)
        qsort(r->entries.at, r->entries.len, sizeof(entry), by_offset);
    for (uint32_t i = 0; i < r->entries.len; i++) {
        const entry *e = &r->entries.at[i];
        if (e->begin != at)
            return bad(r, BP_DATA_LOSS, e->name,
                       "data_offsets begin at %" PRId64 " where the data before end at %" PRId64, e->begin, at);
        at = e->end;
    }
    if ((uint64_t)at != r->data_n)
        return bad(r, BP_DATA_LOSS, "data", "%zu bytes, of which %" PRId64 " belong to a tensor", r->data_n, at);
    return true;
}

/* jansson drops a byte of a token when it finds no memory for it, and says nothing. Sizes and offsets so damaged do not
 * add up; a name is looked for in the text, in order. Escaped names are not checked. */
static bool name_is_in_text(reader *r, const char *name, size_t *at)
{
    const char *text = (const char *)r->f->data + 8, *end = (const char *)r->f->data + r->data_at;
    size_t n = strlen(name);
    if (memchr(text, '\\', (size_t)(end - text)))
        return true;
    for (const char *p = text + *at; (p = memmem(p, (size_t)(end - p), name, n)) != NULL; p++) {
        if (p[-1] == '"' && p + n < end && p[n] == '"') {
            *at = (size_t)(p - text) + n;
            return true;
        }
        if (p + 1 >= end)
            break;
    }
    ctx_nomem(r->c);
    return false;
}

static bool read_header(reader *r)
{
    const char *name;
    json_t *v;
    size_t at = 0;
    if (!read_json(r))
        return false;
    json_object_foreach(r->json, name, v) {
        if (!name_is_in_text(r, name, &at))
            return false;
        if (strcmp(name, "__metadata__") == 0) {
            if (!json_is_object(v))
                return bad(r, BP_DATA_LOSS, name, "an object is expected");
        } else if (!read_entry(r, name, v)) {
            return false;
        }
    }
    return check_cover(r);
}

/* -- tensors ------------------------------------------------------------------------------------------------------- */

static bool bools_are_sound(reader *r, const entry *e, const unsigned char *p)
{
    for (int64_t i = 0; e->dtype == BP_BOOL && i < e->end - e->begin; i++)
        if (p[i] > 1)
            return bad(r, BP_DATA_LOSS, e->name, "bool %" PRId64 " has the value %u: 0 or 1 is expected", i, p[i]);
    return true;
}

static bp_tensor *make_tensor(reader *r, const entry *e)
{
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    unsigned char *at = r->f->data + r->data_at + e->begin;
    size_t n = (size_t)(e->end - e->begin), item = dtype_size(e->dtype);
    memcpy(sizes, e->sizes, sizeof sizes);
    layout_contiguous(r->c, e->rank, sizes, strides);
    if (!ctx_ok(r->c) || !bools_are_sound(r, e, at))
        return NULL;
    tensor_meta m = {e->dtype, {BP_CPU, 0}, e->rank, sizes, strides, {0}};
    bool aligned = (uintptr_t)at % (item > 8 ? 8 : item) == 0;
    if (!n || !aligned) {
        bp_tensor *t = tensor_new(r->c, &m);
        if (t && n)
            memcpy(tensor_ptr(t), at, n);
        return t;
    }
    bp_tensor *t = tensor_wrap(r->c, &m, at, n, file_release, file_ref(r->f));
    if (!t)
        file_unref(r->f);
    return t;
}

static bool make_tensors(reader *r)
{
    for (uint32_t i = 0; i < r->entries.len; i++) {
        bp_tensor *t = make_tensor(r, &r->entries.at[i]);
        if (!t)
            return false;
        if (!vec_push(&r->tensors, t)) {
            tensor_unref(t);
            ctx_nomem(r->c);
            return false;
        }
    }
    return true;
}

static bp_status add_loaded(bp_ctx *c, bp_module *m, const char *name, bp_tensor *t)
{
    return m->load_role == BP_ROLE_BUFFER ? bp_module_add_buffer(c, m, name, t)
                                          : bp_module_add_parameter(c, m, name, t);
}

/* New names first, since adding them may fail and is then taken back; exchanging a tensor cannot fail. A name that the
 * module has as a buffer stays one. */
static bool fill_module(reader *r, bp_module *m)
{
    uint32_t before = m->entries.len;
    for (uint32_t i = 0; i < r->entries.len; i++) {
        const char *name = r->entries.at[i].name;
        if (module_find(m, name) >= 0 || add_loaded(r->c, m, name, r->tensors.at[i]) == BP_OK)
            continue;
        module_truncate(m, before);
        return false;
    }
    for (uint32_t i = 0; i < r->entries.len; i++) {
        module_entry *e = &m->entries.at[module_find(m, r->entries.at[i].name)];
        bp_tensor *old = e->t;
        e->t = tensor_ref(r->tensors.at[i]);
        tensor_unref(old);
    }
    return true;
}

bp_status bp_module_load(bp_ctx *c, bp_module *m, const char *path)
{
    if (!tensor_may_touch_memory(c, NULL))
        return c->diag.code;
    if (!m)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the module is NULL");
    reader r = {.c = c, .f = file_open(c, path)};
    bool done = r.f && read_header(&r) && make_tensors(&r) && fill_module(&r, m);
    for (uint32_t i = 0; i < r.tensors.len; i++)
        tensor_unref(r.tensors.at[i]);
    vec_fini(&r.tensors);
    vec_fini(&r.entries);
    json_decref(r.json);
    file_unref(r.f);
    return done ? BP_OK : c->diag.code;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

typedef struct { const module_entry *e; bp_tensor *dense; } saved;

/* Wide elements first, so that each tensor is aligned without padding; by name among equals. */
static int by_width(const void *a, const void *b)
{
    const saved *x = a, *y = b;
    size_t nx = dtype_size(x->e->t->dtype), ny = dtype_size(y->e->t->dtype);
    return nx != ny ? (nx > ny ? -1 : 1) : strcmp(x->e->name, y->e->name);
}

/* {"dtype": ..., "shape": [...], "data_offsets": [...]}; NULL: out of memory. */
static json_t *describe(const bp_tensor *t, size_t at, size_t n)
{
    json_t *shape = json_array();
    for (uint32_t d = 0; d < t->rank; d++)
        if (json_array_append_new(shape, json_integer(tensor_dim(t, d))) != 0)
            break;
    if (json_array_size(shape) != t->rank) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_get(t->dtype)->safetensors, "shape", shape, "data_offsets",
                     (json_int_t)at, (json_int_t)(at + n));
}

/* The header's text behind its length, padded to 8 bytes; to be freed with buf_fini. */
static bp_status print_header(bp_ctx *c, const saved *items, uint32_t n, buf *out)
{
    for (uint32_t i = 0; i < n; i++)
        if (!str_is_utf8(str_of(items[i].e->name)))
            return ctx_fail(c, BP_INVALID_ARGUMENT, "the name \"%s\" is not UTF-8", items[i].e->name);
    json_t *all = json_object();
    size_t at = 0;
    for (uint32_t i = 0; i < n && all; i++) {
        size_t nbytes = tensor_span_bytes(items[i].dense);
        json_t *one = describe(items[i].dense, at, nbytes);
        at += nbytes;
        if (!one || json_object_set_new(all, items[i].e->name, one) != 0) {
            json_decref(all);
            return ctx_nomem(c);
        }
    }
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (!text)
        return ctx_nomem(c);
    buf_pad(out, 8, '\0');
    buf_puts(out, text);
    free(text);
    buf_pad(out, (8 - out->n % 8) % 8, ' ');
    for (size_t i = 0; i < 8 && !out->failed; i++)
        out->s[i] = (char)((uint64_t)(out->n - 8) >> (8 * i) & 0xff);
    return out->failed ? ctx_nomem(c) : BP_OK;
}

static bp_status write_items(bp_ctx *c, const saved *items, uint32_t n, const char *path)
{
    buf head = {0};
    file_part *parts = calloc((size_t)n + 1, sizeof *parts);
    bp_status s = parts ? print_header(c, items, n, &head) : ctx_nomem(c);
    if (s == BP_OK) {
        parts[0] = (file_part){head.s, head.n};
        for (uint32_t i = 0; i < n; i++)
            parts[i + 1] = (file_part){tensor_ptr(items[i].dense), tensor_span_bytes(items[i].dense)};
        s = file_write(c, path, parts, n + 1);
    }
    free(parts);
    buf_fini(&head);
    return s;
}

bp_status bp_module_save(bp_ctx *c, const bp_module *m, const char *path)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!m || !path)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a module and a path are needed, and %s is NULL",
                        m ? "the path" : "the module");
    uint32_t n = m->entries.len, done = 0;
    saved *items = calloc((size_t)n + 1, sizeof *items);
    if (!items)
        return ctx_nomem(c);
    for (; done < n; done++) {
        items[done].e = &m->entries.at[done];
        if (!tensor_may_touch_memory(c, items[done].e->t) ||
            !(items[done].dense = tensor_dense_copy(c, items[done].e->t)))
            break;
    }
    if (done == n) {
        qsort(items, n, sizeof *items, by_width);
        write_items(c, items, n, path);
    }
    for (uint32_t i = 0; i < done; i++)
        tensor_unref(items[i].dense);
    free(items);
    return c->diag.code;
}

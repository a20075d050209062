/* NumPy's .npy: magic, version, a Python dict literal with descr, fortran_order and shape, then the elements.
 *
 * The header is read by a small tokenizer that never leaves it; whatever it does not understand is an error that names
 * the file and the field. Elements are copied, so that the file may change afterwards. */
#define BP_WITHOUT_OPERATORS
#include "host/import/file.h"
#include "host/tensor/tensor.h"
#include "sdk/base/checked.h"
#include <backplane/backplane.h>
#include <inttypes.h>
#include <string.h>

static const char MAGIC[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* Type codes of descr, without the byte order. */
static const struct { const char *code; bp_dtype dtype; } CODES[] = {
    {"b1", BP_BOOL}, {"u1", BP_U8},  {"i1", BP_I8},  {"i2", BP_I16}, {"i4", BP_I32}, {"i8", BP_I64},
    {"f2", BP_F16},  {"f4", BP_F32}, {"f8", BP_F64}, {"c8", BP_C64}, {"c16", BP_C128},
};
enum { NCODES = sizeof CODES / sizeof CODES[0] };

typedef struct {
    bp_ctx *c;
    const char *path;
    str rest;                    /* of the header */
    bool has_descr, has_order, has_shape;
    bp_dtype dtype;
    bool fortran;
    uint32_t rank;
    bp_dim sizes[TENSOR_MAX_RANK];
} npy_header;

/* -- the dict literal ---------------------------------------------------------------------------------------------- */

static bool bad(npy_header *h, bp_status code, const char *field, const char *what)
{
    file_fail(h->c, h->path, code, field, "%s", what);
    return false;
}

/* Takes the character if it comes next, behind blanks. */
static bool take(npy_header *h, char ch)
{
    h->rest = str_trim(h->rest);
    if (!h->rest.n || h->rest.s[0] != ch)
        return false;
    h->rest.s++;
    h->rest.n--;
    return true;
}

static bool take_string(npy_header *h, str *out)
{
    char q = take(h, '\'') ? '\'' : take(h, '"') ? '"' : 0;
    const char *end = q && h->rest.n ? memchr(h->rest.s, q, h->rest.n) : NULL;
    if (!end)
        return false;
    *out = (str){h->rest.s, (size_t)(end - h->rest.s)};
    h->rest.n -= out->n + 1;
    h->rest.s = end + 1;
    return true;
}

static bool take_word(npy_header *h, const char *word)
{
    h->rest = str_trim(h->rest);
    if (!str_starts(h->rest, word))
        return false;
    h->rest.s += strlen(word);
    h->rest.n -= strlen(word);
    return true;
}

/* A size; Python 2 wrote long integers with an L behind them. */
static bool take_size(npy_header *h, int64_t *out)
{
    h->rest = str_trim(h->rest);
    size_t digits = 0;
    int64_t v = 0;
    while (digits < h->rest.n && h->rest.s[digits] >= '0' && h->rest.s[digits] <= '9') {
        if (!checked_mul(v, 10, &v) || !checked_add(v, h->rest.s[digits] - '0', &v))
            return false;
        digits++;
    }
    h->rest.s += digits;
    h->rest.n -= digits;
    *out = v;
    if (digits && h->rest.n && h->rest.s[0] == 'L')
        take(h, 'L');
    return digits > 0;
}

static bool read_descr(npy_header *h)
{
    str s;
    if (!take_string(h, &s))
        return bad(h, BP_UNIMPLEMENTED, "descr", "a structured type is not supported");
    char order = s.n ? s.s[0] : '?';
    str code = order == '<' || order == '|' || order == '=' || order == '>' ? (str){s.s + 1, s.n - 1} : s;
    for (size_t i = 0; i < NCODES; i++) {
        if (!str_is(code, CODES[i].code))
            continue;
        h->dtype = CODES[i].dtype;
        if (order == '>' && dtype_size(h->dtype) > 1)
            return bad(h, BP_UNIMPLEMENTED, "descr", "big-endian elements are not supported");
        return true;
    }
    file_fail(h->c, h->path, BP_UNIMPLEMENTED, "descr", "type \"%.*s\" is not supported", (int)(s.n < 40 ? s.n : 40),
              s.s);
    return false;
}

static bool read_shape(npy_header *h)
{
    int64_t v;
    if (!take(h, '('))
        return bad(h, BP_DATA_LOSS, "shape", "a tuple is expected");
    while (!take(h, ')')) {
        if (h->rank == TENSOR_MAX_RANK)
            return bad(h, BP_UNIMPLEMENTED, "shape", "more than 64 dimensions are not supported");
        if (!take_size(h, &v))
            return bad(h, BP_DATA_LOSS, "shape", "a size between 0 and 2^63 - 1 is expected");
        h->sizes[h->rank++] = dim_const(v);
        if (!take(h, ',') && !(h->rest.n && h->rest.s[0] == ')'))
            return bad(h, BP_DATA_LOSS, "shape", "a comma or a closing parenthesis is expected");
    }
    return true;
}

static bool read_order(npy_header *h)
{
    h->fortran = take_word(h, "True");
    return h->fortran || take_word(h, "False") || bad(h, BP_DATA_LOSS, "fortran_order", "True or False is expected");
}

static bool read_item(npy_header *h)
{
    str key;
    if (!take_string(h, &key) || !take(h, ':'))
        return bad(h, BP_DATA_LOSS, "header", "a key in quotes and a colon are expected");
    bool *seen = str_is(key, "descr")           ? &h->has_descr
                 : str_is(key, "fortran_order") ? &h->has_order
                 : str_is(key, "shape")         ? &h->has_shape
                                                : NULL;
    if (!seen || *seen) {
        file_fail(h->c, h->path, BP_DATA_LOSS, "header", "key \"%.*s\" is %s", (int)(key.n < 40 ? key.n : 40), key.s,
                  seen ? "there twice" : "unknown");
        return false;
    }
    *seen = true;
    return seen == &h->has_descr ? read_descr(h) : seen == &h->has_order ? read_order(h) : read_shape(h);
}

static bool read_dict(npy_header *h)
{
    if (!take(h, '{'))
        return bad(h, BP_DATA_LOSS, "header", "an opening brace is expected");
    while (!take(h, '}')) {
        if (!read_item(h))
            return false;
        if (!take(h, ',') && !(h->rest.n && h->rest.s[0] == '}'))
            return bad(h, BP_DATA_LOSS, "header", "a comma or a closing brace is expected");
    }
    if (str_trim(h->rest).n)
        return bad(h, BP_DATA_LOSS, "header", "there is text behind the closing brace");
    const char *missing = !h->has_descr ? "descr" : !h->has_order ? "fortran_order" : !h->has_shape ? "shape" : NULL;
    return !missing || bad(h, BP_DATA_LOSS, missing, "it is missing");
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

/* Finds the header, and where the elements begin. */
static bool read_preamble(npy_header *h, const file_map *f, size_t *data_at)
{
    if (f->n < 10 || memcmp(f->data, MAGIC, sizeof MAGIC) != 0)
        return bad(h, BP_DATA_LOSS, "magic", "this is not a .npy file");
    unsigned version = f->data[6];
    if (version < 1 || version > 3) {
        file_fail(h->c, h->path, BP_UNIMPLEMENTED, "version", "version %u.%u is not supported: 1 to 3 are", version,
                  f->data[7]);
        return false;
    }
    size_t at = version == 1 ? 10 : 12, n = 0;
    if (f->n < at)
        return bad(h, BP_DATA_LOSS, "header", "the file ends inside it");
    for (size_t i = at; i-- > 8;)
        n = n << 8 | f->data[i];
    if (n > f->n - at)
        return bad(h, BP_DATA_LOSS, "header", "the file ends inside it");
    h->rest = (str){(const char *)f->data + at, n};
    *data_at = at + n;
    return true;
}

/* Bytes of the elements; false: the shape is absurd. */
static bool data_bytes(npy_header *h, size_t *out)
{
    int64_t n = (int64_t)dtype_size(h->dtype);
    bool empty = false, fits = true;
    for (uint32_t d = 0; d < h->rank; d++)
        empty |= h->sizes[d].value == 0;
    for (uint32_t d = 0; d < h->rank && !empty; d++)
        fits = fits && checked_mul(n, h->sizes[d].value, &n);
    *out = empty ? 0 : (size_t)n;
    return fits || bad(h, BP_DATA_LOSS, "shape", "the number of bytes does not fit 64 bits");
}

static void make_strides(npy_header *h, bp_dim *strides)
{
    if (!h->fortran) {
        layout_contiguous(h->c, h->rank, h->sizes, strides);
        return;
    }
    bp_dim step = dim_const(1);
    for (uint32_t d = 0; d < h->rank; d++) {
        strides[d] = step;
        if (!dim_is(h->sizes[d], 0))
            step = dim_mul(h->c, step, h->sizes[d]);
    }
}

static bool bools_are_sound(npy_header *h, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] > 1) {
            file_fail(h->c, h->path, BP_DATA_LOSS, "data", "bool %zu has the value %u: 0 or 1 is expected", i, p[i]);
            return false;
        }
    }
    return true;
}

static bp_tensor *read_tensor(npy_header *h, const file_map *f)
{
    size_t at = 0, want = 0;
    bp_dim strides[TENSOR_MAX_RANK];
    if (!read_preamble(h, f, &at) || !read_dict(h) || !data_bytes(h, &want))
        return NULL;
    if (f->n - at != want) {
        file_fail(h->c, h->path, BP_DATA_LOSS, "data", "%zu bytes where the shape needs %zu", f->n - at, want);
        return NULL;
    }
    if (h->dtype == BP_BOOL && !bools_are_sound(h, f->data + at, want))
        return NULL;
    make_strides(h, strides);
    if (!ctx_ok(h->c))
        return NULL;
    bp_tensor *t = tensor_new(h->c, &(tensor_meta){h->dtype, {BP_CPU, 0}, h->rank, h->sizes, strides, {0}});
    if (t && want)
        memcpy(tensor_ptr(t), f->data + at, want);
    return t;
}

bp_tensor *bp_load_npy(bp_ctx *c, const char *path)
{
    if (!tensor_may_touch_memory(c, NULL))
        return NULL;
    file_map *f = file_open(c, path);
    if (!f)
        return NULL;
    npy_header h = {.c = c, .path = path};
    bp_tensor *t = read_tensor(&h, f);
    file_unref(f);
    return scope_own(c, t);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static const char *code_of(bp_dtype dtype)
{
    for (size_t i = 0; i < NCODES; i++)
        if (CODES[i].dtype == dtype)
            return CODES[i].code;
    return NULL;
}

/* The whole preamble, padded so that elements begin at a multiple of 64 bytes. */
static void print_header(const bp_tensor *t, const char *code, buf *out)
{
    buf_add(out, MAGIC, sizeof MAGIC);
    buf_add(out, "\1\0\0\0", 4);
    char order = dtype_size(t->dtype) == 1 ? '|' : '<';
    buf_printf(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, code);
    for (uint32_t d = 0; d < t->rank; d++)
        buf_printf(out, "%s%" PRId64, d ? ", " : "", tensor_dim(t, d));
    buf_puts(out, t->rank == 1 ? ",), }" : "), }");
    buf_pad(out, 63 - out->n % 64, ' ');
    buf_putc(out, '\n');
    if (!out->failed) {
        out->s[8] = (char)((out->n - 10) & 0xff);
        out->s[9] = (char)((out->n - 10) >> 8);
    }
}

bp_status bp_save_npy(bp_ctx *c, const bp_tensor *t, const char *path)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!t || !path)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a tensor and a path are needed, and %s is NULL",
                        t ? "the path" : "the tensor");
    if (!tensor_may_touch_memory(c, t))
        return c->diag.code;
    const char *code = code_of(t->dtype);
    if (!code) {
        bp_status s = ctx_fail(c, BP_INVALID_ARGUMENT, ".npy has no type for %s", dtype_get(t->dtype)->torch);
        diag_hint(&c->diag, "save it as safetensors (bp_module_save), or cast it to float32");
        return s;
    }
    bp_tensor *dense = tensor_dense_copy(c, t);
    buf head = {0};
    bp_status s = c->diag.code;
    if (dense) {
        print_header(t, code, &head);
        const file_part parts[] = {{head.s, head.n}, {tensor_ptr(dense), tensor_span_bytes(dense)}};
        s = head.failed ? ctx_nomem(c) : file_write(c, path, parts, 2);
    }
    tensor_unref(dense);
    buf_fini(&head);
    return s;
}

/* Reading golden files: lines of gzip or plain text, JSON, and values as FORMAT.md spells them. */
#include "host/tools/golden_case.h"
#include "sdk/base/base64.h"
#include "sdk/base/checked.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { CHUNK = 1 << 16, DEEPEST = 32 };
static const size_t longest_line = (size_t)1 << 26; /* recorded ones are far below; a compressed file may be a bomb */

struct golden_lines {
    gzFile in;
    char *path;
    buf line;
    char chunk[CHUNK];
    size_t at, n; /* of the chunk */
    uint32_t number;
    int64_t size; /* of the file on disk */
};

/* -- lines --------------------------------------------------------------------------------------------------------- */

golden_lines *golden_open(bp_ctx *c, const char *path)
{
    struct stat st;
    golden_lines *in = calloc(1, sizeof *in);
    if (!in || !(in->path = strdup(path))) {
        free(in);
        ctx_nomem(c);
        return NULL;
    }
    in->in = gzopen(path, "rb");
    if (!in->in || stat(path, &st) != 0 || S_ISDIR(st.st_mode)) {
        ctx_fail(c, BP_NOT_FOUND, "the golden file \"%s\" cannot be read: %s", path,
                 in->in && errno == 0 ? "it is a folder" : strerror(errno ? errno : ENOMEM));
        golden_close(in);
        return NULL;
    }
    in->size = st.st_size;
    return in;
}

void golden_close(golden_lines *in)
{
    if (!in)
        return;
    if (in->in)
        gzclose(in->in);
    buf_fini(&in->line);
    free(in->path);
    free(in);
}

double golden_share(golden_lines *in)
{
    return in->size > 0 ? (double)gzoffset(in->in) / (double)in->size : 0;
}

/* Fills the chunk; false at the end, or after an error. */
static bool fill(bp_ctx *c, golden_lines *in)
{
    int code, n = gzread(in->in, in->chunk, CHUNK);
    const char *text = gzerror(in->in, &code);
    if (n < 0 || (n == 0 && code != Z_OK && code != Z_STREAM_END)) {
        ctx_fail(c, BP_DATA_LOSS, "\"%s\" is damaged after line %u: %s", in->path, in->number, text);
        return false;
    }
    in->at = 0;
    in->n = n > 0 ? (size_t)n : 0;
    return n > 0;
}

const char *golden_next_line(bp_ctx *c, golden_lines *in, size_t *n, uint32_t *number)
{
    buf_clear(&in->line);
    while (in->at < in->n || fill(c, in)) {
        const char *begin = in->chunk + in->at, *end = memchr(begin, '\n', in->n - in->at);
        size_t take = end ? (size_t)(end - begin) : in->n - in->at;
        buf_add(&in->line, begin, take);
        in->at += take + (end != NULL);
        in->number += end != NULL;
        if (in->line.failed || in->line.n > longest_line) {
            ctx_fail(c, BP_RESOURCE_EXHAUSTED, "line %u of \"%s\" is over %zu MiB long", in->number + 1, in->path,
                     longest_line >> 20);
            return NULL;
        }
        if (end && in->line.n == 0)
            continue;
        if (end)
            break;
    }
    if (!in->line.n || !ctx_ok(c))
        return NULL;
    *n = in->line.n;
    *number = in->number;
    return in->line.s;
}

/* -- what PyTorch gives node by node ------------------------------------------------------------------------------- */

static const struct { uint32_t crc, size; const char *outputs; } nodewise[] = {
#define GOLDEN_NODEWISE(crc, size, name, outputs) {crc, size, outputs},
#include "host/tools/golden_nodewise.def"
#undef GOLDEN_NODEWISE
};

json_t *golden_nodewise(const char *line, size_t n)
{
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)line, (uInt)n);
    for (size_t i = 0; i < sizeof nodewise / sizeof *nodewise; i++)
        if (nodewise[i].crc == crc && nodewise[i].size == n)
            return json_loads(nodewise[i].outputs, 0, NULL);
    return NULL;
}

/* -- values -------------------------------------------------------------------------------------------------------- */

bool golden_bad(golden_case *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!k->error[0])
        vsnprintf(k->error, sizeof k->error, fmt, ap);
    va_end(ap);
    return false;
}

void golden_case_fini(golden_case *k)
{
    json_decref(k->nodewise);
    for (uint32_t i = 0; i < k->tensors.len; i++)
        tensor_unref(k->tensors.at[i]);
    vec_fini(&k->tensors);
    arena_fini(&k->memory);
}

static bool read_dims(golden_case *k, const json_t *j, const char *what, bp_dim *out, uint32_t *n)
{
    size_t count = json_array_size(j);
    if (!json_is_array(j) || count > TENSOR_MAX_RANK)
        return golden_bad(k, "\"%s\" of a tensor is no list of at most %d integers", what, TENSOR_MAX_RANK);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(j, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return golden_bad(k, "\"%s\" of a tensor holds what is no size", what);
        out[i] = (bp_dim){json_integer_value(item), 0, 0};
    }
    *n = (uint32_t)count;
    return true;
}

static bool read_meta(golden_case *k, const json_t *j, tensor_meta *m)
{
    uint32_t nstrides = 0;
    const char *name = json_string_value(json_object_get(j, "dtype"));
    m->device = (bp_device){BP_CPU, 0};
    m->sizes = arena_array(&k->memory, TENSOR_MAX_RANK, sizeof *m->sizes);
    m->strides = arena_array(&k->memory, TENSOR_MAX_RANK, sizeof *m->strides);
    if (!m->sizes || !m->strides)
        return golden_bad(k, "out of memory");
    if (!name || !dtype_by_name(name, &m->dtype))
        return golden_bad(k, "a tensor has the unknown dtype \"%s\"", name ? name : "");
    if (!read_dims(k, json_object_get(j, "shape"), "shape", m->sizes, &m->rank) ||
        !read_dims(k, json_object_get(j, "stride"), "stride", m->strides, &nstrides))
        return false;
    return nstrides == m->rank || golden_bad(k, "a tensor has %u sizes and %u strides", m->rank, nstrides);
}

/* Elements from the first to the last, or -1 when that is absurd. */
static int64_t span(const tensor_meta *m)
{
    int64_t last = 0, step;
    for (uint32_t d = 0; d < m->rank; d++)
        if (m->sizes[d].value == 0)
            return 0;
    for (uint32_t d = 0; d < m->rank; d++)
        if (!checked_mul(m->sizes[d].value - 1, m->strides[d].value, &step) || !checked_add(last, step, &last))
            return -1;
    return last < INT64_MAX / 16 ? last + 1 : -1;
}

static bool fill_tensor(golden_case *k, bp_tensor *t, bp_dtype from, int64_t nelem, const char *text, size_t n)
{
    if (nelem == 0)
        return true;
    void *raw = t->dtype == from ? tensor_ptr(t) : arena_alloc(&k->memory, (size_t)nelem * dtype_size(from));
    if (!raw)
        return golden_bad(k, "out of memory");
    if (!base64_decode(raw, text, n))
        return golden_bad(k, "the data of a tensor are no base64");
    if (t->dtype != from)
        dtype_convert(t->dtype, tensor_ptr(t), 1, from, raw, 1, nelem);
    return true;
}

static bp_dtype widened(const golden_case *k, bp_dtype d)
{
    return k->widen && d == BP_F32 ? BP_F64 : d;
}

bp_tensor *golden_read_tensor(golden_case *k, const json_t *j)
{
    tensor_meta m = {0};
    const json_t *inner = json_object_get(j, "tensor"), *data;
    j = inner ? inner : j;
    data = json_object_get(j, "data");
    if (!json_is_object(j) || !json_is_string(data)) {
        golden_bad(k, "a tensor without data");
        return NULL;
    }
    if (!read_meta(k, j, &m))
        return NULL;
    bp_dtype from = m.dtype;
    int64_t nelem = span(&m), nbytes = base64_size(json_string_value(data), json_string_length(data));
    if (nelem < 0 || nbytes != nelem * (int64_t)dtype_size(from)) {
        golden_bad(k, "the data of a tensor are %lld bytes, and its sizes and strides ask for %lld elements of %zu",
                   (long long)nbytes, (long long)nelem, dtype_size(from));
        return NULL;
    }
    m.dtype = widened(k, from);
    bp_tensor *t = tensor_new(k->c, &m);
    if (!t || !vec_push(&k->tensors, t)) {
        golden_bad(k, "out of memory, or a tensor that cannot be made");
        tensor_unref(t);
        return NULL;
    }
    return fill_tensor(k, t, from, nelem, json_string_value(data), json_string_length(data)) ? t : NULL;
}

static bool read_float(golden_case *k, const json_t *j, bp_value *out)
{
    const char *text = json_string_value(j);
    char *end = NULL;
    *out = (bp_value){BP_VALUE_FLOAT, 0, {.f = {text ? strtod(text, &end) : 0, 0}}};
    return (text && *text && !*end) || golden_bad(k, "\"%s\" is no float", text ? text : "");
}

static bool read_big(golden_case *k, const json_t *j, bp_value *out)
{
    const char *text = json_string_value(j);
    char *end = NULL;
    errno = 0;
    *out = (bp_value){BP_VALUE_INT, 0, {.dim = {text ? strtoll(text, &end, 10) : 0, 0, 0}}};
    return (text && *text && !*end && errno == 0) || golden_bad(k, "\"%s\" is no 64-bit integer", text ? text : "");
}

static bool read_dtype(golden_case *k, const json_t *j, bp_value *out)
{
    bp_dtype d = 0;
    const char *name = json_string_value(j);
    if (!name || !dtype_by_name(name, &d))
        return golden_bad(k, "unknown dtype \"%s\"", name ? name : "");
    *out = (bp_value){BP_VALUE_DTYPE, 0, {.i = widened(k, d)}};
    return true;
}

static bool read_device(golden_case *k, const json_t *j, bp_value *out)
{
    const char *name = json_string_value(j);
    *out = (bp_value){BP_VALUE_DEVICE, 0, {.device = {BP_CPU, 0}}};
    return (name && !strncmp(name, "cpu", 3)) || golden_bad(k, "unknown device \"%s\"", name ? name : "");
}

static bool read_format(golden_case *k, const json_t *j, bp_value *out)
{
    static const struct { const char *name; int32_t format; } rows[] = {
        {"contiguous_format", BP_CONTIGUOUS}, {"preserve_format", BP_PRESERVE},
        {"channels_last", BP_CHANNELS_LAST},  {"channels_last_3d", BP_CHANNELS_LAST_3D}};
    const char *name = json_string_value(j);
    for (uint32_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name)) {
            *out = (bp_value){BP_VALUE_MEMORY_FORMAT, 0, {.i = rows[i].format}};
            return true;
        }
    return golden_bad(k, "unknown memory format \"%s\"", name ? name : "");
}

static bool read_layout(golden_case *k, const json_t *j, bp_value *out)
{
    const char *name = json_string_value(j);
    *out = (bp_value){BP_VALUE_LAYOUT, 0, {.i = BP_STRIDED}};
    return (name && !strcmp(name, "strided")) || golden_bad(k, "unknown layout \"%s\"", name ? name : "");
}

static bool read_node(golden_case *k, const json_t *j, bp_value *out)
{
    const char *name = json_string_value(j);
    node_id n = name && k->g ? graph_find(k->g, name) : 0;
    *out = graph_ref(n);
    return n || golden_bad(k, "there is no node \"%s\" before it is used", name ? name : "");
}

static bool read_tensor_value(golden_case *k, const json_t *j, bp_value *out)
{
    bp_tensor *t = golden_read_tensor(k, j);
    *out = (bp_value){BP_VALUE_TENSOR, 0, {.tensor = t}};
    return t != NULL;
}

static bool read_object(golden_case *k, const json_t *j, bp_value *out)
{
    static const struct { const char *key; bool (*read)(golden_case *k, const json_t *j, bp_value *out); } forms[] = {
        {"tensor", read_tensor_value}, {"node", read_node},     {"float", read_float},
        {"int", read_big},             {"dtype", read_dtype},   {"device", read_device},
        {"layout", read_layout},       {"memory_format", read_format}};
    if (json_object_size(j) == 1)
        for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++)
            if (json_object_get(j, forms[i].key))
                return forms[i].read(k, json_object_get(j, forms[i].key), out);
    return golden_bad(k, "a value of unknown form");
}

static bool read_list(golden_case *k, const json_t *j, bp_value *out, uint32_t depth);

static bool read_any(golden_case *k, const json_t *j, bp_value *out, uint32_t depth)
{
    *out = (bp_value){0};
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_NULL: return j != NULL || golden_bad(k, "a value is missing");
    case JSON_TRUE: case JSON_FALSE: *out = (bp_value){BP_VALUE_BOOL, 0, {.i = json_is_true(j)}}; return true;
    case JSON_INTEGER: *out = (bp_value){BP_VALUE_INT, 0, {.dim = {json_integer_value(j), 0, 0}}}; return true;
    case JSON_REAL: *out = (bp_value){BP_VALUE_FLOAT, 0, {.f = {json_real_value(j), 0}}}; return true;
    case JSON_STRING: *out = (bp_value){BP_VALUE_STRING, 0, {.str = json_string_value(j)}}; return true;
    case JSON_ARRAY: return read_list(k, j, out, depth);
    default: return read_object(k, j, out);
    }
}

static bool read_list(golden_case *k, const json_t *j, bp_value *out, uint32_t depth)
{
    size_t n = json_array_size(j);
    bp_value *items = depth < DEEPEST ? arena_array(&k->memory, n, sizeof *items) : NULL;
    if (!items)
        return golden_bad(k, "a list that is too deep or too long");
    for (size_t i = 0; i < n; i++)
        if (!read_any(k, json_array_get(j, i), &items[i], depth + 1))
            return false;
    *out = (bp_value){BP_VALUE_LIST, (uint32_t)n, {.items = items}};
    return true;
}

bool golden_read_value(golden_case *k, const json_t *j, bp_value *out)
{
    return read_any(k, j, out, 0);
}

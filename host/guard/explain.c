/* Words: the reason why a call does not fit, and a guard set as code_parts. */
#include "host/guard/set.h"
#include <inttypes.h>
#include <string.h>

/* PyTorch's names of its scalar types, by dtype. */
static const char *const SCALAR_NAMES[BP_DTYPE_END] = {
    [BP_BOOL] = "Bool", [BP_U8] = "Byte", [BP_I8] = "Char", [BP_I16] = "Short", [BP_I32] = "Int", [BP_I64] = "Long",
    [BP_F16] = "Half", [BP_BF16] = "BFloat16", [BP_F32] = "Float", [BP_F64] = "Double",
    [BP_C64] = "ComplexFloat", [BP_C128] = "ComplexDouble",
};
static const char *const DEVICE_NAMES[] = {[BP_CPU] = "cpu", [BP_CUDA] = "cuda", [BP_FAKE_DEVICE] = "fake"};

static const char *scalar_name(uint32_t dtype)
{
    return dtype < BP_DTYPE_END && SCALAR_NAMES[dtype] ? SCALAR_NAMES[dtype] : "?";
}

static const char *device_name(uint32_t kind)
{
    return kind < sizeof DEVICE_NAMES / sizeof DEVICE_NAMES[0] && DEVICE_NAMES[kind] ? DEVICE_NAMES[kind] : "?";
}

static const char *value_type_name(const bp_value *v)
{
    switch (v ? v->kind : BP_VALUE_NONE) {
    case BP_VALUE_NONE: return "NoneType";
    case BP_VALUE_TENSOR: return "Tensor";
    case BP_VALUE_BOOL: return "bool";
    case BP_VALUE_INT: return "int";
    case BP_VALUE_FLOAT: return "float";
    case BP_VALUE_STRING: return "str";
    default: return "another kind";
    }
}

/* Metadata unpacked from a guard's word: the inverse of guard_meta_word. */
typedef struct { uint8_t dtype, device_kind, rank, flags, device_index, reserved[3]; } meta_bytes;

static meta_bytes unpack(uint64_t word)
{
    meta_bytes m;
    _Static_assert(sizeof m == sizeof word, "the packed word");
    memcpy(&m, &word, sizeof m);
    return m;
}

static const char *source_name(const guard_set *g, uint32_t i)
{
    return i < g->nsources ? g->text + g->names[i] : "?";
}

/* -- reasons ------------------------------------------------------------------------------------------------------- */

static void put_flag(buf *out, uint8_t v)
{
    buf_printf(out, "%d", v);
}

static void put_number(buf *out, uint32_t v)
{
    buf_printf(out, "%" PRIu32, v);
}

static void put_dtype(buf *out, int32_t v)
{
    buf_puts(out, v == BP_DTYPE_UNSET ? "off" : dtype_get(v)->torch);
}

static void put_device(buf *out, bp_device v)
{
    buf_puts(out, device_name((uint32_t)v.kind));
    if (v.kind != BP_CPU || v.index)
        buf_printf(out, ":%d", (int)v.index);
}

static void explain_ambient(const guard_set *g, const guard_rec *r, const bp_ctx *c, buf *why)
{
    ambient expected;
    memcpy(&expected, g->words + r->at, sizeof expected);
    const char *sep = "GLOBAL_STATE changed: ";
#define AMBIENT_ROW(word, field, how)                                                         \
    if (memcmp(&expected.field, &c->ambient.field, sizeof expected.field) != 0) {             \
        buf_printf(why, "%s" #word " (expected ", sep);                                       \
        put_##how(why, expected.field);                                                       \
        buf_puts(why, ", actual ");                                                           \
        put_##how(why, c->ambient.field);                                                     \
        buf_puts(why, ")");                                                                   \
        sep = ", ";                                                                           \
    }
#include "host/guard/ambient.def"
#undef AMBIENT_ROW
}

/* The first size, then the first stride, that differs. masks: NULL, or 0 for those that may differ. */
static void explain_dims(const uint64_t *expected, const uint64_t *masks, const bp_tensor *t, buf *why)
{
    for (uint32_t k = 0; k < 2u * t->rank; k++) {
        if ((uint64_t)t->sizes[k].value == expected[k] || (masks && !masks[k]))
            continue;
        bool size = k < t->rank;
        buf_printf(why, "%s mismatch at index %u. expected %" PRId64 ", actual %" PRId64, size ? "size" : "stride",
                   size ? k : k - t->rank, (int64_t)expected[k], t->sizes[k].value);
        return;
    }
    buf_puts(why, "dynamic marks mismatch: sizes are marked that were not when it was captured");
}

static void explain_tensor(const guard_set *g, const guard_rec *r, const guard_inputs *in, buf *why)
{
    const char *name = source_name(g, r->source);
    const bp_tensor *t = guard_tensor(in, r->source);
    if (!t) {
        buf_printf(why, "expected type of '%s' to be a tensor type, but found %s", name,
                   value_type_name(guard_value(in, r->source)));
        return;
    }
    meta_bytes want = unpack(r->word), got = unpack(guard_meta_word(t));
    buf_printf(why, "tensor '%s' ", name);
    if (want.device_kind != got.device_kind)
        buf_printf(why, "dispatch key set mismatch. expected %s, actual %s", device_name(want.device_kind),
                   device_name(got.device_kind));
    else if (want.dtype != got.dtype)
        buf_printf(why, "dtype mismatch. expected %s, actual %s", scalar_name(want.dtype), scalar_name(got.dtype));
    else if (want.device_index != got.device_index)
        buf_printf(why, "Tensor device index mismatch. Expected device index to be %d, actual %d", want.device_index,
                   got.device_index);
    else if ((want.flags ^ got.flags) & TENSOR_REQUIRES_GRAD)
        buf_printf(why, "requires_grad mismatch. expected requires_grad=%d, actual requires_grad=%d",
                   want.flags & TENSOR_REQUIRES_GRAD, got.flags & TENSOR_REQUIRES_GRAD);
    else if (want.flags != got.flags)
        buf_printf(why, "is_leaf mismatch. expected is_leaf=%d, actual is_leaf=%d", (want.flags & TENSOR_IS_LEAF) != 0,
                   (got.flags & TENSOR_IS_LEAF) != 0);
    else if (want.rank != got.rank)
        buf_printf(why, "rank mismatch. expected %d, actual %d", want.rank, got.rank);
    else
        explain_dims(g->words + r->at, r->kind == GUARD_DYNAMIC ? g->words + r->at + 2 * t->rank : NULL, t, why);
}

static void put_value(buf *out, const bp_value *v)
{
    switch (v->kind) {
    case BP_VALUE_BOOL: buf_puts(out, v->v.i ? "True" : "False"); break;
    case BP_VALUE_INT: buf_printf(out, "%" PRId64, v->v.dim.value); break;
    case BP_VALUE_FLOAT: buf_double(out, v->v.f[0]); break;
    case BP_VALUE_STRING:
        if (v->v.str)
            buf_quote(out, v->v.str);
        else
            buf_puts(out, "NULL");
        break;
    default: buf_puts(out, value_type_name(v));
    }
}

/* What a guard of a plain value expects, as that value. */
static bp_value expected_value(const guard_set *g, const guard_rec *r)
{
    bp_value v = {BP_VALUE_NONE, 0, {0}};
    if (r->kind == GUARD_BOOL) {
        v.kind = BP_VALUE_BOOL;
        v.v.i = (int64_t)r->word;
    } else if (r->kind == GUARD_INT || r->kind == GUARD_INTEGER) {
        v.kind = BP_VALUE_INT;
        v.v.dim = dim_const((int64_t)r->word);
    } else if (r->kind == GUARD_FLOAT) {
        v.kind = BP_VALUE_FLOAT;
        memcpy(&v.v.f[0], &r->word, sizeof r->word);
    } else if (r->kind == GUARD_STRING) {
        v.kind = BP_VALUE_STRING;
        v.v.str = r->word ? (const char *)(g->words + r->at) : NULL;
    }
    return v;
}

static void explain_value(const guard_set *g, const guard_rec *r, const guard_inputs *in, buf *why)
{
    bp_value want = expected_value(g, r);
    const bp_value *got = guard_value(in, r->source);
    const char *name = source_name(g, r->source);
    if (!got || got->kind != want.kind) {
        buf_printf(why, "expected type of '%s' to be %s, but found %s", name, value_type_name(&want),
                   value_type_name(got));
        return;
    }
    buf_printf(why, "'%s' value mismatch. expected ", name);
    put_value(why, &want);
    buf_puts(why, ", actual ");
    put_value(why, got);
}

static void explain_distinct(const guard_set *g, const guard_rec *r, const guard_inputs *in, buf *why)
{
    const uint8_t *marks = guard_marks(g, r);
    for (uint32_t i = 0; i < r->word; i++) {
        const bp_tensor *t = marks[i] ? guard_tensor(in, i) : NULL;
        for (uint32_t j = i + 1; t && j < r->word; j++) {
            if (!marks[j] || (marks[i] == 2 && marks[j] == 2) || guard_tensor(in, j) != t)
                continue;
            buf_printf(why, "Duplicate tensor found where not expected! '%s' and '%s' are one tensor, and should not "
                            "alias", source_name(g, i), source_name(g, j));
            return;
        }
    }
}

static void explain_overlap(const guard_set *g, const guard_rec *r, const guard_inputs *in, buf *why)
{
    uint32_t other = (uint32_t)g->words[r->at];
    const bp_tensor *a = guard_tensor(in, r->source), *b = guard_tensor(in, other);
    buf_printf(why, "overlap mismatch. expected tensor '%s' to overlap tensor '%s' at byte offset %" PRId64 ", actual ",
               source_name(g, other), source_name(g, r->source), (int64_t)g->words[r->at + 1]);
    if (a && b && tensor_may_overlap(a, b))
        buf_printf(why, "%" PRId64, guard_distance(a, b));
    else
        buf_puts(why, "no overlap");
}

static void explain_disjoint(const guard_set *g, const guard_rec *r, const guard_inputs *in, buf *why)
{
    const uint8_t *marks = guard_marks(g, r);
    for (uint32_t i = 0; i < g->nsources; i++) {
        const bp_tensor *member = marks[i] ? guard_tensor(in, i) : NULL;
        for (uint32_t j = 0; member && j < in->n; j++) {
            const bp_tensor *t = j < g->nsources && marks[j] ? NULL : guard_tensor(in, j);
            if (!t || !tensor_may_overlap(member, t))
                continue;
            buf_printf(why, "overlap mismatch. expected tensor '%s' to share no bytes with tensor '%s' (tensor '%s' is "
                            "written), actual overlap at byte offset %" PRId64,
                       source_name(g, j), source_name(g, i), source_name(g, r->source), guard_distance(member, t));
            return;
        }
    }
}

bool guard_explain(const guard_set *g, const bp_ctx *c, const guard_inputs *in, buf *why)
{
    const guard_rec *r = guard_first_failure(g, c, in);
    if (!r)
        return false;
    switch (r->kind) {
    case GUARD_AMBIENT: explain_ambient(g, r, c, why); break;
    case GUARD_COUNT:
        buf_printf(why, "number of arguments mismatch. expected %" PRIu64 ", actual %u", r->word, in->nargs);
        break;
    case GUARD_TENSOR:
    case GUARD_DYNAMIC: explain_tensor(g, r, in, why); break;
    case GUARD_SHAPE: guard_shape_explain(g, in, why); break;
    case GUARD_VERSION:
        buf_printf(why, "constant '%s' was written since it was baked", source_name(g, r->source));
        break;
    case GUARD_ALIAS:
        buf_printf(why, "alias mismatch. expected '%s' to be the very tensor '%s', actual another object",
                   source_name(g, r->source), source_name(g, (uint32_t)r->word));
        break;
    case GUARD_DISTINCT: explain_distinct(g, r, in, why); break;
    case GUARD_OVERLAP: explain_overlap(g, r, in, why); break;
    case GUARD_DISJOINT: explain_disjoint(g, r, in, why); break;
    default: explain_value(g, r, in, why);
    }
    return true;
}

/* -- code_parts ---------------------------------------------------------------------------------------------------- */

static void put_source(const guard_set *g, uint32_t i, buf *out)
{
    bool attribute = i < g->nsources && g->roles[i] != BP_ROLE_USER && g->roles[i] != BP_ROLE_UNSET;
    buf_printf(out, attribute ? "L['m'].%s" : "L['%s']", source_name(g, i));
}

void guard_print_source(const guard_source *s, uint8_t kind, uint32_t dim, buf *out)
{
    bool attribute = s->role != BP_ROLE_USER && s->role != BP_ROLE_UNSET;
    buf_printf(out, attribute ? "L['m'].%s" : "L['%s']", s->name);
    if (kind != SYM_VALUE)
        buf_printf(out, ".%s()[%u]", kind == SYM_STRIDE ? "stride" : "size", dim);
}

/* masks: NULL, or 0 for what may differ. */
static void print_tuple(const uint64_t *at, const uint64_t *masks, uint32_t n, buf *out)
{
    buf_putc(out, '(');
    for (uint32_t k = 0; k < n; k++) {
        buf_puts(out, k ? ", " : "");
        if (masks && !masks[k])
            buf_puts(out, "None");
        else
            buf_printf(out, "%" PRId64, (int64_t)at[k]);
    }
    buf_puts(out, n == 1 ? ",)\n" : ")\n");
}

/* The sizes that may be marked dynamic. */
static void print_marks(const guard_set *g, const guard_rec *r, uint64_t marked, buf *out)
{
    if (!marked)
        buf_puts(out, "not ");
    buf_puts(out, "hasattr(");
    put_source(g, r->source, out);
    buf_puts(out, ", '_dynamo_dynamic_indices')");
    const char *sep = " <= {";
    for (uint32_t d = 0; d < 64; d++) {
        if (!(marked >> d & 1))
            continue;
        buf_printf(out, "%s%u", sep, d);
        sep = ", ";
    }
    buf_puts(out, marked ? "}\n" : "\n");
}

static void print_tensor(const guard_set *g, const guard_rec *r, buf *out)
{
    meta_bytes m = unpack(r->word);
    const uint64_t *dims = g->words + r->at, *masks = r->kind == GUARD_DYNAMIC ? dims + 2 * m.rank : NULL;
    put_source(g, r->source, out);
    buf_printf(out, ".dtype == torch.%s\n", dtype_get(m.dtype)->torch);
    put_source(g, r->source, out);
    buf_puts(out, ".device == ");
    put_device(out, (bp_device){m.device_kind, m.device_index});
    buf_putc(out, '\n');
    put_source(g, r->source, out);
    buf_printf(out, ".requires_grad == %s\n", m.flags & TENSOR_REQUIRES_GRAD ? "True" : "False");
    put_source(g, r->source, out);
    buf_printf(out, ".ndimension() == %d\n", m.rank);
    put_source(g, r->source, out);
    buf_puts(out, ".size() == ");
    print_tuple(dims, masks, m.rank, out);
    put_source(g, r->source, out);
    buf_puts(out, ".stride() == ");
    print_tuple(dims + m.rank, masks ? masks + m.rank : NULL, m.rank, out);
    print_marks(g, r, masks ? dims[4 * m.rank] : 0, out);
}

static void print_value(const guard_set *g, const guard_rec *r, buf *out)
{
    bp_value want = expected_value(g, r);
    put_source(g, r->source, out);
    buf_puts(out, r->kind == GUARD_BOOL || r->kind == GUARD_NONE ? " is " : " == ");
    if (r->kind == GUARD_NONE)
        buf_puts(out, "None");
    else
        put_value(out, &want);
    buf_putc(out, '\n');
}

static void print_marked(const guard_set *g, const guard_rec *r, const char *name, const char *end, buf *out)
{
    const uint8_t *marks = guard_marks(g, r);
    const char *sep = "";
    buf_printf(out, "%s(", name);
    for (uint32_t i = 0; i < g->nsources; i++) {
        if (!marks[i])
            continue;
        buf_puts(out, sep);
        put_source(g, i, out);
        sep = ", ";
    }
    buf_puts(out, end);
}

static void print_ambient(const guard_set *g, const guard_rec *r, buf *out)
{
    ambient m;
    memcpy(&m, g->words + r->at, sizeof m);
    const char *sep = "";
    buf_puts(out, "___check_global_state()  # ");
#define AMBIENT_ROW(word, field, how)       \
    buf_printf(out, "%s" #word "=", sep);   \
    put_##how(out, m.field);                \
    sep = ", ";
#include "host/guard/ambient.def"
#undef AMBIENT_ROW
    buf_putc(out, '\n');
}

static void print_pair(const guard_set *g, const guard_rec *r, buf *out)
{
    if (r->kind == GUARD_ALIAS) {
        put_source(g, r->source, out);
        buf_puts(out, " is ");
        put_source(g, (uint32_t)r->word, out);
        buf_putc(out, '\n');
        return;
    }
    buf_puts(out, "___check_overlap(");
    put_source(g, r->source, out);
    buf_puts(out, ", ");
    put_source(g, (uint32_t)g->words[r->at], out);
    buf_printf(out, ", offset=%" PRId64 ")\n", (int64_t)g->words[r->at + 1]);
}

void guard_print(const guard_set *g, buf *out)
{
    for (uint32_t i = 0; i < g->nrecs; i++) {
        const guard_rec *r = &g->recs[i];
        switch (r->kind) {
        case GUARD_AMBIENT: print_ambient(g, r, out); break;
        case GUARD_COUNT: buf_printf(out, "len(args) == %" PRIu64 "\n", r->word); break;
        case GUARD_TENSOR:
        case GUARD_DYNAMIC: print_tensor(g, r, out); break;
        case GUARD_INTEGER:
            buf_puts(out, "type(");
            put_source(g, r->source, out);
            buf_puts(out, ") == int\n");
            break;
        case GUARD_SHAPE: guard_shape_print(g, out); break;
        case GUARD_VERSION:
            put_source(g, r->source, out);
            buf_printf(out, "._version == %" PRIu64 "\n", r->word);
            break;
        case GUARD_ALIAS:
        case GUARD_OVERLAP: print_pair(g, r, out); break;
        case GUARD_DISTINCT: print_marked(g, r, "___check_tensors", ", no_aliasing=True)\n", out); break;
        case GUARD_DISJOINT: print_marked(g, r, "___check_no_overlap", ")\n", out); break;
        default: print_value(g, r, out);
        }
    }
}

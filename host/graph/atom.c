/* Reading values of canonical text that name no node: numbers, strings, words, data types, devices. */
#include "host/graph/atom.h"
#include "host/graph/print.h"

bp_status atom_dtype(lexer *x, bp_dtype *out)
{
    const char *names[BP_DTYPE_END];
    uint32_t n = 0;
    lex_place at = lex_here(x);
    str w = lex_word(x);
    if (!w.n)
        return lex_unexpected(x, "a data type");
    for (bp_dtype d = 1; d < BP_DTYPE_END; d++) {
        if (str_is(w, dtype_get(d)->brief)) {
            *out = d;
            return BP_OK;
        }
        names[n++] = dtype_get(d)->brief;
    }
    return lex_unknown(x, at, "a data type", w, names, n);
}

bp_status atom_device(lexer *x, bp_device *out)
{
    static const char *const names[] = {"cpu", "cuda", "fake"};
    static const int32_t kinds[] = {BP_CPU, BP_CUDA, BP_FAKE_DEVICE};
    int64_t index = 0;
    lex_place at = lex_here(x);
    str w = lex_word(x);
    if (!w.n)
        return lex_unexpected(x, "a device");
    for (uint32_t i = 0; i < 3; i++)
        if (str_is(w, names[i])) {
            if (lex_take(x, ':'))
                TRY(lex_int(x, "the index of a device", 0, &index));
            *out = (bp_device){kinds[i], (int32_t)(index & 0xff)};
            return BP_OK;
        }
    return lex_unknown(x, at, "a device", w, names, 3);
}

static bp_status read_number(lexer *x, bp_value *out)
{
    bool is_float;
    int64_t i = 0;
    double f = 0;
    TRY(lex_number(x, &is_float, &i, &f));
    *out = (bp_value){is_float ? BP_VALUE_FLOAT : BP_VALUE_INT, 0, {0}};
    if (is_float)
        out->v.f[0] = f;
    else
        out->v.dim.value = i;
    return BP_OK;
}

/* A float or an integer as a double. */
static bp_status read_part(lexer *x, double *out)
{
    bp_value v;
    TRY(read_number(x, &v));
    *out = v.kind == BP_VALUE_FLOAT ? v.v.f[0] : (double)v.v.dim.value;
    return BP_OK;
}

static bp_status read_complex(lexer *x, bp_value *out)
{
    out->kind = BP_VALUE_COMPLEX;
    TRY(read_part(x, &out->v.f[0]));
    TRY(lex_expect(x, ',', "',' and the imaginary part"));
    return read_part(x, &out->v.f[1]);
}

static bp_status read_format(lexer *x, bp_value *out)
{
    const char *names[BP_CHANNELS_LAST_3D];
    lex_place at = lex_here(x);
    str w = lex_word(x);
    for (int32_t f = BP_CONTIGUOUS; f <= BP_CHANNELS_LAST_3D; f++) {
        names[f - 1] = print_memory_format(f, true);
        if (str_is(w, names[f - 1])) {
            *out = (bp_value){BP_VALUE_MEMORY_FORMAT, 0, {.i = f}};
            return BP_OK;
        }
    }
    return lex_unknown(x, at, "a memory format", w, names, BP_CHANNELS_LAST_3D);
}

static bp_status read_layout(lexer *x, bp_value *out)
{
    static const char *const names[] = {"strided"};
    lex_place at = lex_here(x);
    str w = lex_word(x);
    *out = (bp_value){BP_VALUE_LAYOUT, 0, {.i = BP_STRIDED}};
    return str_is(w, names[0]) ? BP_OK : lex_unknown(x, at, "a layout", w, names, 1);
}

static bp_status read_dtype_value(lexer *x, bp_value *out)
{
    bp_dtype d = 0;
    TRY(atom_dtype(x, &d));
    *out = (bp_value){BP_VALUE_DTYPE, 0, {.i = d}};
    return BP_OK;
}

static bp_status read_device_value(lexer *x, bp_value *out)
{
    bp_device d = {0, 0};
    TRY(atom_device(x, &d));
    *out = (bp_value){BP_VALUE_DEVICE, 0, {.device = d}};
    return BP_OK;
}

static bp_status read_word_value(lexer *x, bp_value *out)
{
    static const struct { const char *name; bp_status (*read)(lexer *x, bp_value *out); } forms[] = {
        {"complex", read_complex}, {"dtype", read_dtype_value}, {"device", read_device_value},
        {"layout", read_layout},   {"format", read_format}};
    static const char *const names[] = {"None", "True", "False", "inf", "nan", "complex", "dtype",
                                        "device", "layout", "format"};
    lex_place at = lex_here(x);
    str w = lex_word(x);
    *out = (bp_value){0};
    if (str_is(w, "None"))
        return BP_OK;
    if (str_is(w, "True") || str_is(w, "False")) {
        *out = (bp_value){BP_VALUE_BOOL, 0, {.i = w.s[0] == 'T'}};
        return BP_OK;
    }
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (str_is(w, forms[i].name)) {
            TRY(lex_expect(x, '(', "'('"));
            TRY(forms[i].read(x, out));
            return lex_expect(x, ')', "')'");
        }
    return lex_unknown(x, at, "a value", w, names, sizeof names / sizeof *names);
}

bp_status atom_read(lexer *x, arena *a, bp_value *out)
{
    char ch = lex_at_end(x) ? 0 : *x->at;
    if (ch == '"') {
        *out = (bp_value){BP_VALUE_STRING, 0, {0}};
        return lex_string(x, a, "a string", &out->v.str);
    }
    if (ch == '-' || (ch >= '0' && ch <= '9'))
        return read_number(x, out);
    lexer ahead = *x;
    str w = lex_word(&ahead);
    if (str_is(w, "inf") || str_is(w, "nan"))
        return read_number(x, out);
    return w.n ? read_word_value(x, out) : lex_unexpected(x, "a value");
}

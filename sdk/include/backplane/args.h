/* How the functions and macros of aten.h take arguments and give results.
 *
 * A function bp_aten_<op>_<overload> takes every argument of its schema, in order. A macro bp_<op> picks the overload,
 * takes what has no default by position, and the rest by name:
 *
 *     bp_add(c, t, 1)                      bp_add(c, a, b, .alpha = BP_SCALAR(2))
 *     bp_sum(c, b, .dim = BP_DIMS(1))      bp_conv2d(c, x, w, .bias = b, .stride = BP_DIMS(2, 2))
 *
 * Of an argument with a default, a zero of its C type means "not given". So a number whose default is not zero, or that
 * may be absent, is a bp_scalar: .end_dim = BP_SCALAR(0). In C++ the same names are functions with default arguments.
 *
 * The same holds for the functions: an unset scalar, list, string, dtype, layout, device or memory format is what the
 * schema has as the default; a NULL tensor is None.
 *
 * A compound literal with commas stands in parentheses, as in any macro. A macro names the argument whose type picks
 * the overload twice, so macros nested in that place double their text at each level; nested in the first place they
 * do not. */
#ifndef BP_ARGS_H
#define BP_ARGS_H

#include <backplane/types.h>

BP_EXTERN_C_BEGIN

typedef struct bp_ctx bp_ctx;
typedef struct bp_tensor bp_tensor;

static inline bp_dim bp_dim_of(int64_t v) { bp_dim d = {0, 0, 0}; d.value = v; return d; }
static inline bp_scalar bp_scalar_bool(int v) { bp_scalar s = {BP_SCALAR_BOOL, 0, {0}}; s.v.i = v != 0; return s; }
static inline bp_scalar bp_scalar_int(int64_t v) { bp_scalar s = {BP_SCALAR_INT, 0, {0}}; s.v.i = v; return s; }
static inline bp_scalar bp_scalar_float(double v) { bp_scalar s = {BP_SCALAR_FLOAT, 0, {0}}; s.v.f[0] = v; return s; }
static inline bp_scalar bp_scalar_complex(double re, double im)
{
    bp_scalar s = {BP_SCALAR_COMPLEX, 0, {0}};
    s.v.f[0] = re;
    s.v.f[1] = im;
    return s;
}
/* A size as a number: stays symbolic under capture. */
static inline bp_scalar bp_scalar_dim(bp_dim d)
{
    bp_scalar s = {BP_SCALAR_INT, 0, {0}};
    s.sym = d.sym;
    s.v.i = d.value;
    return s;
}

/* Lists. `given` 0 is "not given"; an empty list has given 1 and n 0. The items are borrowed for the call. */
typedef struct { const bp_dim *at; uint32_t n, given; } bp_dims;
typedef struct { const double *at; uint32_t n, given; } bp_floats;
typedef struct { const bp_scalar *at; uint32_t n, given; } bp_scalars;
typedef struct { bp_tensor *const *at; uint32_t n; } bp_tensors;

/* Several results. The tensors belong to the scope, as a single one does; after an error all are NULL. */
typedef struct { bp_tensor *at[2]; } bp_tensor2;
typedef struct { bp_tensor *at[3]; } bp_tensor3;
typedef struct { bp_tensor *at[4]; } bp_tensor4;
typedef struct { bp_tensor *at[5]; } bp_tensor5;
typedef struct { bp_tensor *at[6]; } bp_tensor6;
typedef struct { bp_tensor *at[7]; } bp_tensor7;
typedef struct { bp_tensor *at[8]; } bp_tensor8;

/* -- behind the macros --------------------------------------------------------------------------------------------- */

/* Writes down where the next operator was called. */
BP_EXPORT void bp_site_(bp_ctx *c, const char *file, int32_t line);
/* Fails with code and text, unless an error is pending. */
BP_EXPORT void bp_raise_(bp_ctx *c, bp_status code, const char *text);

static inline bp_dim bp_dim_same_(bp_dim d) { return d; }
static inline bp_scalar bp_scalar_same_(bp_scalar s) { return s; }
static inline int64_t bp_int_of_(bp_scalar s) { return s.kind == BP_SCALAR_FLOAT ? (int64_t)s.v.f[0] : s.v.i; }
static inline double bp_float_of_(bp_scalar s) { return s.kind == BP_SCALAR_FLOAT ? s.v.f[0] : (double)s.v.i; }
/* The same where an operator takes a plain number: one that stays symbolic is an error there. */
static inline bp_scalar bp_plain_(bp_ctx *c, bp_scalar s)
{
    if (s.sym)
        bp_raise_(c, BP_UNIMPLEMENTED, "a symbolic number stands where the operator takes a plain one: ask for it with "
                                       "bp_item_int or bp_item_float");
    return s;
}
static inline int64_t bp_int_in_(bp_ctx *c, bp_scalar s) { return bp_int_of_(bp_plain_(c, s)); }
static inline double bp_float_in_(bp_ctx *c, bp_scalar s) { return bp_float_of_(bp_plain_(c, s)); }
static inline bp_dim bp_dim_of_scalar_(bp_scalar s)
{
    bp_dim d = {0, 0, 0};
    d.value = bp_int_of_(s);
    d.sym = s.sym;
    return d;
}

/* A tensor or a number, as its type says. */
typedef struct { bp_tensor *tensor; bp_scalar number; } bp_operand;
static inline bp_operand bp_any_scalar_(bp_scalar s) { bp_operand a = {0, {0, 0, {0}}}; a.number = s; return a; }
static inline bp_operand bp_any_tensor_(bp_tensor *t) { bp_operand a = {0, {0, 0, {0}}}; a.tensor = t; return a; }
static inline bp_operand bp_any_bool_(int v) { return bp_any_scalar_(bp_scalar_bool(v)); }
static inline bp_operand bp_any_int_(int64_t v) { return bp_any_scalar_(bp_scalar_int(v)); }
static inline bp_operand bp_any_float_(double v) { return bp_any_scalar_(bp_scalar_float(v)); }
static inline bp_operand bp_any_dim_(bp_dim d) { return bp_any_scalar_(bp_scalar_dim(d)); }
static inline int bp_is_number_(bp_operand a) { return a.number.kind != BP_SCALAR_UNSET; }

BP_EXTERN_C_END

#ifndef __cplusplus
/* A number of any kind as a bp_scalar. */
#define BP_SCALAR(x)                                                                                           \
    _Generic((x), bp_scalar: bp_scalar_same_, bp_dim: bp_scalar_dim, _Bool: bp_scalar_bool, float: bp_scalar_float, \
             double: bp_scalar_float, long double: bp_scalar_float, default: bp_scalar_int)(x)
/* An integer or a bp_dim as a bp_dim. */
#define BP_DIM(x) _Generic((x), bp_dim: bp_dim_same_, bp_scalar: bp_dim_of_scalar_, default: bp_dim_of)(x)
#define BP_ANY_(x)                                                                                             \
    _Generic((x), bp_tensor *: bp_any_tensor_, bp_scalar: bp_any_scalar_, bp_dim: bp_any_dim_, _Bool: bp_any_bool_, \
             float: bp_any_float_, double: bp_any_float_, long double: bp_any_float_, default: bp_any_int_)(x)

/* Lists as arguments, of 1 to 16 items. Those of BP_DIMS are integers or bp_dim, those of BP_TENSORS may be NULL. */
#define BP_DIMS(...) \
    ((bp_dims){(const bp_dim[]){BP_EACH_(BP_DIM, __VA_ARGS__)}, BP_COUNT_(__VA_ARGS__), 1})
#define BP_FLOATS(...) ((bp_floats){(const double[]){__VA_ARGS__}, BP_COUNT_(__VA_ARGS__), 1})
#define BP_SCALARS(...) \
    ((bp_scalars){(const bp_scalar[]){BP_EACH_(BP_SCALAR, __VA_ARGS__)}, BP_COUNT_(__VA_ARGS__), 1})
#define BP_TENSORS(...) ((bp_tensors){(bp_tensor *const[]){__VA_ARGS__}, BP_COUNT_(__VA_ARGS__)})
/* The empty lists. */
#define BP_NO_DIMS ((bp_dims){0, 0, 1})
#define BP_NO_TENSORS ((bp_tensors){0, 0})

#define BP_COUNT_(...) BP_PICK_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define BP_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, pick, ...) pick
#define BP_PASTE_(a, b) BP_PASTE_NOW_(a, b)
#define BP_PASTE_NOW_(a, b) a##b
#define BP_EACH_(f, ...) BP_PASTE_(BP_EACH, BP_COUNT_(__VA_ARGS__))(f, __VA_ARGS__)
#define BP_EACH1(f, a) f(a)
#define BP_EACH2(f, a, b) f(a), f(b)
#define BP_EACH3(f, a, b, c) f(a), BP_EACH2(f, b, c)
#define BP_EACH4(f, a, b, ...) f(a), f(b), BP_EACH2(f, __VA_ARGS__)
#define BP_EACH5(f, a, b, ...) f(a), f(b), BP_EACH3(f, __VA_ARGS__)
#define BP_EACH6(f, a, b, ...) f(a), f(b), BP_EACH4(f, __VA_ARGS__)
#define BP_EACH7(f, a, b, ...) f(a), f(b), BP_EACH5(f, __VA_ARGS__)
#define BP_EACH8(f, a, b, ...) f(a), f(b), BP_EACH6(f, __VA_ARGS__)
#define BP_EACH9(f, a, b, ...) f(a), f(b), BP_EACH7(f, __VA_ARGS__)
#define BP_EACH10(f, a, b, ...) f(a), f(b), BP_EACH8(f, __VA_ARGS__)
#define BP_EACH11(f, a, b, ...) f(a), f(b), BP_EACH9(f, __VA_ARGS__)
#define BP_EACH12(f, a, b, ...) f(a), f(b), BP_EACH10(f, __VA_ARGS__)
#define BP_EACH13(f, a, b, ...) f(a), f(b), BP_EACH11(f, __VA_ARGS__)
#define BP_EACH14(f, a, b, ...) f(a), f(b), BP_EACH12(f, __VA_ARGS__)
#define BP_EACH15(f, a, b, ...) f(a), f(b), BP_EACH13(f, __VA_ARGS__)
#define BP_EACH16(f, a, b, ...) f(a), f(b), BP_EACH14(f, __VA_ARGS__)
#else

#include <initializer_list>
#include <type_traits>

namespace bp_ {

/* What a parameter of an overload takes: any number, a size, a tensor or a number, a list. Lists point into the braces
 * of the call, which live until its end. */
struct number {
    bp_scalar s;
    number() : s() {}
    number(bp_scalar v) : s(v) {}
    number(bp_dim d) : s(bp_scalar_dim(d)) {}
    template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>
    number(T v)
        : s(std::is_same<T, bool>::value             ? bp_scalar_bool(static_cast<int>(v))
            : std::is_floating_point<T>::value ? bp_scalar_float(static_cast<double>(v))
                                               : bp_scalar_int(static_cast<int64_t>(v)))
    {
    }
};

struct size {
    bp_dim d;
    size(bp_dim v) : d(v) {}
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    size(T v) : d(bp_dim_of(static_cast<int64_t>(v)))
    {
    }
};

struct any {
    bp_operand a;
    any(bp_tensor *t) : a(bp_any_tensor_(t)) {}
    template <class T, class = typename std::enable_if<std::is_convertible<T, number>::value>::type>
    any(T v) : a(bp_any_scalar_(number(v).s))
    {
    }
};

struct sizes {
    bp_dims list;
    sizes() : list() {}
    sizes(bp_dims v) : list(v) {}
    sizes(std::initializer_list<size> v) : list()
    {
        static_assert(sizeof(size) == sizeof(bp_dim), "a list of sizes is an array of bp_dim");
        const size *first = v.begin();
        list.at = v.size() ? &first->d : nullptr;
        list.n = static_cast<uint32_t>(v.size());
        list.given = 1;
    }
};

struct tensors {
    bp_tensors list;
    tensors() : list() {}
    tensors(bp_tensors v) : list(v) {}
    tensors(std::initializer_list<bp_tensor *> v) : list()
    {
        bp_tensor *const *first = v.begin();
        list.at = first;
        list.n = static_cast<uint32_t>(v.size());
    }
};

struct scalars {
    bp_scalars list;
    scalars() : list() {}
    scalars(bp_scalars v) : list(v) {}
    scalars(std::initializer_list<number> v) : list()
    {
        static_assert(sizeof(number) == sizeof(bp_scalar), "a list of numbers is an array of bp_scalar");
        const number *first = v.begin();
        list.at = v.size() ? &first->s : nullptr;
        list.n = static_cast<uint32_t>(v.size());
        list.given = 1;
    }
};

struct floats {
    bp_floats list;
    floats() : list() {}
    floats(bp_floats v) : list(v) {}
    floats(std::initializer_list<double> v) : list()
    {
        const double *first = v.begin();
        list.at = first;
        list.n = static_cast<uint32_t>(v.size());
        list.given = 1;
    }
};

} // namespace bp_

#define BP_SCALAR(x) (bp_::number(x).s)
#define BP_DIM(x) (bp_::size(x).d)
#define BP_DIMS(...) (bp_::sizes{__VA_ARGS__}.list)
#define BP_FLOATS(...) (bp_::floats{__VA_ARGS__}.list)
#define BP_SCALARS(...) (bp_::scalars{__VA_ARGS__}.list)
#define BP_TENSORS(...) (bp_::tensors{__VA_ARGS__}.list)
#define BP_NO_DIMS (bp_::sizes(std::initializer_list<bp_::size>{}).list)
#define BP_NO_TENSORS (bp_::tensors().list)
#endif
#endif

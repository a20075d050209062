/* A thin C++ layer (C++17) over backplane.h: exceptions kept inside, scopes and handles that end by themselves.
 *
 *     static void model(bp_ctx *c, bp_frame *f) { bp_return(f, bp_relu(c, bp_arg(f, 0, "x"))); }
 *     bp::callable g(bp_compile_cxx(c, model, &options));
 *
 * Operators need nothing of this file: <backplane/aten.h> gives C++ overloads with default arguments. */
#ifndef BP_BACKPLANE_HPP
#define BP_BACKPLANE_HPP

#include <backplane/backplane.h>
#include <exception>

namespace bp {

/* A C++ function as a captured one. An exception that escapes it becomes an INTERNAL error of the context with its
 * what(): nothing may unwind through C. */
template <void (*F)(bp_ctx *, bp_frame *)> void fn(bp_ctx *c, bp_frame *f) noexcept
{
    try {
        F(c, f);
    } catch (const std::exception &e) {
        bp_raise_(c, BP_INTERNAL, e.what());
    } catch (...) {
        bp_raise_(c, BP_INTERNAL, "a C++ exception of an unknown type");
    }
}

/* Owns what operators make until the end of the block. */
class scope {
public:
    explicit scope(bp_ctx *ctx) : c(ctx) { bp_scope_begin(c); }
    ~scope() { bp_scope_end(c); }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

private:
    bp_ctx *c;
};

/* Owns a context. */
class context {
public:
    explicit context(bp_runtime *rt = nullptr) : c(bp_ctx_new(rt)) {}
    ~context() { bp_ctx_destroy(c); }
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    operator bp_ctx *() const { return c; }

private:
    bp_ctx *c;
};

/* Owns a callable; empty (false) after a failed bp_compile. */
class callable {
public:
    explicit callable(bp_callable *callable_) : g(callable_) {}
    ~callable() { bp_callable_unref(g); }
    callable(const callable &) = delete;
    callable &operator=(const callable &) = delete;
    operator bp_callable *() const { return g; }
    explicit operator bool() const { return g != nullptr; }

private:
    bp_callable *g;
};

} // namespace bp

/* bp_compile of a C++ function that may throw; options as there. */
#define bp_compile_cxx(c, function, ...) \
    bp_compile_at((c), bp::fn<function>, __VA_ARGS__, sizeof(bp_compile_options), #function, __FILE__, __LINE__)
#endif

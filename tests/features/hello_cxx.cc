/* The same user in C++, through backplane.hpp; and an exception, which becomes an error of the context. */
#include <backplane/backplane.hpp>
#include <cstdio>
#include <stdexcept>

static void toy_example(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b");
    bp_tensor *x = bp_div(c, a, bp_add(c, bp_abs(c, a), 1));
    if (bp_is_true(c, bp_lt(c, bp_sum(c, b), 0)))
        b = bp_mul(c, b, -1);
    bp_return(f, bp_mul(c, x, b));
}

static void thrower(bp_ctx *, bp_frame *)
{
    throw std::runtime_error("thrown on purpose");
}

static float call(bp_ctx *c, bp_callable *g, float b)
{
    const int64_t one[1] = {1};
    float three = 3, out = 0;
    bp_tensor *in[2] = {bp_tensor_from(c, BP_F32, 1, one, &three), bp_tensor_from(c, BP_F32, 1, one, &b)};
    bp_tensor_read(c, bp_call1(c, g, 2, in), &out, sizeof out);
    return out;
}

int main()
{
    bp::context c;
    bp::scope s(c);
    bp_compile_options options = {};
    options.backend = "eager";
    bp::callable g(bp_compile_cxx(c, toy_example, &options));
    for (int i = 0; i < 4; i++)
        std::printf("%g ", static_cast<double>(call(c, g, i % 2 ? 4.0f : -8.0f)));
    bp_callable_stats stats = {};
    stats.size = sizeof stats;
    bp_stats(c, g, &stats);
    std::printf("graphs %u\n", stats.graphs);
    bp::callable t(bp_compile_cxx(c, thrower, &options));
    call(c, t, 0);
    std::printf("%s\n", bp_error_message(c));
    return 0;
}

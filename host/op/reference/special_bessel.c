/* Bessel functions of orders 0 and 1 as PyTorch has them.
 *
 * Beyond 5 it uses the amplitude and phase form sqrt(2 / (pi x)) (P cos(t) - Q sin(t)), where Q is a quotient of
 * polynomials in 25 / x^2, and leaves the leading term of the denominator out. That shows in float64, by some 1e-7, and
 * is done here: Q is taken from the right functions, and scaled by what the missing term makes of it. */
#include "host/op/reference/special.h"
#include <math.h>

/* The denominators below their leading term, for orders 0 and 1 (Cephes' approximations). */
static const double DENOMINATOR[2][7] = {
    {6.43178256118178023184e+01, 8.56430025976980587198e+02, 3.88240183605401609683e+03, 7.24046774195652478189e+03,
     5.93072701187316984827e+03, 2.06209331660327847417e+03, 2.42005740240291393179e+02},
    {7.42373277035675149943e+01, 1.05644886038262816351e+03, 4.98641058337653607651e+03, 9.56231892404756170795e+03,
     7.99704160447350683650e+03, 2.82619278517639096600e+03, 3.36093607810698293419e+02}};

/* Both kinds of an order at x > 5, first and second. */
static void beyond(int order, double x, double out[2])
{
    double first = order ? j1(x) : j0(x), second = order ? y1(x) : y0(x);
    double t = x - (order ? 3 : 1) * 0.785398163397448309616, z = 25 / (x * x), whole = 1;
    double p = first * cos(t) + second * sin(t), q = second * cos(t) - first * sin(t);
    for (int i = 0; i < 7; i++)
        whole = whole * z + DENOMINATOR[order][i];
    q *= whole / (whole - pow(z, 7));
    out[0] = p * cos(t) - q * sin(t);
    out[1] = p * sin(t) + q * cos(t);
}

double special_bessel_j(int order, double x)
{
    double both[2], away = fabs(x);
    if (isinf(x))
        return NAN;
    if (!(away > 5))
        return order ? j1(x) : j0(x);
    beyond(order, away, both);
    return order && x < 0 ? -both[0] : both[0];
}

double special_bessel_y(int order, double x)
{
    double both[2];
    if (x == 0)
        return -INFINITY;
    if (!(x > 0 && x < INFINITY))
        return NAN;
    if (x <= 5)
        return order ? y1(x) : y0(x);
    beyond(order, x, both);
    return both[1];
}

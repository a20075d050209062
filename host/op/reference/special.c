/* Special functions in double, from their series, asymptotic expansions and functional equations (DLMF chapters 5, 7,
 * 10 and 25). Each splits its domain so that the series in use has terms of one sign or falls below 1e-17 at once. */
#include "host/op/reference/special.h"
#include <math.h>
#include <stdint.h>

static const double pi = 3.14159265358979323846, euler_gamma = 0.57721566490153286061;
static const double sqrt_pi = 1.77245385090551602730, sqrt_2 = 1.41421356237309504880;

double special_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double special_digamma(double x)
{
    if (x == 0)
        return copysign(INFINITY, -x);
    double result = 0, whole;
    if (x < 0) {
        double part = modf(x, &whole);
        if (part == 0)
            return NAN;
        result = -pi / tan(pi * part);
        x = 1 - x;
    }
    for (; x < 10; x += 1)
        result -= 1 / x;
    double y = 1 / (x * x);
    double tail = y * (1. / 240 - y * (1. / 132 - y * 691. / 32760));
    double series = y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - tail)));
    return result + log(x) - 0.5 / x - series;
}

/* Hurwitz zeta for q > 0, s > 1: the first terms, then Euler and Maclaurin's formula for the rest. */
static double zeta_right(double s, double q)
{
    static const double bernoulli[] = {/* B(2j) / (2j)! */
        8.33333333333333333e-2, -1.38888888888888889e-3, 3.30687830687830688e-5, -8.26719576719576720e-7,
        2.08767569878680990e-8, -5.28419013868749318e-10, 1.33825365306846788e-11, -3.38968029632258287e-13,
        8.58606205627784456e-15, -2.17486869855806187e-16, 5.50900282836022952e-18, -1.39544646858125233e-19};
    double sum = 0;
    for (int k = 0; k < 10; k++, q += 1)
        sum += pow(q, -s);
    double power = pow(q, -s); /* q^-s, then q^(-s - 2j + 1) s (s + 1) ... (s + 2j - 2) */
    sum += power * q / (s - 1) + power / 2;
    power *= s / q;
    for (uint32_t j = 0; j < sizeof bernoulli / sizeof *bernoulli; j++) {
        double term = bernoulli[j] * power;
        if (!(fabs(term) > 1e-18 * fabs(sum)))
            break;
        sum += term;
        power *= (s + 2 * j + 1) / q * ((s + 2 * j + 2) / q);
    }
    return sum;
}

double special_zeta(double s, double q)
{
    if (s == 1)
        return INFINITY;
    if (s < 1)
        return NAN;
    if (q <= 0 && q == floor(q))
        return INFINITY;
    if (isnan(s) || !isfinite(q) || (q < 0 && s != floor(s)))
        return NAN;
    if (q > 0)
        return zeta_right(s, q);
    /* Terms left of zero are (-1)^s (p - k)^-s with p = -q: two tails that start at the fraction r and beyond p. */
    double p = -q, r = p - floor(p);
    double left = zeta_right(s, r) - zeta_right(s, p + 1);
    return (fmod(s, 2) == 0 ? left : -left) + zeta_right(s, 1 - r);
}

/* exp(x^2), with the rounding error of the square put back. */
static double exp_square(double x)
{
    double square = x * x;
    return exp(square) * (1 + fma(x, x, -square));
}

double special_erfcx(double x)
{
    if (x < 0)
        return x < -27 ? INFINITY : 2 * exp_square(x) - special_erfcx(-x);
    if (x < 10)
        return exp_square(x) * erfc(x);
    double y = 1 / (2 * x * x), term = 1, sum = 1;
    for (int k = 1; k < 40 && fabs(term) > 1e-18; k++) {
        term *= -(2 * k - 1) * y;
        sum += term;
    }
    return isinf(x) ? 0 : sum / (x * sqrt_pi);
}

/* First guess for the inverse of erf, from log(1 - y^2). */
static double guess_erfinv(double log_rest)
{
    double half = 4.330746750799873 + log_rest / 2;
    return sqrt(sqrt(half * half - log_rest / 0.147) - half);
}

/* x >= 0 with erfc(x) = t, for t in (0, 0.5]: Newton's method on log(erfc). */
static double solve_erfc(double t)
{
    double x = guess_erfinv(log(t) + log(2 - t)), log_t = log(t);
    for (int i = 0; i < 6; i++) {
        double scaled = special_erfcx(x);
        x += (log(scaled) - x * x - log_t) * scaled * sqrt_pi / 2;
    }
    return x;
}

double special_erfinv(double y)
{
    double a = fabs(y);
    if (!(a <= 1))
        return NAN;
    if (a == 1)
        return copysign(INFINITY, y);
    if (a > 0.5)
        return copysign(solve_erfc(1 - a), y);
    double x = guess_erfinv(log1p(-a * a));
    for (int i = 0; i < 4; i++) { /* Halley */
        double u = (erf(x) - a) * sqrt_pi / 2 * exp_square(x);
        x -= u / (1 + x * u);
    }
    return copysign(x, y);
}

double special_ndtri(double p)
{
    if (!(p >= 0 && p <= 1))
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    double q = p < 0.5 ? p : 1 - p;
    double x = q < 0.25 ? solve_erfc(2 * q) : special_erfinv(1 - 2 * q);
    return p < 0.5 ? -sqrt_2 * x : sqrt_2 * x;
}

double special_log_ndtr(double x)
{
    double t = x / sqrt_2;
    return x < -1 ? log(special_erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

/* exp(-x) I_order(x) for x >= 0. */
static double bessel_i_scaled(double x, int order)
{
    double sum = 1, term = 1;
    if (x <= 30) {
        double y = x * x / 4;
        for (int k = 1; term > 1e-18 * sum; k++) {
            term *= y / ((double)k * (k + order));
            sum += term;
        }
        return sum * exp(-x) * (order ? x / 2 : 1);
    }
    for (int k = 1; k < 40 && fabs(term) > 1e-18; k++) {
        term *= -(4. * order - (2. * k - 1) * (2. * k - 1)) / (8 * x * k);
        sum += term;
    }
    return isinf(x) ? 0 : sum / (sqrt(2 * pi) * sqrt(x));
}

double special_i0e(double x) { return isnan(x) ? x : bessel_i_scaled(fabs(x), 0); }
double special_i1e(double x) { return isnan(x) ? x : x < 0 ? -bessel_i_scaled(-x, 1) : bessel_i_scaled(x, 1); }

/* K0 for 0 < x <= 2. */
static double bessel_k0_small(double x)
{
    double y = x * x / 4, term = 1, harmonic = 0, sum = 0;
    for (int k = 1; k < 30; k++) {
        term *= y / ((double)k * k);
        harmonic += 1. / k;
        sum += term * harmonic;
    }
    return sum - (log(x / 2) + euler_gamma) * exp(x) * special_i0e(x);
}

/* K1 for 0 < x <= 2. */
static double bessel_k1_small(double x)
{
    double y = x * x / 4, term = 1, psi = 1 - 2 * euler_gamma, sum = psi; /* psi(k + 1) + psi(k + 2) */
    for (int k = 1; k < 30; k++) {
        term *= y / ((double)k * (k + 1));
        psi += 1. / k + 1. / (k + 1);
        sum += term * psi;
    }
    return 1 / x + log(x / 2) * exp(x) * special_i1e(x) - x / 4 * sum;
}

/* exp(x) K_order(x) for x > 2: the trapezoidal rule on its integral, which converges exponentially; then the series. */
static double bessel_k_scaled(double x, int order)
{
    if (x < 50) {
        double h = 0.1, sum = 0.5;
        for (double t = h; x * (cosh(t) - 1) < 45; t += h)
            sum += exp(-x * (cosh(t) - 1)) * cosh(order * t);
        return sum * h;
    }
    double sum = 1, term = 1;
    for (int k = 1; k < 40 && fabs(term) > 1e-18; k++) {
        term *= (4. * order - (2. * k - 1) * (2. * k - 1)) / (8 * x * k);
        sum += term;
    }
    return isinf(x) ? 0 : sum * sqrt(pi / (2 * x));
}

/* The common frame of the four: poles, then small or large arguments. */
static double bessel_k(double x, double (*small)(double), int order, int is_scaled)
{
    if (isnan(x) || x < 0)
        return NAN;
    if (x == 0)
        return INFINITY;
    if (x <= 2)
        return small(x) * (is_scaled ? exp(x) : 1);
    return bessel_k_scaled(x, order) * (is_scaled ? 1 : exp(-x));
}

double special_k0(double x) { return bessel_k(x, bessel_k0_small, 0, 0); }
double special_k0e(double x) { return bessel_k(x, bessel_k0_small, 0, 1); }
double special_k1(double x) { return bessel_k(x, bessel_k1_small, 1, 0); }
double special_k1e(double x) { return bessel_k(x, bessel_k1_small, 1, 1); }

/* x^a e^-x / gamma(a); for large a by way of Stirling's series, whose parts do not cancel. */
static double igamma_factor(double a, double x)
{
    if (a < 50)
        return exp(a * log(x) - x - special_lgamma(a));
    double m = (x - a) / a, correction = (1. / 12 - (1. / 360 - 1. / (1260 * a * a)) / (a * a)) / a;
    double exponent = fabs(m) < 0.5 ? a * (log1p(m) - m) : a * log(x / a) - (x - a);
    return sqrt(a / (2 * pi)) * exp(exponent - correction);
}

static double igamma_series(double a, double x)
{
    double term = 1 / a, sum = term;
    for (double k = a + 1; term > 1e-18 * sum; k += 1) {
        term *= x / k;
        sum += term;
    }
    return sum * igamma_factor(a, x);
}

/* The upper function by its continued fraction, evaluated from the front (Lentz). */
static double igammac_fraction(double a, double x)
{
    double b = x + 1 - a, tiny = 1e-300, c = 1 / tiny, d = 1 / b, h = d;
    for (double k = 1; k < 1e5; k += 1) {
        double coefficient = -k * (k - a);
        b += 2;
        d = coefficient * d + b;
        c = b + coefficient / c;
        d = 1 / (d == 0 ? tiny : d);
        c = c == 0 ? tiny : c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-16)
            break;
    }
    return h * igamma_factor(a, x);
}

/* Both for very large a: the normal distribution with Temme's first correction. */
static double igamma_normal(double a, double x, int is_upper)
{
    double m = (x - a) / a, square = 2 * (m - log1p(m));
    double eta = copysign(sqrt(square > 0 ? square : 0), m);
    double slope = fabs(m) < 1e-3 ? -1. / 3 + m / 12 : 1 / m - 1 / eta;
    double rest = exp(-a * square / 2) / sqrt(2 * pi * a) * slope;
    return is_upper ? erfc(eta * sqrt(a / 2)) / 2 + rest : erfc(-eta * sqrt(a / 2)) / 2 - rest;
}

static double igamma_either(double a, double x, int is_upper)
{
    if (x < 0 || a < 0)
        return NAN;
    if (a == 0)
        return x > 0 ? (double)!is_upper : NAN;
    if (x == 0)
        return is_upper;
    if (isinf(a))
        return isinf(x) ? NAN : (double)is_upper;
    if (isinf(x))
        return !is_upper;
    if (isnan(a) || isnan(x))
        return NAN;
    if (a > 1e6)
        return igamma_normal(a, x, is_upper);
    if (x < a + 1)
        return is_upper ? 1 - igamma_series(a, x) : igamma_series(a, x);
    return is_upper ? igammac_fraction(a, x) : 1 - igammac_fraction(a, x);
}

double special_igamma(double a, double x) { return igamma_either(a, x, 0); }
double special_igammac(double a, double x) { return igamma_either(a, x, 1); }

/* Airy's function: its Maclaurin series near 0, else through K of order 1/3 on the right and its asymptotic form on the
 * left. */
static double airy_series(double x)
{
    double cube = x * x * x, f = 1, g = x, f_term = 1, g_term = x;
    for (int k = 1; k < 80; k++) {
        f_term *= cube / ((3. * k - 1) * (3. * k));
        g_term *= cube / ((3. * k) * (3. * k + 1));
        f += f_term;
        g += g_term;
    }
    return 0.355028053887817239 * f - 0.258819403792806798 * g;
}

static double airy_left(double x)
{
    double root = sqrt(x), zeta = 2. / 3 * x * root, even = 1, odd = 0, term = 1;
    for (int k = 1; k < 30 && fabs(term) > 1e-17; k++) {
        term *= (6. * k - 5) * (6. * k - 3) * (6. * k - 1) / (216. * k * (2. * k - 1) * zeta);
        double sign = k / 2 % 2 ? -1 : 1;
        *(k % 2 ? &odd : &even) += sign * term;
    }
    double angle = zeta + pi / 4;
    return (sin(angle) * even - cos(angle) * odd) / (sqrt_pi * sqrt(root));
}

double special_airy_ai(double x)
{
    if (!isfinite(x))
        return NAN;
    if (x < -8)
        return airy_left(-x);
    if (x < 2)
        return airy_series(x);
    double zeta = 2. / 3 * x * sqrt(x), h = 0.1, sum = 0.5;
    for (double t = h; zeta * (cosh(t) - 1) < 45; t += h)
        sum += exp(-zeta * (cosh(t) - 1)) * cosh(t / 3);
    return sqrt(x / 3) / pi * sum * h * exp(-zeta);
}

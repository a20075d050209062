/* Special functions that the C library has not, in double. NaN in gives NaN out. */
#ifndef HOST_OP_REFERENCE_SPECIAL_H
#define HOST_OP_REFERENCE_SPECIAL_H

double special_lgamma(double x);          /* lgamma without its global variable */
double special_digamma(double x);         /* digamma(+0) = -inf, digamma(-0) = +inf, NaN at negative integers */
double special_zeta(double s, double q);  /* Hurwitz: sum over k >= 0 of (q + k)^-s */
double special_erfinv(double y);
double special_erfcx(double x);           /* exp(x^2) erfc(x) */
double special_ndtri(double p);           /* inverse of the normal distribution function */
double special_log_ndtr(double x);
double special_i0e(double x);             /* modified Bessel functions of the first kind, times exp(-|x|) */
double special_i1e(double x);
double special_k0(double x);              /* of the second kind; +inf at 0, NaN below */
double special_k0e(double x);             /* times exp(x) */
double special_k1(double x);
double special_k1e(double x);
double special_igamma(double a, double x); /* regularized incomplete gamma functions, lower and upper */
double special_igammac(double a, double x);
double special_airy_ai(double x);
/* Bessel functions of the first and second kind, of order 0 or 1, with PyTorch's error beyond 5. */
double special_bessel_j(int order, double x);
double special_bessel_y(int order, double x);
#endif

/* Complex arithmetic as PyTorch does it: plain products (infinities may give NaN), Smith's division. c64 is computed in
 * double and rounded once. */
#ifndef HOST_OP_REFERENCE_CX_H
#define HOST_OP_REFERENCE_CX_H
#include <complex.h>
#include <math.h>

#ifndef CMPLX /* glibc defines it for GCC only */
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif
#ifndef CMPLXF
#define CMPLXF(re, im) __builtin_complex((float)(re), (float)(im))
#endif

typedef double _Complex cx;

static inline cx cx_mul(cx a, cx b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static inline cx cx_div(cx a, cx b)
{
    double c = creal(b), d = cimag(b);
    if (c == 0 && d == 0)
        return CMPLX(creal(a) / fabs(c), cimag(a) / fabs(d));
    if (fabs(c) >= fabs(d)) {
        double ratio = d / c, scale = 1 / (c + d * ratio);
        return CMPLX((creal(a) + cimag(a) * ratio) * scale, (cimag(a) - creal(a) * ratio) * scale);
    }
    double ratio = c / d, scale = 1 / (c * ratio + d);
    return CMPLX((creal(a) * ratio + cimag(a)) * scale, (cimag(a) * ratio - creal(a)) * scale);
}
#endif

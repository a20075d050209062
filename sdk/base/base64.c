/* Base64: three bytes are four characters. */
#include "sdk/base/base64.h"
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(buf *out, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t w = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);
        char four[4] = {alphabet[w >> 18], alphabet[w >> 12 & 63], left > 1 ? alphabet[w >> 6 & 63] : '=',
                        left > 2 ? alphabet[w & 63] : '='};
        buf_add(out, four, 4);
    }
}

static size_t count_padding(const char *text, size_t n)
{
    return n < 4 || text[n - 1] != '=' ? 0 : text[n - 2] == '=' ? 2 : 1;
}

int64_t base64_size(const char *text, size_t n)
{
    return n % 4 ? -1 : (int64_t)(n / 4 * 3 - count_padding(text, n));
}

static int value_of(char ch)
{
    if (ch >= 'A' && ch <= 'Z')
        return ch - 'A';
    if (ch >= 'a' && ch <= 'z')
        return ch - 'a' + 26;
    if (ch >= '0' && ch <= '9')
        return ch - '0' + 52;
    return ch == '+' ? 62 : ch == '/' ? 63 : -1;
}

bool base64_decode(void *out, const char *text, size_t n)
{
    unsigned char *p = out;
    size_t used = n - count_padding(text, n);
    uint32_t w = 0;
    for (size_t i = 0; i < used; i++) {
        int v = value_of(text[i]);
        if (v < 0)
            return false;
        w = w << 6 | (uint32_t)v;
        if (i % 4)
            *p++ = (unsigned char)(w >> (6 - 2 * (i % 4)));
    }
    return true;
}

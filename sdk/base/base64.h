/* Base64, the plain alphabet of RFC 4648 with padding. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H
#include "sdk/base/str.h"

void base64_encode(buf *out, const void *data, size_t n);
/* Bytes that a well-formed text of n characters holds, or -1 when its length or its padding is wrong. */
int64_t base64_size(const char *text, size_t n);
/* Decodes into out, which has room for base64_size bytes. False: a character is outside the alphabet. */
bool base64_decode(void *out, const char *text, size_t n);
#endif

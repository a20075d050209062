/* Text that a plugin gives, made safe to show: the one place that every such text comes through.
 *
 * What a plugin says ends up in errors, logs and reports, on terminals. Control characters and bytes that are no UTF-8
 * are written as \xNN, so that no text can move a cursor, hide a line or forge one of the host's. */
#include "host/backend/text.h"
#include <stdio.h>
#include <string.h>

/* Bytes of the character at text that may be shown as they are; 0: its first byte may not. */
static size_t shown_bytes(const char *text, size_t n)
{
    unsigned char c = (unsigned char)text[0];
    if (c < 0x80)
        return c >= 0x20 && c != 0x7f;
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (len > n || !str_is_utf8((str){text, len}))
        return 0;
    return c == 0xc2 && (unsigned char)text[1] < 0xa0 ? 0 : len; /* U+0080 to U+009F are controls too */
}

void plugin_text_add(buf *out, const char *text, size_t n, enum plugin_lines lines)
{
    for (size_t i = 0; i < n;) {
        size_t len = shown_bytes(text + i, n - i);
        if (len)
            buf_add(out, text + i, len);
        else if (text[i] == '\n' && lines == TEXT_LINES)
            buf_puts(out, i + 1 < n ? "\n    " : "");
        else if (text[i] == '\n' || text[i] == '\t')
            buf_puts(out, text[i] == '\n' ? "\\n" : "\\t");
        else
            buf_printf(out, "\\x%02x", (unsigned)(unsigned char)text[i]);
        i += len ? len : 1;
    }
}

const char *plugin_text(char *out, size_t cap, const char *text, size_t n)
{
    buf all = {0};
    char mark[48];
    plugin_text_add(&all, text, text ? n : 0, TEXT_LINE);
    str kept = {buf_text(&all), all.n};
    mark[0] = '\0';
    if (all.n >= cap) {
        snprintf(mark, sizeof mark, " [cut, of %zu bytes]", n);
        kept.n = cap > strlen(mark) ? cap - strlen(mark) - 1 : 0;
        while (kept.n && ((unsigned char)kept.s[kept.n] & 0xc0) == 0x80) /* not within a character */
            kept.n--;
    }
    snprintf(out, cap, "%.*s%s", (int)kept.n, kept.s, mark);
    buf_fini(&all);
    return out;
}

/* Text that a plugin gives, made safe to show. */
#ifndef HOST_BACKEND_TEXT_H
#define HOST_BACKEND_TEXT_H
#include "sdk/base/str.h"

/* TEXT_LINES keeps line ends and sets further lines off by blanks; TEXT_LINE writes them as \n. */
enum plugin_lines { TEXT_LINE, TEXT_LINES };
void plugin_text_add(buf *out, const char *text, size_t n, enum plugin_lines lines);
/* One line in at most cap - 1 bytes of out; one that is longer ends in a mark that it was cut. text NULL: empty.
 * Returns out. */
const char *plugin_text(char *out, size_t cap, const char *text, size_t n);
#endif

/* What every CMocka test includes: cmocka.h with the headers that it wants before it.
 *
 * Standard output is line buffered from the start, so that a test that hangs or dies leaves the names of those before
 * it in the log. Test functions are named as claims; static void a_missing_file_names_the_path(void **state). */
#ifndef BP_TESTS_LIB_CHECK_H
#define BP_TESTS_LIB_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

__attribute__((constructor)) static void check_buffer_lines(void)
{
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

/* Fails and shows both texts when `part` does not occur in `text`. */
#define assert_contains(text, part) check_contains((text), (part), __FILE__, __LINE__)
static inline void check_contains(const char *text, const char *part, const char *file, int line)
{
    if (text && strstr(text, part))
        return;
    print_error("\"%s\" is not in \"%s\"\n", part, text ? text : "(null)");
    _fail(file, line);
}

#endif

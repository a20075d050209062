/* Files whole: mapped for reading, written beside their final name and renamed when complete. */
#ifndef HOST_IMPORT_FILE_H
#define HOST_IMPORT_FILE_H
#include "host/base/ctx.h"

/* A file's bytes, counted, since tensors may lie in it. Writes to them are private to the process. */
typedef struct {
    atomic_uint refs;
    unsigned char *data;
    size_t n;
    const char *path; /* for messages */
} file_map;

/* Maps a regular file that is not empty. NULL: the context names the path and the reason. */
file_map *file_open(bp_ctx *c, const char *path);
file_map *file_ref(file_map *f);
void file_unref(file_map *f);                 /* NULL: nothing */
void file_release(void *map, void *data);     /* file_unref in the form of a storage's release */

/* Says what is wrong with a field of a file; returns code. */
BP_PRINTF(5, 6)
bp_status file_fail(bp_ctx *c, const char *path, bp_status code, const char *field, const char *fmt, ...);

typedef struct { const void *at; size_t n; } file_part;
/* Writes the parts one after the other. On failure a file that was there before is as it was. */
bp_status file_write(bp_ctx *c, const char *path, const file_part *parts, uint32_t nparts);
#endif

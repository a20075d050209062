/* bp_module: named parameters and buffers. Entries are only ever added, so an index stays valid for its life; a
 * replaced tensor keeps its index. Counted; not for several threads at once while it is changed. */
#ifndef HOST_TENSOR_MODULE_H
#define HOST_TENSOR_MODULE_H
#include "host/tensor/tensor.h"
#include "sdk/base/map.h"
#include "sdk/base/vec.h"

typedef struct { char *name; bp_tensor *t; int32_t role; } module_entry; /* role: BP_ROLE_PARAMETER or _BUFFER */
typedef struct bp_module {
    atomic_uint refs;
    VEC(module_entry) entries;
    map names;
    int32_t load_role; /* of a name that a file brings; 0: BP_ROLE_PARAMETER */
} bp_module;

struct bp_module *module_ref(struct bp_module *m);
/* Index of a dotted name, or -1. */
int32_t module_find(const struct bp_module *m, const char *name);
/* Whether a name can be an entry's: parts joined by dots, none of them empty. */
bool module_is_name(const char *name);
/* Takes back the entries from n on: for a load that fails half way, before anybody has seen them. */
void module_truncate(struct bp_module *m, uint32_t n);
/* The name that is nearest to one that is not there, for messages; NULL: none is near. */
const char *module_nearest(const struct bp_module *m, const char *name);
#endif

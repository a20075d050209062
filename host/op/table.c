/* The table of operators: rows of ops.def, their schemas parsed at first use.
 *
 * The rows are constant after that first use, which a mutex guards; a thread that finds the flag set reads without it.
 * Schemas live in an arena of the process. */
#include "host/op/library.h"
#include "host/op/rows.h"
#include "sdk/base/map.h"
#include "sdk/base/match.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static op_row rows[] = {
#define OP(ident, text, bits, rule, body, line) \
    {.id = #ident, .schema_text = text, .flags = bits, .shape = shape_##rule, .kernel = kernel_##body, .doc = line},
#define VIEW(ident, text, bits, rule, line) \
    {.id = #ident, .schema_text = text, .flags = (bits) | OP_VIEW | OP_CHEAP, .shape = shape_##rule, .doc = line},
#define INPLACE(ident, text, bits, of, line)                                                                 \
    {.id = #ident, .schema_text = text, .flags = bits, .inplace_of = #of, .functional = &rows[ROW_##of], .doc = line},
#include "host/op/ops.def"
#include "host/op/higher.def"
#undef OP
#undef VIEW
#undef INPLACE
    {.id = NULL}, /* so that the array is one when a build has no rows */
};

static arena memory;
static map by_target, by_id;
static const char *targets[ROW_COUNT + 1];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ready;

static void set_names(op_row *r)
{
    const schema *s = r->schema;
    bool plain = strcmp(s->overload, "default") == 0, whole = plain && (r->flags & OP_HIGHER);
    snprintf(r->target, sizeof r->target, "%s.%s%s%s", s->ns, s->name, whole ? "" : ".", whole ? "" : s->overload);
    snprintf(r->label, sizeof r->label, "%s%s%s", s->name, plain ? "" : ".", plain ? "" : s->overload);
}

static bool index_row(op_row *r)
{
    map_value *t = map_put(&by_target, str_of(r->target), NULL);
    if (t)
        t->u = r->number;
    map_value *i = map_put(&by_id, str_of(r->id), NULL);
    if (i)
        i->u = r->number;
    return t && i;
}

/* The generator of aten.h has parsed every schema when the host was built: only memory can be missing here. */
static bool fill(void)
{
    char error[200];
    for (uint32_t n = 0; n < ROW_COUNT; n++) {
        op_row *r = &rows[n];
        r->number = n;
        r->schema = r->schema ? r->schema : schema_parse(&memory, r->schema_text, error, sizeof error);
        if (!r->schema)
            return false;
        set_names(r);
        targets[n] = r->target;
        if (!index_row(r))
            return false;
    }
    return true;
}

bool op_table_ready(void)
{
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return true;
    pthread_mutex_lock(&lock);
    bool ok = atomic_load_explicit(&ready, memory_order_relaxed) || fill();
    atomic_store_explicit(&ready, ok, memory_order_release);
    pthread_mutex_unlock(&lock);
    return ok;
}

uint32_t op_count(void)
{
    return op_table_ready() ? ROW_COUNT : 0;
}

const op_row *op_at(uint32_t number)
{
    return number < ROW_COUNT && op_table_ready() ? &rows[number] : NULL;
}

static const op_row *find(const map *m, const char *key)
{
    map_value *v = op_table_ready() ? map_get(m, str_of(key)) : NULL;
    return v ? &rows[v->u] : NULL;
}

const op_row *op_by_target(const char *target)
{
    const op_row *row = find(&by_target, target);
    return row ? row : custom_by_target(target);
}

const op_row *op_by_id(const char *id)
{
    return find(&by_id, id);
}

const char *op_nearest(const char *target)
{
    const char *best = NULL;
    if (!op_table_ready())
        return NULL;
    return match_close(str_of(target), targets, ROW_COUNT, 0.6, 1, &best) ? best : NULL;
}

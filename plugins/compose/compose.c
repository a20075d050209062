/* The composer: hands the graph to a chain of backends, which is its option "chain": names by commas, `?` before one
 * that may be absent. Everything it does goes through lookups and compile_with of plugin.h, so a vendor can write
 * another one. */
#include <backplane/plugin.h>
#include <string.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs);
BP_EXPORT const bp_backend_info backend_info;

enum { MAX_LINKS = 32, MAX_CHAIN = 4096 };

typedef struct {
    char text[MAX_CHAIN];
    const char *names[MAX_LINKS];
    uint32_t n;
} chain;

/* Names are cut in place. Returns what is wrong, or NULL. */
static const char *parse(const char *option, chain *out)
{
    size_t n = strlen(option);
    if (n >= sizeof out->text)
        return "the chain is too long";
    memcpy(out->text, option, n + 1);
    out->n = 0;
    for (char *at = out->text, *comma; at; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (out->n == MAX_LINKS)
            return "the chain has over 32 links";
        out->names[out->n++] = at;
    }
    return NULL;
}

bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    chain links;
    const char *option = bp_option(gm, "chain");
    if (!option || !*option)
        return bp_refuse(gm, "option \"chain\" is missing: set opt.chain = NAME, NAME in the backend's section");
    const char *fault = parse(option, &links);
    if (fault)
        return bp_refuse(gm, "%s: \"%.200s\"", fault, option);
    return bp_compile_with(gm, inputs, links.names, links.n);
}

static const bp_option_row OPTIONS[] = {
    {"chain", "string", "", "backends in order of preference, by commas; ?NAME may be absent"},
    {NULL, NULL, NULL, NULL},
};

const bp_backend_info backend_info = {
    .size = sizeof(bp_backend_info),
    .flags = BP_CONCURRENT_COMPILE | BP_CONCURRENT_RUN | BP_FORK_SAFE,
    .version = "1",
    .vendor = "backplane",
    .options = OPTIONS,
};

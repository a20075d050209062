/* backplane-probe PATH INIT: loads a plugin, and with a non-empty INIT calls that hook, in a process that may die.
 *
 * What it says on standard output, each line flushed before the step that it announces: "load", "init", "error TEXT",
 * "end". The table that the hook gets has no rows, so each service answers with its fallback: the hook may then fail,
 * which is no verdict; that it comes back is what counts. */
#define BP_NO_NOTE
#include <backplane/plugin.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(const char *what, const char *text)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "\n%s%.900s\n", what, text);
    if (n > 0 && write(1, line, (size_t)n) != n)
        _exit(126);
}

/* Whether it may be called; what it is else, the host says when it loads the library. */
static int is_code(const void *symbol)
{
    Dl_info info;
    ElfW(Sym) *s = NULL;
    return !dladdr1(symbol, &info, (void **)&s, RTLD_DL_SYMENT) || !s || ELF64_ST_TYPE(s->st_info) != STT_OBJECT;
}

int main(int argc, char **argv)
{
    static const bp_host EMPTY = {.size = offsetof(bp_host, api) + sizeof EMPTY.api, .api = BP_API_NEWEST};
    if (argc != 3)
        _exit(126);
    say("load", "");
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        say("error ", dlerror());
        _exit(0);
    }
    void *symbol = argv[2][0] ? dlsym(library, argv[2]) : NULL;
    if (symbol && is_code(symbol)) {
        bp_init_fn init;
        memcpy(&init, &symbol, sizeof init);
        say("init", "");
        init(&EMPTY);
    }
    say("end", "");
    _exit(0);
}

/* Facts of a shared object that can be read without running a line of it. */
#ifndef HOST_BACKEND_ELF_H
#define HOST_BACKEND_ELF_H
#include "sdk/base/vec.h"
#include <stddef.h>

typedef struct {
    uint32_t api, sanitizer;     /* of its notes: the highest API, every sanitizer; without notes 1 and 0 */
    bool is_pie;                 /* a program, not a library */
    bool has_text_relocations, has_executable_stack;
    VEC(char *) needed;          /* DT_NEEDED, in order */
} elf_facts;

/* Reads the facts of an open file of `size` bytes. false: not a shared object for this machine, or broken; why says
 * what. Every offset in the file is checked before it is followed. elf_fini in both cases. */
bool elf_read(int fd, uint64_t size, elf_facts *out, char *why, size_t cap);
void elf_fini(elf_facts *f);
#endif

/* Reads ELF headers, notes and the dynamic section from a file descriptor, in small checked pieces: the file may be
 * hostile, large, or change while it is read, so nothing of it is mapped. */
#include "host/backend/elf.h"
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
#error "name this processor's ELF machine"
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { BYTE_ORDER_HERE = ELFDATA2LSB };
#else
enum { BYTE_ORDER_HERE = ELFDATA2MSB };
#endif
enum { MAX_SEGMENTS = 512, MAX_SECTION = 1 << 20, MAX_NEEDED_NAME = 1024 };

typedef struct {
    int fd;
    uint64_t size;
    Elf64_Ehdr head;
    Elf64_Phdr *segments;
    elf_facts *facts;
    char *why;
    size_t cap;
} file;

__attribute__((format(printf, 2, 3))) static bool no(file *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->why, f->cap, fmt, ap);
    va_end(ap);
    return false;
}

static bool read_at(file *f, void *to, size_t n, uint64_t at)
{
    if (at > f->size || n > f->size - at)
        return no(f, "truncated: %zu bytes at offset %llu are beyond its end", n, (unsigned long long)at);
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(f->fd, (char *)to + done, n - done, (off_t)(at + done));
        if (got <= 0)
            return no(f, "it cannot be read at offset %llu", (unsigned long long)(at + done));
        done += (size_t)got;
    }
    return true;
}

/* A copy of a part of the file, NUL-terminated, for the caller to free; NULL: why tells. */
static void *read_part(file *f, uint64_t at, uint64_t n)
{
    if (n > MAX_SECTION) {
        no(f, "a part of %llu bytes, %d at most are plausible", (unsigned long long)n, MAX_SECTION);
        return NULL;
    }
    char *part = malloc((size_t)n + 1);
    if (!part) {
        no(f, "out of memory");
    } else if (!read_at(f, part, (size_t)n, at)) {
        free(part);
        part = NULL;
    } else {
        part[n] = '\0';
    }
    return part;
}

static bool read_head(file *f)
{
    const unsigned char *id = f->head.e_ident;
    if (f->size < sizeof f->head)
        return no(f, "not an ELF file: only %llu bytes", (unsigned long long)f->size);
    if (!read_at(f, &f->head, sizeof f->head, 0))
        return false;
    if (memcmp(id, ELFMAG, SELFMAG) != 0)
        return no(f, "not an ELF file: it begins with %02x %02x %02x %02x", id[0], id[1], id[2], id[3]);
    if (id[EI_CLASS] != ELFCLASS64)
        return no(f, "wrong architecture: a 32-bit file, this host is of 64 bits");
    if (id[EI_DATA] != BYTE_ORDER_HERE)
        return no(f, "wrong architecture: another byte order than this host's");
    if (f->head.e_machine != MACHINE)
        return no(f, "wrong architecture: ELF machine %u, this host is %d", (unsigned)f->head.e_machine, MACHINE);
    if (f->head.e_type != ET_DYN)
        return no(f, "not a shared object: ELF type %u", (unsigned)f->head.e_type);
    return true;
}

static bool read_segments(file *f)
{
    unsigned n = f->head.e_phnum;
    if (n == 0 || n > MAX_SEGMENTS || f->head.e_phentsize != sizeof *f->segments)
        return no(f, "%u program headers of %u bytes", n, (unsigned)f->head.e_phentsize);
    f->segments = read_part(f, f->head.e_phoff, n * sizeof *f->segments);
    if (!f->segments)
        return false;
    for (unsigned i = 0; i < n; i++) {
        const Elf64_Phdr *p = &f->segments[i];
        if (p->p_type == PT_LOAD && (p->p_offset > f->size || p->p_filesz > f->size - p->p_offset))
            return no(f, "truncated: segment %u ends beyond the file", i);
    }
    return true;
}

/* -- notes --------------------------------------------------------------------------------------------------------- */

static uint64_t align_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* Walks a segment's notes by its own alignment. A note that does not fit ends the walk: it is not ours to judge. */
static void walk_notes(file *f, const char *part, uint64_t n, uint64_t align)
{
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= n;) {
        Elf64_Nhdr note;
        memcpy(&note, part + at, sizeof note);
        uint64_t owner = at + sizeof note;
        uint64_t desc = at + align_up(sizeof note + note.n_namesz, align);
        uint64_t next = desc + align_up(note.n_descsz, align);
        if (note.n_namesz > n || note.n_descsz > n || owner + note.n_namesz > n || desc + note.n_descsz > n)
            return;
        uint32_t words[2];
        if (note.n_type == 1 && note.n_namesz == sizeof "backplane" && note.n_descsz >= sizeof words &&
            memcmp(part + owner, "backplane", note.n_namesz) == 0) {
            memcpy(words, part + desc, sizeof words);
            f->facts->api = words[0] > f->facts->api ? words[0] : f->facts->api;
            f->facts->sanitizer |= words[1];
        }
        at = next;
    }
}

static bool read_notes(file *f)
{
    for (unsigned i = 0; i < f->head.e_phnum; i++) {
        const Elf64_Phdr *p = &f->segments[i];
        if (p->p_type != PT_NOTE || p->p_filesz == 0)
            continue;
        char *part = read_part(f, p->p_offset, p->p_filesz);
        if (!part)
            return false;
        walk_notes(f, part, p->p_filesz, p->p_align == 8 ? 8 : 4);
        free(part);
    }
    return true;
}

/* -- the dynamic section ------------------------------------------------------------------------------------------- */

static bool offset_of(const file *f, uint64_t address, uint64_t *offset)
{
    for (unsigned i = 0; i < f->head.e_phnum; i++) {
        const Elf64_Phdr *p = &f->segments[i];
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz) {
            *offset = p->p_offset + (address - p->p_vaddr);
            return true;
        }
    }
    return false;
}

static bool add_needed(file *f, uint64_t strings, uint64_t name)
{
    uint64_t at = strings + name, room = at < f->size ? f->size - at : 0;
    char *text = read_part(f, at, room < MAX_NEEDED_NAME ? room : MAX_NEEDED_NAME);
    if (!text)
        return false;
    if (vec_push(&f->facts->needed, text))
        return true;
    free(text);
    return no(f, "out of memory");
}

static bool read_entries(file *f, const Elf64_Dyn *entries, size_t n)
{
    uint64_t strings = 0;
    for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
        const Elf64_Dyn *e = &entries[i];
        if (e->d_tag == DT_STRTAB && !offset_of(f, e->d_un.d_ptr, &strings))
            return no(f, "its string table lies outside the file");
        if (e->d_tag == DT_TEXTREL || (e->d_tag == DT_FLAGS && (e->d_un.d_val & DF_TEXTREL)))
            f->facts->has_text_relocations = true;
        if (e->d_tag == DT_FLAGS_1 && (e->d_un.d_val & DF_1_PIE))
            f->facts->is_pie = true;
    }
    for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_NEEDED && !add_needed(f, strings, entries[i].d_un.d_val))
            return false;
    return true;
}

static bool read_dynamic(file *f)
{
    bool found = false;
    for (unsigned i = 0; i < f->head.e_phnum; i++) {
        const Elf64_Phdr *p = &f->segments[i];
        if (p->p_type == PT_GNU_STACK && (p->p_flags & PF_X))
            f->facts->has_executable_stack = true;
        if (p->p_type != PT_DYNAMIC || found)
            continue;
        Elf64_Dyn *entries = read_part(f, p->p_offset, p->p_filesz);
        found = entries && read_entries(f, entries, (size_t)p->p_filesz / sizeof *entries);
        free(entries);
        if (!found)
            return false;
    }
    return found || no(f, "it has no dynamic section");
}

bool elf_read(int fd, uint64_t size, elf_facts *out, char *why, size_t cap)
{
    *out = (elf_facts){.api = 1};
    file f = {.fd = fd, .size = size, .facts = out, .why = why, .cap = cap};
    bool ok = read_head(&f) && read_segments(&f) && read_notes(&f) && read_dynamic(&f);
    free(f.segments);
    return ok;
}

void elf_fini(elf_facts *f)
{
    for (uint32_t i = 0; i < f->needed.len; i++)
        free(f->needed.at[i]);
    vec_fini(&f->needed);
}

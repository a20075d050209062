/* Reading program texts. A text that is wrong is an error with its line; nothing in it is guessed. */
#include "tests/model/text.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form { VALUE, ASKED, DOES };
static const struct { const char *word; enum form form; uint32_t blocks; } kinds[] = {
#define KIND(name, word, form, blocks) {word, form, blocks},
#include "tests/model/kinds.def"
#undef KIND
};

typedef struct {
    str rest, line;
    program *p;
    char *why;
    size_t cap;
    bool failed;
} reader;

const char *stmt_word(enum stmt_kind kind)
{
    return kinds[kind].word;
}

bool program_is(const program *p, const char *mode)
{
    return !strcmp(p->mode, mode);
}

static bool wrong(reader *r, const char *what)
{
    if (!r->failed)
        snprintf(r->why, r->cap, "%s: \"%.*s\"", what, (int)(r->line.n < 200 ? r->line.n : 200),
                 r->line.s ? r->line.s : "");
    r->failed = true;
    return false;
}

/* -- lines and words ----------------------------------------------------------------------------------------------- */

/* The next line that is neither empty nor a comment; false at the end of the text. */
static bool next_line(reader *r)
{
    while (r->rest.s) {
        r->line = str_split(&r->rest, '\n');
        str bare = str_trim(r->line);
        if (bare.n && bare.s[0] != '#')
            return true;
    }
    r->line = (str){0};
    return false;
}

str text_word(str *s)
{
    while (s->n && s->s[0] == ' ')
        s->s++, s->n--;
    str w = {s->s, 0};
    while (w.n < s->n && w.s[w.n] != ' ')
        w.n++;
    s->s += w.n;
    s->n -= w.n;
    return w;
}

static bool is_number(str w)
{
    size_t at = w.n && (w.s[0] == '-' || w.s[0] == '+');
    return at < w.n && (isdigit((unsigned char)w.s[at]) || (w.n - at >= 3 && !strncmp(w.s + at, "inf", 3)) ||
                         str_is(w, "nan"));
}

static double to_double(str w)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(w.n < 63 ? w.n : 63), w.s);
    return strtod(text, NULL);
}

static uint32_t to_count(str w)
{
    return (uint32_t)to_double(w);
}

static bp_scalar to_scalar(str w)
{
    for (size_t i = 0; i < w.n; i++)
        if (strchr(".en", w.s[i]))
            return bp_scalar_float(to_double(w));
    return bp_scalar_int((int64_t)to_double(w));
}

/* -- statements ---------------------------------------------------------------------------------------------------- */

static operand to_operand(reader *r, str w)
{
    operand o = {.kind = OPERAND_NAME};
    if (w.n == 2 && strchr("rck", w.s[0]) && isdigit((unsigned char)w.s[1])) {
        o.kind = w.s[0];
        o.index = (uint32_t)(w.s[1] - '0');
        if (o.index >= (o.kind == OPERAND_K ? NUMBERS : REGISTERS))
            wrong(r, "no such register");
    } else if (is_number(w)) {
        o.kind = OPERAND_NUMBER;
        o.number = to_scalar(w);
    } else {
        o.name = arena_strndup(&r->p->arena, w.s, w.n);
    }
    return o;
}

static bool find_kind(str word, enum form form, enum stmt_kind *kind)
{
    for (int i = 0; i < STMT_KINDS; i++)
        if (kinds[i].form == form && str_is(word, kinds[i].word)) {
            *kind = (enum stmt_kind)i;
            return true;
        }
    return false;
}

static bool read_stmt(reader *r, stmt *s)
{
    str rest = str_trim(r->line), copy = rest, w = text_word(&rest), word = w;
    enum form form = DOES;
    *s = (stmt){.line = arena_strndup(&r->p->arena, copy.s, copy.n)};
    str after = rest;
    if (str_is(text_word(&after), "=")) {
        form = w.s[0] == 'k' ? ASKED : VALUE;
        s->dst = to_operand(r, w).index;
        rest = after;
        word = text_word(&after);
        bool assigns = form == VALUE && !after.n;
        word = assigns ? (str){"", 0} : text_word(&rest);
    }
    if (!find_kind(word, form, &s->kind))
        return wrong(r, "no such statement");
    while ((w = text_word(&rest)).n) {
        if (str_is(w, "<"))
            continue;
        if (s->nargs == sizeof s->args / sizeof *s->args)
            return wrong(r, "too many words");
        s->args[s->nargs++] = to_operand(r, w);
    }
    return !r->failed;
}

/* Statements up to `end`, `else` or `give`, which stays in r->line. Blocks are at most three deep. */
static bool read_block(reader *r, block *b)
{
    while (next_line(r)) {
        str line = str_trim(r->line), first = line, word = text_word(&first);
        if (str_is(word, "end") || str_is(word, "else") || str_is(word, "give"))
            return true;
        stmt s;
        if (!read_stmt(r, &s))
            return false;
        for (uint32_t i = 0; i < kinds[s.kind].blocks; i++) {
            if (!read_block(r, &s.blocks[i]))
                return false;
            if (!str_is(str_trim(r->line), "else"))
                break;
        }
        if (kinds[s.kind].blocks && !str_is(str_trim(r->line), "end"))
            return wrong(r, "expected end");
        if (!vec_push(b, s))
            return wrong(r, "out of memory");
    }
    return wrong(r, "the text ends inside a function");
}

static bool read_fn(reader *r, str rest)
{
    uint32_t i = to_count(text_word(&rest));
    if (i != r->p->nfns || i >= MAX_FNS || !str_is(text_word(&rest), "takes"))
        return wrong(r, "functions are numbered from 0, `fn N takes M`");
    text_fn *f = &r->p->fns[r->p->nfns++];
    f->nargs = to_count(text_word(&rest));
    if (!f->nargs || f->nargs > MAX_ARGS)
        return wrong(r, "1 to 4 arguments");
    if (!read_block(r, &f->body))
        return false;
    rest = str_trim(r->line);
    if (!str_is(text_word(&rest), "give"))
        return wrong(r, "expected give");
    for (str w; (w = text_word(&rest)).n && f->ngiven < 4;)
        f->given[f->ngiven++] = to_operand(r, w).index;
    return !r->failed;
}

/* -- arguments and calls ------------------------------------------------------------------------------------------- */

static bool read_buffer(reader *r, str rest, text_args *a, bp_dtype dtype)
{
    if (a->nbuffers == MAX_ARGS)
        return wrong(r, "too many buffers");
    text_buffer *b = &a->buffers[a->nbuffers++];
    b->dtype = dtype;
    b->values = arena_array(&r->p->arena, rest.n / 2 + 1, sizeof *b->values);
    for (str w; b->values && (w = text_word(&rest)).n;)
        b->values[b->n++] = to_double(w);
    return b->n > 0 || wrong(r, "an empty buffer");
}

static bool read_view(reader *r, str rest, text_args *a, bool same)
{
    if (a->nviews == MAX_ARGS)
        return wrong(r, "too many arguments");
    text_view *v = &a->views[a->nviews];
    *v = (text_view){.same = -1, .buffer = to_count(text_word(&rest))};
    if (same) {
        v->same = (int32_t)v->buffer;
        if ((uint32_t)v->same >= a->nviews)
            return wrong(r, "the same as an argument that comes later");
    } else {
        long long off, n, stride;
        char text[80];
        snprintf(text, sizeof text, "%.*s", (int)(rest.n < 79 ? rest.n : 79), rest.s);
        if (sscanf(text, " %lld*%lld/%lld", &off, &n, &stride) != 3 || v->buffer >= a->nbuffers)
            return wrong(r, "expected BUFFER OFFSET*SIZE/STRIDE");
        v->off = off, v->n = n, v->stride = stride;
    }
    a->nviews++;
    return true;
}

/* Lines that begin with a blank belong to what is above them. */
static bool has_detail(const reader *r)
{
    return r->rest.s && r->rest.n && r->rest.s[0] == ' ';
}

static bool read_args(reader *r, str rest)
{
    text_args a = {0};
    if (to_count(text_word(&rest)) != r->p->args.len)
        return wrong(r, "argument sets are numbered from 0");
    while (has_detail(r) && next_line(r)) {
        str line = str_trim(r->line), word = text_word(&line);
        bool ok = str_is(word, "f")      ? read_buffer(r, line, &a, BP_F64)
                  : str_is(word, "i")    ? read_buffer(r, line, &a, BP_I64)
                  : str_is(word, "of")   ? read_view(r, line, &a, false)
                  : str_is(word, "same") ? read_view(r, line, &a, true)
                                         : wrong(r, "no such detail");
        if (!ok)
            return false;
    }
    if (a.nviews != r->p->fns[0].nargs)
        return wrong(r, "the number of arguments is not that of fn 0");
    return vec_push(&r->p->args, a) || wrong(r, "out of memory");
}

static bool read_told(reader *r, str rest, text_call *c)
{
    c->told = arena_array(&r->p->arena, rest.n / 2 + 1, sizeof *c->told);
    for (str w; c->told && (w = text_word(&rest)).n;)
        c->told[c->ntold++] = to_double(w);
    return c->told || wrong(r, "out of memory");
}

static bool read_detail(reader *r, text_call *c, buf *want)
{
    str line = str_trim(r->line), rest = line, word = text_word(&rest);
    if (str_is(word, "told"))
        return read_told(r, rest, c);
    if (str_is(word, "did")) {
        rest = str_trim(rest);
        c->did = arena_strndup(&r->p->arena, rest.s, rest.n);
        return c->did || wrong(r, "out of memory");
    }
    if (!str_is(word, "as")) {
        buf_add(want, line.s, line.n);
        buf_putc(want, '\n');
        return true;
    }
    uint32_t i = to_count(text_word(&rest));
    if (i >= r->p->calls.len)
        return wrong(r, "as a call that comes later");
    const text_call *other = &r->p->calls.at[i];
    buf_puts(want, other->want);
    c->told = other->told;
    c->ntold = other->ntold;
    return true;
}

static bool read_call(reader *r, str rest)
{
    text_call c = {.args = to_count(text_word(&rest)), .did = ""};
    buf want = {0};
    if (c.args >= r->p->args.len)
        return wrong(r, "no such argument set");
    for (str w; (w = text_word(&rest)).n;) {
        c.seed |= str_is(w, "seed");
        c.flag |= str_is(w, "flag");
        c.nograd |= str_is(w, "nograd");
        c.busy |= str_is(w, "busy");
    }
    bool ok = true;
    while (ok && has_detail(r) && next_line(r))
        ok = read_detail(r, &c, &want);
    c.want = arena_strdup(&r->p->arena, buf_text(&want));
    buf_fini(&want);
    return ok && (vec_push(&r->p->calls, c) || wrong(r, "out of memory"));
}

/* -- programs ------------------------------------------------------------------------------------------------------ */

static void read_limits(program *p, str rest)
{
    for (str w; (w = text_word(&rest)).n;) {
        uint32_t n = to_count(text_word(&rest));
        uint32_t *to = str_is(w, "outcomes")   ? &p->limit_outcomes
                       : str_is(w, "variants") ? &p->limit_variants
                       : str_is(w, "captures") ? &p->limit_captures
                       : str_is(w, "segments") ? &p->limit_segments
                                               : NULL;
        if (to)
            *to = n;
    }
}

static void read_traits(program *p, str rest)
{
    for (str w; (w = text_word(&rest)).n;) {
        p->is_tame |= str_is(w, "tame");
    }
}

static bool read_heading(reader *r, str word, str rest)
{
    program *p = r->p;
    if (str_is(word, "program"))
        p->number = (uint64_t)to_double(text_word(&rest));
    else if (str_is(word, "mode"))
        p->mode = arena_strndup(&p->arena, str_trim(rest).s, str_trim(rest).n);
    else if (str_is(word, "limits"))
        read_limits(p, rest);
    else if (str_is(word, "traits"))
        read_traits(p, rest);
    else if (str_is(word, "buffers"))
        p->nbuffers = to_count(text_word(&rest));
    else if (str_is(word, "link") && p->nlinks < MAX_LINKS) {
        p->links[p->nlinks][0] = to_count(text_word(&rest));
        p->links[p->nlinks++][1] = to_count(text_word(&rest));
    } else if (str_is(word, "compiles")) {
        for (str w; (w = text_word(&rest)).n && p->nwant_compiles < MAX_LINKS;)
            p->want_compiles[p->nwant_compiles++] = to_count(w);
    } else {
        return wrong(r, "no such line");
    }
    return true;
}

static bool read_lines(reader *r)
{
    const char *from = r->rest.s;
    while (next_line(r)) {
        str rest = str_trim(r->line), word = text_word(&rest);
        if (str_is(word, "end"))
            return (r->p->nfns && r->p->source && r->p->mode && r->p->nbuffers <= r->p->fns[0].nargs) ||
                   wrong(r, "a program without mode, functions or calls, or with too many buffers");
        if (str_is(word, "args") && !r->p->source)
            r->p->source = arena_strndup(&r->p->arena, from, (size_t)(r->line.s - from));
        bool ok = str_is(word, "fn")     ? read_fn(r, rest)
                  : str_is(word, "args") ? read_args(r, rest)
                  : str_is(word, "call") ? read_call(r, rest)
                                         : read_heading(r, word, rest);
        if (!ok)
            return false;
    }
    return wrong(r, "the text ends inside a program");
}

int program_read(str *rest, program *p, char *why, size_t cap)
{
    *p = (program){0};
    reader r = {.rest = *rest, .p = p, .why = why, .cap = cap}, ahead = r;
    if (!next_line(&ahead))
        return 0;
    bool ok = read_lines(&r) && !r.failed;
    *rest = r.rest;
    return ok ? 1 : -1;
}

static void free_block(block *b)
{
    for (uint32_t i = 0; i < b->len; i++)
        for (int j = 0; j < 2; j++)
            if (b->at[i].blocks[j].len) /* three deep at most */
                free_block(&b->at[i].blocks[j]);
    vec_fini(b);
}

void program_free(program *p)
{
    for (uint32_t i = 0; i < p->nfns; i++)
        free_block(&p->fns[i].body);
    vec_fini(&p->args);
    vec_fini(&p->calls);
    arena_fini(&p->arena);
}

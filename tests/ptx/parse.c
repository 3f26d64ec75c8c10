/* Reads PTX as nvcc writes it: a statement a line. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/machine.h"

#define NAMES 32768 /* room for the operands of a kernel; a power of 2 */
#define LABELS_MAX 8192

/* What operands are called: registers, constants, and symbols, which are constants too. Each has a
 * register. */
struct name {
    char *text;
    uint32_t slot;
};

struct label {
    char *text;
    uint32_t at;
};

struct parser {
    const char *file;
    uint32_t line;
    struct program *program; /* NULL: between kernels */
    bool in_head;
    int depth; /* of braces */
    struct name names[NAMES];
    struct label labels[LABELS_MAX];
    size_t label_count;
    char **targets; /* of branches, by instruction; NULL: none */
    size_t target_capacity;
    void (*add)(struct program *program);
};

static _Noreturn void misread(const struct parser *parser, const char *what, const char *text) {
    ptx_fail("%s:%u: %s: %s", parser->file, parser->line, what, text);
}

static void *grown(void *list, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity)
        return list;
    size_t more = 2 * *capacity + 64;
    list = realloc(list, more * size);
    if (!list)
        ptx_fail("no memory of the host");
    memset((char *)list + *capacity * size, 0, (more - *capacity) * size);
    *capacity = more;
    return list;
}

/* ---- operands ---- */

static struct name *name_of(struct parser *parser, const char *text) {
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (uint32_t tried = 0; tried < NAMES; tried++) {
        struct name *name = &parser->names[(hash + tried) % NAMES];
        if (!name->text || !strcmp(name->text, text))
            return name;
    }
    misread(parser, "too many operands", text);
}

static uint32_t name_new(struct parser *parser, const char *text, uint64_t value) {
    struct program *program = parser->program;
    struct name *name = name_of(parser, text);
    if (name->text)
        misread(parser, "it is there twice", text);
    program->initial = grown(program->initial, program->registers, &program->registers_capacity,
                             sizeof *program->initial);
    name->text = strdup(text);
    name->slot = (uint32_t)program->registers++;
    program->initial[name->slot].u64 = value;
    return name->slot;
}

/* "-3", "0d3FF0000000000000" and "0f3F800000". */
static uint64_t constant(const struct parser *parser, const char *text) {
    bool fraction = text[0] == '0' && (text[1] == 'd' || text[1] == 'f');
    char *end;
    uint64_t value = fraction         ? strtoull(text + 2, &end, 16)
                     : text[0] == '-' ? (uint64_t)strtoll(text, &end, 0)
                                      : strtoull(text, &end, 0);
    if (*end || end == text)
        misread(parser, "this operand is not known", text);
    return value;
}

static uint32_t slot_of(struct parser *parser, const char *text) {
    const struct name *name = name_of(parser, text);
    if (name->text)
        return name->slot;
    if (text[0] == '%' && strchr(text, '.'))
        misread(parser, "this register is not known", text);
    return name_new(parser, text, text[0] == '%' ? 0 : constant(parser, text));
}

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* "[%rd1+-8]": the register, and what is added. */
static void read_address(struct parser *parser, struct instruction *in, char *text) {
    size_t length = strlen(text);
    if (text[0] != '[' || text[length - 1] != ']')
        misread(parser, "this is no address", text);
    text[length - 1] = '\0';
    char *plus = strchr(++text, '+');
    if (plus) {
        *plus = '\0';
        in->offset = (int64_t)constant(parser, plus + 1);
    }
    in->from[0] = slot_of(parser, text);
}

/* "{%r1, %r2}" or "%r1". */
static void read_list(struct parser *parser, uint32_t *slots, uint32_t count, char *text) {
    size_t length = strlen(text);
    if (text[0] == '{') {
        text[length - 1] = '\0';
        text++;
    }
    char *part = strtok(text, ",");
    for (uint32_t i = 0; i < count; i++, part = strtok(NULL, ",")) {
        if (!part)
            misread(parser, "the list is too short", text);
        slots[i] = slot_of(parser, trimmed(part));
    }
    if (part)
        misread(parser, "the list is too long", text);
}

/* Splits at commas outside braces; answers how many. */
static size_t split(const struct parser *parser, char *text, char *parts[OPERANDS_MAX]) {
    size_t count = 0;
    bool within = false;
    char *from = text;
    if (!*trimmed(text))
        return 0;
    for (char *c = text;; c++) {
        within = *c == '{' || (within && *c != '}');
        if (*c && (within || *c != ','))
            continue;
        if (count == OPERANDS_MAX)
            misread(parser, "too many operands", text);
        bool last = !*c;
        *c = '\0';
        parts[count++] = trimmed(from);
        from = c + 1;
        if (last)
            return count;
    }
}

/* ---- operations on memory ---- */

static bool read_type(struct instruction *in, const char *part) {
    if (!strchr("bsuf", part[0]))
        return false;
    in->is_signed = part[0] == 's';
    in->bytes = (uint32_t)atoi(part + 1) / 8;
    return in->bytes == 1 || in->bytes == 2 || in->bytes == 4 || in->bytes == 8;
}

static bool read_space(struct instruction *in, const char *part) {
    static const char *const spaces[] = {"", "global", "shared", "local", "param"};
    for (unsigned i = 1; i < sizeof spaces / sizeof *spaces; i++)
        if (!strcmp(part, spaces[i])) {
            in->space = (enum space)i;
            return true;
        }
    return false;
}

static bool read_operation(struct instruction *in, const char *part) {
    static const struct {
        const char *name;
        step *step;
    } operations[] = {{"ld", step_load}, {"st", step_store}, {"add", step_add}, {"max", step_max},
                      {"or", step_or},   {"atom", NULL},     {"red", NULL}};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (!strcmp(part, operations[i].name)) {
            in->step = operations[i].step;
            return true;
        }
    return false;
}

/* "ld.volatile.global.v2.f64": everything that the name says. False if it is no such operation. */
static bool read_memory_name(struct parser *parser, struct instruction *in, const char *name) {
    char copy[64];
    snprintf(copy, sizeof copy, "%s", name);
    char *part = strtok(copy, ".");
    if (strcmp(part, "ld") && strcmp(part, "st") && strcmp(part, "atom") && strcmp(part, "red"))
        return false;
    in->count = 1;
    for (; part; part = strtok(NULL, ".")) {
        if (!strcmp(part, "volatile"))
            in->is_volatile = true;
        else if (!strcmp(part, "v2") || !strcmp(part, "v4"))
            in->count = (uint32_t)atoi(part + 1);
        else if (!read_operation(in, part) && !read_space(in, part) && !read_type(in, part))
            misread(parser, "this operation is not known", name);
    }
    if (!in->step || !in->bytes)
        misread(parser, "this operation is not known", name);
    return true;
}

static void read_memory(struct parser *parser, struct instruction *in, const char *name,
                        char *parts[OPERANDS_MAX], size_t count) {
    bool reduces = !strncmp(name, "red.", 4), stores = in->step == step_store;
    if (in->is_signed && in->step != step_load && in->step != step_store && in->step != step_add)
        misread(parser, "this operation is not known", name);
    if (count != (in->step == step_load || stores || reduces ? 2 : 3))
        misread(parser, "a strange number of operands", name);
    read_address(parser, in, parts[stores || reduces ? 0 : 1]);
    if (!stores && !reduces)
        read_list(parser, in->to, in->count, parts[0]);
    if (reduces)
        in->to[0] = slot_of(parser, "%none");
    if (in->step != step_load)
        read_list(parser, in->from + 1, in->count, parts[count - 1]);
}

/* ---- statements ---- */

static void read_guard(struct parser *parser, struct instruction *in, char **text) {
    in->guard = SLOT_TRUE;
    if (**text != '@')
        return;
    char *name = *text + 1, *end = name + strcspn(name, " \t");
    in->unless = *name == '!';
    *text = trimmed(end + 1);
    *end = '\0';
    in->guard = slot_of(parser, name + in->unless);
}

static void read_operands(struct parser *parser, struct instruction *in, const char *name,
                          char *parts[OPERANDS_MAX], size_t count) {
    in->step = step_named(name);
    if (!in->step)
        misread(parser, "this operation is not known", name);
    if (!strncmp(name, "bra", 3)) {
        parser->targets = grown(parser->targets, parser->program->length, &parser->target_capacity,
                                sizeof *parser->targets);
        parser->targets[parser->program->length] = strdup(parts[0]);
        return;
    }
    bool writes = strncmp(name, "bar", 3) && count;
    if (writes)
        in->to[0] = slot_of(parser, parts[0]);
    for (size_t i = writes; i < count; i++)
        in->from[i - writes] = slot_of(parser, parts[i]);
}

static void read_instruction(struct parser *parser, char *text) {
    struct program *program = parser->program;
    struct instruction in = {.line = parser->line};
    char *parts[OPERANDS_MAX], *end = strrchr(text, ';');
    if (!end || !program)
        misread(parser, "this statement is not known", text);
    *end = '\0';
    read_guard(parser, &in, &text);
    size_t length = strcspn(text, " \t");
    char *operands = text[length] ? text + length + 1 : text + length;
    text[length] = '\0';
    size_t count = split(parser, operands, parts);
    if (read_memory_name(parser, &in, text))
        read_memory(parser, &in, text, parts, count);
    else
        read_operands(parser, &in, text, parts, count);
    program->code =
        grown(program->code, program->length, &program->capacity, sizeof *program->code);
    program->code[program->length++] = in;
}

/* ".shared .align 16 .b8 name[512]" or ".param .u64 name": it comes after *bytes, and its address
 * is a constant. */
static void read_bytes(struct parser *parser, char *text, size_t *bytes) {
    size_t end = strlen(text), alignment = 1, size = 1;
    struct instruction type = {0};
    char *align = strstr(text, ".align "), *open = strchr(text, '[');
    if (text[end - 1] == ';' || text[end - 1] == ',')
        text[end - 1] = '\0';
    if (align)
        alignment = (size_t)atoi(align + 7);
    if (open) {
        size = (size_t)atoll(open + 1);
        *open = '\0';
    }
    char *name = text + strlen(text);
    while (!isspace((unsigned char)name[-1]))
        name--;
    if (!read_type(&type, strrchr(text, '.') + 1))
        misread(parser, "this type is not known", text);
    alignment = align ? alignment : type.bytes;
    *bytes = (*bytes + alignment - 1) / alignment * alignment;
    name_new(parser, name, *bytes);
    *bytes += size * type.bytes;
}

static void begin_kernel(struct parser *parser, char *text) {
    static const char *const given[SLOTS_GIVEN] = {
        [SLOT_TRUE] = "%true",     [SLOT_TID] = "%tid.x",       [SLOT_NTID] = "%ntid.x",
        [SLOT_CTAID] = "%ctaid.x", [SLOT_NCTAID] = "%nctaid.x",
    };
    struct program *program = calloc(1, sizeof *program);
    if (!program)
        ptx_fail("no memory of the host");
    char *name = strstr(text, ".entry") + 6;
    *strchr(name, '(') = '\0';
    program->name = strdup(trimmed(name));
    program->file = strdup(parser->file);
    parser->program = program;
    parser->in_head = true;
    for (unsigned i = 0; i < SLOTS_GIVEN; i++)
        name_new(parser, given[i], i == SLOT_TRUE);
}

static void find_targets(struct parser *parser) {
    struct program *program = parser->program;
    for (size_t i = 0; i < program->length && i < parser->target_capacity; i++) {
        size_t label = 0;
        if (!parser->targets[i])
            continue;
        while (label < parser->label_count &&
               strcmp(parser->labels[label].text, parser->targets[i]))
            label++;
        if (label == parser->label_count)
            misread(parser, "no such label", parser->targets[i]);
        program->code[i].target = parser->labels[label].at;
    }
}

static void end_kernel(struct parser *parser) {
    find_targets(parser);
    parser->add(parser->program);
    for (size_t i = 0; i < NAMES; i++)
        free(parser->names[i].text);
    for (size_t i = 0; i < parser->label_count; i++)
        free(parser->labels[i].text);
    for (size_t i = 0; i < parser->target_capacity; i++)
        free(parser->targets[i]);
    memset(parser->names, 0, sizeof parser->names);
    free(parser->targets);
    parser->targets = NULL;
    parser->target_capacity = 0;
    parser->label_count = 0;
    parser->program = NULL;
}

static void read_label(struct parser *parser, char *text) {
    if (!parser->program || parser->label_count == LABELS_MAX)
        misread(parser, "a strange label", text);
    *strchr(text, ':') = '\0';
    parser->labels[parser->label_count++] =
        (struct label){strdup(text), (uint32_t)parser->program->length};
}

static bool begins(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

/* What says nothing about what is computed. */
static bool is_idle(const char *text) {
    static const char *const idle[] = {"//",       ".version", ".target", ".address_size",
                                       ".maxntid", ".reg",     ".pragma", ")"};
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (begins(text, idle[i]))
            return true;
    return !*text;
}

static void read_brace(struct parser *parser, bool opens) {
    parser->in_head = false;
    parser->depth += opens ? 1 : -1;
    if (!parser->depth)
        end_kernel(parser);
}

static void read_line(struct parser *parser, char *text) {
    struct program *program = parser->program;
    if (begins(text, "//") || is_idle(text))
        return;
    if (strstr(text, ".entry "))
        begin_kernel(parser, text);
    else if (program && parser->in_head && begins(text, ".param"))
        read_bytes(parser, text, &program->argument_bytes);
    else if (program && begins(text, ".shared"))
        read_bytes(parser, text, &program->shared_bytes);
    else if (program && begins(text, ".local"))
        read_bytes(parser, text, &program->local_bytes);
    else if (program && (!strcmp(text, "{") || !strcmp(text, "}")))
        read_brace(parser, *text == '{');
    else if (begins(text, "$"))
        read_label(parser, text);
    else
        read_instruction(parser, text);
}

void ptx_parse(const char *file, char *text, void (*add)(struct program *program)) {
    struct parser *parser = calloc(1, sizeof *parser);
    if (!parser)
        ptx_fail("no memory of the host");
    parser->file = file;
    parser->add = add;
    while (text) {
        char *end = strchr(text, '\n');
        if (end)
            *end = '\0';
        parser->line++;
        read_line(parser, trimmed(text));
        text = end ? end + 1 : NULL;
    }
    free(parser);
}

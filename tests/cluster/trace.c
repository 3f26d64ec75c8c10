#include "wire/evaluation.h"
#include "tests/cluster/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

/* Appends to a line of bounded length. */
struct line {
    char text[1024];
    size_t length;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...) {
    if (line->length >= sizeof line->text)
        return;
    va_list arguments;
    va_start(arguments, format);
    line->length += (size_t)vsnprintf(line->text + line->length, sizeof line->text - line->length,
                                      format, arguments);
    va_end(arguments);
}

static void add_chunk_ranges(struct line *line, const char *name,
                             const struct chunk_ranges *ranges) {
    add(line, " %s=", name);
    for (uint32_t i = 0; i < ranges->length; i++)
        add(line, "%s%" PRIu32 "+%" PRIu32, i ? "," : "", ranges->items[i].first,
            ranges->items[i].count);
}

static void add_u64s(struct line *line, const char *name, const struct u64_list *list) {
    add(line, " %s=", name);
    for (uint32_t i = 0; i < list->length; i++)
        add(line, "%s%#" PRIx64, i ? "," : "", list->items[i]);
}

static void add_parts(struct line *line, const char *name, const struct part_list *parts) {
    add(line, " %s=", name);
    for (uint32_t i = 0; i < parts->length; i++)
        add(line, "%s%s:%" PRIu32 "+%" PRIu32, i ? "," : "",
            evaluation_kind_name(parts->items[i].kind), parts->items[i].first,
            parts->items[i].count);
}

static void add_bounds(struct line *line, const char *name, const struct bounds *bounds) {
    add(line, " %s=", name);
    for (uint32_t i = 0; i < bounds->count; i++)
        add(line, "%s%d", i ? "," : "", bounds->exponent[i]);
}

static void add_maxima(struct line *line, const char *name, const struct maxima *maxima) {
    add(line, " %s=", name);
    for (uint32_t i = 0; i < maxima->count; i++)
        add(line, "%s%.17g", i ? "," : "", maxima->value[i]);
}

#define U8(field) add(line, " " #field "=%u", body->field);
#define U32 U8
#define U64(field) add(line, " " #field "=%#" PRIx64, body->field);
#define I64(field) add(line, " " #field "=%" PRId64, body->field);
#define F64(field) add(line, " " #field "=%.17g", body->field);
#define TEXT(field) add(line, " " #field "=\"%s\"", body->field);
#define BLOB(field) add(line, " " #field "=%" PRIu32 " bytes", body->field.length);
#define RUNS(field) add_chunk_ranges(line, #field, &body->field);
#define U64S(field) add_u64s(line, #field, &body->field);
#define PARTS(field) add_parts(line, #field, &body->field);
#define BOUNDS(field) add_bounds(line, #field, &body->field);
#define MAXIMA(field) add_maxima(line, #field, &body->field);
#define FLUSH(field)                                                                               \
    add(line, " " #field "=%" PRIu32 ":%" PRIu32 ":%#" PRIx64 ":%" PRIu32, body->field.attempt,    \
        body->field.evaluation, body->field.incarnation, body->field.sequence);
#define IN(section) add_section_##section(line, &body->section);
#define SECTION(name, text, fields)                                                                \
    static void add_section_##name(struct line *line, const struct section_##name *body) {         \
        fields                                                                                     \
    }
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    static void add_##name(struct line *line, const struct message *message) {                     \
        const struct message_##name *body = &message->name;                                        \
        fields                                                                                     \
    }
#include "wire/messages.def"

static void add_fields(struct line *line, const struct message *message) {
    switch (message->type) {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    case MESSAGE_##NAME:                                                                           \
        add_##name(line, message);                                                                 \
        break;
#include "wire/messages.def"
    }
}

void trace_message(const struct process *from, const struct process *to,
                   const struct message *message) {
    if (!from->world->trace)
        return;
    struct line line = {.length = 0};
    add_fields(&line, message);
    world_say(from->world, "%s -> %s  %s term=%" PRIu64 "%s", from->name, to->name,
              message_name(message->type), message->term, line.text);
}

/* ---- the log of the roles, in place of base/log.c: part of the trace ---- */

enum log_level log_level_now = LOG_DEBUG;
static bool logging;

void trace_log(bool on) {
    logging = on;
}

void log_line(enum log_level level, const char *format, ...) {
    (void)level;
    if (!logging)
        return;
    va_list arguments;
    va_start(arguments, format);
    printf("%14s", "");
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

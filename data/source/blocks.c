#define _GNU_SOURCE
#include "data/source/blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"

/* ---- records ---- */

/* `p` may be after the text. */
static const char *find(const char *p, char c, const char *end) {
    return p < end ? memchr(p, c, (size_t)(end - p)) : NULL;
}

/* Whether a quote opens a cell; `record` is where the record, or one before it, begins. */
static bool opens_cell(const struct record_rule *rule, const char *record, const char *quote) {
    while (quote > record && quote[-1] == ' ')
        quote--;
    return quote == record || quote[-1] == '\n' || strchr(rule->delimiters, quote[-1]);
}

/* Where to look for a line end again after a quote that opens a cell: after the cell, or right
 * after the quote if it is not closed. NULL: more text must tell. */
static const char *behind_cell(const struct record_rule *rule, const char *open, const char *end,
                               bool ended) {
    assert(open < end && *open == '"');
    bool bounded = (size_t)(end - open) > QUOTED_BYTES_MAX;
    const char *bound = bounded ? open + QUOTED_BYTES_MAX : end;
    const char *close = find(open + 1, '"', bound);
    while (close && close + 1 < bound && close[1] == '"')
        close = find(close + 2, '"', bound);
    if (!close)
        return ended || bounded ? open + 1 : NULL;
    if (!find(open, '\n', close))
        return close + 1;
    const char *next = close + 1;
    while (next < end && *next == ' ')
        next++;
    if (next == end)
        return ended ? close + 1 : NULL;
    bool goes_on = *next == '\n' || *next == '\r' || strchr(rule->delimiters, *next);
    return goes_on ? close + 1 : open + 1;
}

/* Whether quotes may enclose cells in a record, or text, that begins so. */
static bool has_cells(const struct record_rule *rule) {
    return rule->delimiters[0] && !rule->plain_quotes;
}

/* Whether the line of a place in a text is a comment. */
static bool is_in_comment(const struct record_rule *rule, const char *text, const char *place) {
    const char *line = memrchr(text, '\n', (size_t)(place - text));
    return record_is_comment(rule, line ? line + 1 : text);
}

char *record_end(const struct record_rule *rule, char *at, char *end) {
    const char *from = at, *line_end = find(at, '\n', end), *quote;
    const bool cells = has_cells(rule) && !(at < end && record_is_comment(rule, at));
    while (cells && (quote = find(from, '"', line_end ? line_end : end))) {
        from = opens_cell(rule, at, quote) ? behind_cell(rule, quote, end, true) : quote + 1;
        if (line_end && from > line_end)
            line_end = find(from, '\n', end);
    }
    return line_end ? at + (line_end - at) : end;
}

bool record_has(const struct record_rule *rule, const char *record, size_t length, char delimiter) {
    const char *end = record + length, *from = record, *quote;
    while (!rule->plain_quotes && (quote = find(from, '"', end))) {
        if (find(from, delimiter, quote))
            return true;
        from = opens_cell(rule, record, quote) ? behind_cell(rule, quote, end, true) : quote + 1;
    }
    return find(from, delimiter, end);
}

/* The place after the last line end of [from, end); `from` if there is none. */
static const char *behind_last_line(const char *from, const char *end) {
    const char *last = from < end ? memrchr(from, '\n', (size_t)(end - from)) : NULL;
    return last ? last + 1 : from;
}

size_t records_whole(const struct record_rule *rule, const char *text, size_t length, bool ended) {
    const char *end = text + length, *whole = text, *from = text, *outside = text, *quote;
    if (ended)
        return length;
    while (has_cells(rule) && (quote = find(from, '"', end))) {
        if (!opens_cell(rule, whole, quote) || is_in_comment(rule, outside, quote)) {
            from = quote + 1;
            continue;
        }
        from = behind_cell(rule, quote, end, false);
        if (!from) {
            end = quote;
            break;
        }
        if (!find(quote, '\n', from))
            continue;
        const char *last = behind_last_line(outside, quote);
        whole = last > outside ? last : whole;
        outside = from;
    }
    const char *last = behind_last_line(outside, end);
    return (size_t)((last > outside ? last : whole) - text);
}

/* ---- blocks ---- */

void blocks_init(struct blocks *blocks, struct input *input, const char *path) {
    *blocks = (struct blocks){
        .input = input, .path = path, .block_bytes = BLOCK_TEXT_BYTES, .next_line = 1};
}

void blocks_release(struct blocks *blocks) {
    free(blocks->rest);
    *blocks = (struct blocks){0};
}

static void reserve_text(struct batch *batch, size_t length) {
    if (batch->text_capacity >= length + TEXT_END_BYTES)
        return;
    batch->text_capacity = length + length / 2 + TEXT_END_BYTES;
    batch->text = memory_resize(batch->text, batch->text_capacity, 1);
}

/* Whether what was read is handed out before there is more, since whoever writes it may wait for an
 * answer: not of arrays, which begin with one of these bytes. */
static bool is_enough(const struct blocks *blocks, const char *bytes, size_t length) {
    return length && bytes[0] != '\0' && bytes[0] != '\x93' && input_is_waiting(blocks->input) &&
           records_whole(&blocks->rule, bytes, length, false);
}

/* Reads to `bytes`, which has *length of them, until there are `aim`, or with `lines` enough of
 * them, or the input ends. */
static int read_until(struct blocks *blocks, bool lines, char *bytes, size_t *length, size_t aim) {
    while (*length < aim && !blocks->ended && !(lines && is_enough(blocks, bytes, *length))) {
        size_t got;
        int code = input_read(blocks->input, bytes + *length, aim - *length, &got);
        if (code)
            return code;
        assert(got <= aim - *length);
        *length += got;
        blocks->text_bytes += got;
        blocks->ended = got == 0;
    }
    return 0;
}

/* Reads until the text is `length` long or ends, or with `lines` has enough of them. */
static int fill_text(struct blocks *blocks, bool lines, struct batch *batch, size_t length) {
    reserve_text(batch, length);
    return read_until(blocks, lines, batch->text, &batch->text_length, length);
}

static void reserve_rest(struct blocks *blocks, size_t length) {
    if (blocks->rest_capacity >= length)
        return;
    blocks->rest_capacity = length;
    blocks->rest = memory_resize(blocks->rest, length, 1);
}

int blocks_next(struct blocks *blocks, struct batch *batch) {
    batch->first_line = blocks->next_line;
    reserve_text(batch, blocks->rest_length);
    if (blocks->rest_length)
        memcpy(batch->text, blocks->rest, blocks->rest_length);
    batch->text_length = blocks->rest_length;
    size_t aim = blocks->block_bytes, whole = 0;
    while (!whole) {
        int code = fill_text(blocks, true, batch, aim);
        if (code)
            return code;
        size_t here = batch->text_length < aim ? batch->text_length : aim;
        bool last = blocks->ended && here == batch->text_length;
        whole = records_whole(&blocks->rule, batch->text, here, last);
        if (last)
            break;
        if (!whole && aim > LINE_BYTES_MAX)
            return error_set(ERROR_DATA, "%s:%llu: the line is longer than %u bytes", blocks->path,
                             (unsigned long long)blocks->next_line, LINE_BYTES_MAX);
        aim *= 2;
    }
    assert(whole <= batch->text_length);
    blocks->rest_length = batch->text_length - whole;
    reserve_rest(blocks, blocks->rest_length);
    if (blocks->rest_length)
        memcpy(blocks->rest, batch->text + whole, blocks->rest_length);
    batch->text_length = whole;
    memset(batch->text + whole, 0, TEXT_END_BYTES);
    for (const char *p = batch->text, *end = p + whole;
         p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        blocks->next_line++;
    /* Windows editors begin a file with these three bytes. */
    if (batch->first_line == 1 && whole >= 3 && !memcmp(batch->text, "\xef\xbb\xbf", 3)) {
        batch->text_length -= 3;
        memmove(batch->text, batch->text + 3, batch->text_length + TEXT_END_BYTES);
    }
    return 0;
}

int blocks_set_rule(struct blocks *blocks, const struct record_rule *rule, size_t bytes,
                    struct batch *batch) {
    blocks->rule = *rule;
    blocks->block_bytes = bytes < BLOCK_TEXT_BYTES ? bytes : BLOCK_TEXT_BYTES;
    bool quotes = rule->delimiters[0] && memchr(batch->text, '"', batch->text_length);
    if (!quotes && batch->text_length <= blocks->block_bytes)
        return 0;
    size_t length = batch->text_length;
    reserve_rest(blocks, length + blocks->rest_length);
    memmove(blocks->rest + length, blocks->rest, blocks->rest_length);
    memcpy(blocks->rest, batch->text, length);
    blocks->rest_length += length;
    assert(blocks->next_line >= batch->first_line); /* the block is read again */
    blocks->next_line = batch->first_line;
    return blocks_next(blocks, batch);
}

int blocks_peek(struct blocks *blocks, size_t least, const uint8_t **bytes, size_t *length) {
    reserve_rest(blocks, least);
    int code = read_until(blocks, true, blocks->rest, &blocks->rest_length, least);
    *bytes = (const uint8_t *)blocks->rest;
    *length = blocks->rest_length;
    return code;
}

void blocks_skip(struct blocks *blocks, size_t length) {
    assert(length <= blocks->rest_length);
    blocks->rest_length -= length;
    if (blocks->rest_length)
        memmove(blocks->rest, blocks->rest + length, blocks->rest_length);
}

int blocks_take(struct blocks *blocks, struct batch *batch, size_t length) {
    size_t end = batch->text_length + length;
    size_t there = blocks->rest_length < length ? blocks->rest_length : length;
    reserve_text(batch, end);
    if (there)
        memcpy(batch->text + batch->text_length, blocks->rest, there);
    batch->text_length += there;
    assert(batch->text_length <= end);
    blocks_skip(blocks, there);
    return fill_text(blocks, false, batch, end);
}

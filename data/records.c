#define _GNU_SOURCE
#include "data/records.h"

#include <string.h>

/* `p` may be behind the text. */
static const char *find(const char *p, char c, const char *end) {
    return p < end ? memchr(p, c, (size_t)(end - p)) : NULL;
}

/* Whether a quote opens a cell; `record` is where the record, or one before it, begins. */
static bool opens_cell(const struct record_rule *rule, const char *record, const char *quote) {
    while (quote > record && quote[-1] == ' ')
        quote--;
    return quote == record || quote[-1] == '\n' || strchr(rule->delimiters, quote[-1]);
}

/* The quote that closes a cell; `end` if it is not to be seen. */
static const char *closing_quote(const char *open, const char *end) {
    const char *quote = find(open + 1, '"', end);
    while (quote && quote + 1 < end && quote[1] == '"')
        quote = find(quote + 2, '"', end);
    return quote ? quote : end;
}

/* Where to look for a line end again behind a quote that opens a cell: behind the cell, or right
 * behind the quote if it is not closed. NULL: more text must tell. */
static const char *behind_cell(const struct record_rule *rule, const char *open, const char *end,
                               bool ended) {
    bool bounded = (size_t)(end - open) > QUOTED_BYTES_MAX;
    const char *bound = bounded ? open + QUOTED_BYTES_MAX : end;
    const char *close = closing_quote(open, bound);
    if (close == bound)
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

char *record_end(const struct record_rule *rule, char *at, char *end) {
    const char *from = at, *line_end = find(at, '\n', end), *quote;
    while (rule->delimiters[0] && (quote = find(from, '"', line_end ? line_end : end))) {
        from = opens_cell(rule, at, quote) ? behind_cell(rule, quote, end, true) : quote + 1;
        if (line_end && from > line_end)
            line_end = find(from, '\n', end);
    }
    return line_end ? at + (line_end - at) : end;
}

bool record_has(const struct record_rule *rule, const char *record, size_t length, char delimiter) {
    const char *end = record + length, *from = record, *quote;
    while ((quote = find(from, '"', end))) {
        if (find(from, delimiter, quote))
            return true;
        from = opens_cell(rule, record, quote) ? behind_cell(rule, quote, end, true) : quote + 1;
    }
    return find(from, delimiter, end);
}

/* Behind the last line end of [from, end); `from` if there is none. */
static const char *behind_last_line(const char *from, const char *end) {
    const char *last = from < end ? memrchr(from, '\n', (size_t)(end - from)) : NULL;
    return last ? last + 1 : from;
}

size_t records_whole(const struct record_rule *rule, const char *text, size_t length, bool ended) {
    const char *end = text + length, *whole = text, *from = text, *outside = text, *quote;
    if (ended)
        return length;
    while (rule->delimiters[0] && (quote = find(from, '"', end))) {
        if (!opens_cell(rule, whole, quote)) {
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

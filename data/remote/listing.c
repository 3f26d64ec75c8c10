#include "data/remote/listing.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/text/letters.h"

#define DEPTH_MAX 8
#define NAME_BYTES 32 /* of an element that is looked for, and its 0 */

/* Where a page is read. */
struct page {
    const char *at, *end;
    char path[DEPTH_MAX][NAME_BYTES]; /* the elements that are open; cut to their beginnings */
    unsigned depth;
    char *text; /* of the element that was opened last; owned */
    size_t length, capacity;
    bool seen, truncated;
};

static bool is_at(const struct page *page, const char *text) {
    size_t length = strlen(text);
    return (size_t)(page->end - page->at) >= length && !memcmp(page->at, text, length);
}

/* Moves past the next `text`. */
static bool pass(struct page *page, const char *text) {
    size_t length = strlen(text);
    while ((size_t)(page->end - page->at) >= length && memcmp(page->at, text, length))
        page->at++;
    bool found = is_at(page, text);
    page->at += found ? length : 0;
    return found;
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '-' || c == '.';
}

static bool read_name(struct page *page, char name[NAME_BYTES]) {
    size_t length = 0;
    while (page->at < page->end && is_name(*page->at)) {
        if (length + 1 < NAME_BYTES)
            name[length++] = *page->at;
        page->at++;
    }
    name[length] = '\0';
    return length > 0;
}

static void put(struct page *page, const char *bytes, size_t count) {
    if (page->length + count + 1 > page->capacity) {
        page->capacity = 2 * (page->length + count) + 64;
        page->text = memory_resize(page->text, page->capacity, 1);
    }
    memcpy(page->text + page->length, bytes, count);
    page->length += count;
    page->text[page->length] = '\0';
}

/* `at` is at the ampersand. */
static const char *read_entity(struct page *page) {
    static const struct {
        const char *name;
        char meant;
    } entities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (is_at(page, entities[i].name)) {
            put(page, &entities[i].meant, 1);
            page->at += strlen(entities[i].name);
            return NULL;
        }
    if (!is_at(page, "&#"))
        return "an entity that it does not define";
    page->at += 2;
    unsigned base = is_at(page, "x") ? 16 : 10;
    page->at += base == 16;
    uint32_t character = 0, digits = 0;
    for (; page->at < page->end && digits < 8; page->at++, digits++) {
        int digit = hex_digit(*page->at);
        if (digit < 0 || (unsigned)digit >= base)
            break;
        character = base * character + (unsigned)digit;
    }
    bool sound = digits && is_at(page, ";") && character && character <= 0x10ffff &&
                 (character < 0xd800 || character >= 0xe000);
    if (!sound)
        return "a number that is no character";
    page->at++;
    char bytes[LETTER_BYTES_MAX];
    put(page, bytes, letter_write(bytes, character));
    return NULL;
}

static bool is_path(const struct page *page, const char *const *names, unsigned count) {
    bool same = page->depth == count;
    for (unsigned i = 0; i < count && same; i++)
        same = !strcmp(page->path[i], names[i]);
    return same;
}

/* The text without percent-encoding; NULL if that is wrong, or there is a zero byte. */
static char *decode(const char *text) {
    char *key = memory_new(strlen(text) + 1, 1), *to = key;
    for (; *text; text++) {
        if (*text != '%') {
            *to++ = *text == '+' ? ' ' : *text;
            continue;
        }
        int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);
        if (low < 0 || !(high | low)) {
            free(key);
            return NULL;
        }
        *to++ = (char)(16 * high + low);
        text += 2;
    }
    return key;
}

static const char *take_key(struct listing *listing, const struct page *page) {
    char *key = decode(page->length ? page->text : "");
    if (!key || !*key) {
        free(key);
        return "a key that is no text";
    }
    if (listing->count + 2 > listing->capacity) {
        listing->capacity = 2 * listing->capacity + 8;
        listing->key = memory_resize(listing->key, listing->capacity, sizeof *listing->key);
    }
    listing->key[listing->count++] = key;
    listing->key[listing->count] = NULL;
    return NULL;
}

/* What an element that ends here says. */
static const char *end_element(struct listing *listing, struct page *page) {
    static const char *const key[] = {"ListBucketResult", "Contents", "Key"},
                             *const more[] = {"ListBucketResult", "IsTruncated"},
                             *const token[] = {"ListBucketResult", "NextContinuationToken"};
    const char *why = NULL, *text = page->length ? page->text : "";
    if (is_path(page, key, 3))
        why = take_key(listing, page);
    else if (is_path(page, more, 2))
        page->truncated = !strcmp(text, "true");
    else if (is_path(page, token, 2) && !listing->token)
        listing->token = memory_copy_string(text);
    page->length = 0;
    page->depth--;
    return why;
}

/* `at` is after the `<` of an element that opens. */
static const char *open_element(struct listing *listing, struct page *page) {
    if (page->depth == DEPTH_MAX)
        return "elements that are nested too deep";
    if (!read_name(page, page->path[page->depth]))
        return "something else than XML";
    if (!page->depth && (page->seen || strcmp(page->path[0], "ListBucketResult") != 0))
        return "something else than one ListBucketResult";
    page->seen = true;
    page->depth++;
    page->length = 0;
    char quote = '\0', before = '\0';
    for (; page->at < page->end && (quote || *page->at != '>'); page->at++) {
        before = *page->at;
        if (quote ? before == quote : before == '"' || before == '\'')
            quote = quote ? '\0' : before;
    }
    if (page->at == page->end)
        return "its end, too early";
    page->at++;
    return before == '/' ? end_element(listing, page) : NULL;
}

static const char *close_element(struct listing *listing, struct page *page) {
    char name[NAME_BYTES];
    if (!page->depth || !read_name(page, name) || strcmp(name, page->path[page->depth - 1]) != 0)
        return "an element that ends another";
    while (page->at < page->end && strchr(" \t\r\n", *page->at) && *page->at)
        page->at++;
    if (!is_at(page, ">"))
        return "something else than XML";
    page->at++;
    return end_element(listing, page);
}

/* Reads up to the end of the next tag, or the next character. */
static const char *step(struct listing *listing, struct page *page) {
    if (*page->at == '&')
        return page->depth ? read_entity(page) : "text outside of its elements";
    if (*page->at == '\0')
        return "a zero byte";
    if (*page->at != '<') {
        put(page, page->at++, 1);
        return NULL;
    }
    if (is_at(page, "<?"))
        return pass(page, "?>") ? NULL : "its end, too early";
    if (is_at(page, "<!--"))
        return pass(page, "-->") ? NULL : "its end, too early";
    if (is_at(page, "<!"))
        return "a document type or raw text";
    page->at++;
    if (is_at(page, "/")) {
        page->at++;
        return close_element(listing, page);
    }
    return open_element(listing, page);
}

const char *listing_add(struct listing *listing, const char *xml, size_t length) {
    struct page page = {.at = xml, .end = xml + length};
    const char *why = NULL;
    free(listing->token);
    listing->token = NULL;
    while (!why && page.at < page.end)
        why = step(listing, &page);
    if (!why && (page.depth || !page.seen))
        why = "its end, too early";
    if (!why && page.truncated && !(listing->token && *listing->token))
        why = "that there is more, and not how to ask for it";
    if (why || !page.truncated) {
        free(listing->token);
        listing->token = NULL;
    }
    free(page.text);
    return why;
}

void listing_release(struct listing *listing) {
    for (size_t i = 0; i < listing->count; i++)
        free(listing->key[i]);
    free(listing->key);
    free(listing->token);
    *listing = (struct listing){0};
}

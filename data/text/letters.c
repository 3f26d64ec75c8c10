#include "data/text/letters.h"

#include <pthread.h>
#include <unicase.h>
#include <unictype.h>

unsigned letter_read(const char *text, size_t length, uint32_t *character) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned first = bytes[0], size = first < 0x80   ? 1
                                      : first < 0xc0 ? 0
                                      : first < 0xe0 ? 2
                                      : first < 0xf0 ? 3
                                      : first < 0xf8 ? 4
                                                     : 0;
    if (!size || size > length)
        return 0;
    uint32_t value = size == 1 ? first : first & (0x7fu >> size);
    for (unsigned i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3fu);
    }
    if (value < least[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *character = value;
    return size;
}

unsigned letter_write(char *to, uint32_t character) {
    if (character < 0x80) {
        to[0] = (char)character;
        return 1;
    }
    unsigned size = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (unsigned i = size - 1; i; i--, character >>= 6)
        to[i] = (char)(0x80 | (character & 0x3f));
    to[0] = (char)((0xf00u >> size & 0xff) | character);
    return size;
}

/* Most scripts with two bytes a letter are looked up here. */
#define NEAR_END 0x800u
#define NEAR_WORD 0x10000u /* it may stand in a word; below, its lower case */

static uint32_t near[NEAR_END];
static pthread_once_t near_once = PTHREAD_ONCE_INIT;

static bool look_up(uint32_t character) {
    return character == '_' ||
           uc_is_general_category_withtable(character, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_N);
}

static void fill_near(void) {
    for (uint32_t c = 0; c < NEAR_END; c++)
        near[c] = (look_up(c) ? NEAR_WORD : 0) | uc_tolower(c);
}

static uint32_t near_of(uint32_t character) {
    pthread_once(&near_once, fill_near);
    return near[character];
}

int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool letter_is_of_word(uint32_t character) {
    return character < NEAR_END ? (near_of(character) & NEAR_WORD) != 0 : look_up(character);
}

uint32_t letter_lower(uint32_t character) {
    return character < NEAR_END ? near_of(character) & (NEAR_WORD - 1) : uc_tolower(character);
}

bool letter_sigma_is_final(const char *text, size_t length, size_t at) {
    uint32_t character = 0;
    size_t i = at;
    bool cased = false, skips = true;
    while (i && skips) {
        do
            i--;
        while (i && (text[i] & 0xc0) == 0x80);
        if (!letter_read(text + i, at - i, &character))
            return false;
        skips = uc_is_property_case_ignorable(character);
        cased = !skips && uc_is_property_cased(character);
    }
    if (!cased)
        return false;
    unsigned size = letter_read(text + at, length - at, &character);
    for (i = at + size; i < length && size; i += size) {
        size = letter_read(text + i, length - i, &character);
        if (size && !uc_is_property_case_ignorable(character))
            return !uc_is_property_cased(character);
    }
    return true;
}

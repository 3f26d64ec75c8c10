#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define LENGTH_MAX 40 /* no word of ours is longer */

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* The number of changes, where no letter is changed twice: the restricted distance of Damerau and
 * Levenshtein, by its usual table of prefixes. */
static unsigned distance_of(const char *a, size_t length_a, const char *b, size_t length_b) {
    unsigned table[LENGTH_MAX + 1][LENGTH_MAX + 1];
    for (unsigned i = 0; i <= length_a; i++)
        table[i][0] = i;
    for (unsigned j = 0; j <= length_b; j++)
        table[0][j] = j;
    for (size_t i = 1; i <= length_a; i++)
        for (size_t j = 1; j <= length_b; j++) {
            unsigned changed = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            table[i][j] = least(changed, least(table[i - 1][j], table[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
        }
    return table[length_a][length_b];
}

void nearest_offer(struct nearest *nearest, const char *word) {
    size_t length = strlen(nearest->text), of_word = strlen(word);
    unsigned most = length < 6 ? 1 : (unsigned)(length / 3);
    if (length > LENGTH_MAX || of_word > LENGTH_MAX)
        return;
    unsigned distance = distance_of(nearest->text, length, word, of_word);
    if (distance > most || distance >= length || (nearest->word && distance >= nearest->distance))
        return;
    nearest->word = word;
    nearest->distance = distance;
}

const char *nearest_question(const struct nearest *nearest, const char *prefix) {
    static char text[LENGTH_MAX + 32];
    text[0] = '\0';
    if (nearest->word)
        snprintf(text, sizeof text, "; did you mean `%s%s`?", prefix, nearest->word);
    return text;
}

/* "Did you mean": the word of a table that is nearest to a misspelt one. */
#ifndef DML_BASE_NEAREST_H
#define DML_BASE_NEAREST_H

/* Set `text`, zero the rest, offer every word, then ask. */
struct nearest {
    const char *text;
    const char *word; /* the nearest so far, of those offered; NULL if none is near */
    unsigned distance;
};

/* A word is near if the text becomes the word by at most as many changes as a third of its letters
 * (at least one). A change leaves out, inserts or replaces a letter, or swaps two neighbours. Of
 * equally near words the first one offered stays. */
void nearest_offer(struct nearest *nearest, const char *word);

/* "; did you mean `WORD`?", the word behind `prefix`, or nothing. Valid until the next call. */
const char *nearest_question(const struct nearest *nearest, const char *prefix);

#endif

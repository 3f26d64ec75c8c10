/* "Did you mean": the word of a table that is nearest to a misspelt one. */
#ifndef DML_BASE_NEAREST_H
#define DML_BASE_NEAREST_H

/* Begin with the text and zeros, offer every word, then ask. */
struct nearest {
    const char *text;
    const char *word; /* the nearest so far, of those offered; NULL if none is near */
    unsigned distance;
};

/* Near is what becomes the word when at most a third of the text's letters, or one, are left out,
 * put in, changed or swapped with their neighbour. The first of equals stays. */
void nearest_offer(struct nearest *nearest, const char *word);

/* "; did you mean `WORD`?", the word behind `prefix`, or nothing. Valid until the next call. */
const char *nearest_question(const struct nearest *nearest, const char *prefix);

#endif

/* The texts of one truth, time or number. Doors write them differently: for a truth pandas has
 * True, JSON true and spreadsheets TRUE; for a time one program writes all digits of its unit and
 * another none. A text that training did not have means one that it had if that is only spelled in
 * another way. */
#ifndef DML_DATA_TABLE_SPELLING_H
#define DML_DATA_TABLE_SPELLING_H

#include <stdbool.h>
#include <stdint.h>

#include "data/table/table.h"

#define SPELLINGS_MAX 32
#define SPELLING_BYTES 48

struct spellings {
    uint32_t count;
    char text[SPELLINGS_MAX][SPELLING_BYTES];
};

/* Finds all spellings of what the text means, the canonical one first. There are none for what is
 * neither a truth nor a time, nor a number as a program writes it: codes such as 01 and versions
 * such as 1.10 have only their own spelling. */
void spellings_find(struct spellings *spellings, const char *text);

/* The canonical spelling of a text, which may be the text itself; `room` is for another one. Quick
 * for texts that have no other spelling. */
const char *spelling_canonical(const char *text, char room[SPELLING_BYTES]);

/* The id of what stands for a category's text that is not known by its own spelling: that of the
 * first other spelling for which `known` returns true; 0: there is none. */
uint64_t spelling_find_known(uint32_t column, const char *text,
                             bool (*known)(const void *context, uint64_t id), const void *context);

#endif

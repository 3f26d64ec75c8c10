/* Other texts of the same truth, time or number. Doors write them differently: of a truth pandas
 * has True, JSON true and spreadsheets TRUE; of a time one program writes all digits of its unit
 * and another none. A text that training did not have means one that it had if that is only spelled
 * in another way. */
#ifndef DML_DATA_SPELLING_H
#define DML_DATA_SPELLING_H

#include <stdint.h>

#define SPELLINGS_MAX 32
#define SPELLING_BYTES 48

struct spellings {
    uint32_t count;
    char text[SPELLINGS_MAX][SPELLING_BYTES];
};

/* Finds the others; none of what is neither a truth nor a time, nor a number as a program writes
 * it: codes such as 01 and versions such as 1.10 are themselves alone. */
void spellings_find(struct spellings *spellings, const char *text);

#endif

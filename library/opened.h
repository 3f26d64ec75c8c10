/* An open model of the library, as its files see it. */
#ifndef DML_LIBRARY_OPENED_H
#define DML_LIBRARY_OPENED_H

#include <stdint.h>

#include "library/dml/model.h"
#include "model/model.h"

/* A column that rows of a table must have. */
struct opened_column {
    uint32_t number; /* in the model's table */
    enum dml_kind kind;
};

struct dml_model {
    struct model *model;
    const struct objective *objective;
    struct opened_column *column; /* `columns`, as they stood in training; owned */
    uint32_t columns;
    char *description; /* owned */
};

/* library/description.c: free the result. */
char *description_text(const struct dml_model *model);

#endif

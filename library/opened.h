/* An open model of the library, as its files see it. */
#ifndef DML_LIBRARY_OPENED_H
#define DML_LIBRARY_OPENED_H

#include <stdatomic.h>
#include <stdint.h>

#include "library/dml/model.h"
#include "model/model.h"

/* A column that rows of a table must have. */
struct opened_column {
    uint32_t number; /* in the model's table */
    enum dml_kind kind;
};

/* The caller of dml_model_open() holds the model, and each of its scorers does. The last one that
 * lets go frees it, in whatever thread and order that happens: callers with garbage collectors do
 * not choose the order. */
struct dml_model {
    atomic_size_t *holders; /* owned; apart, since scorers see the rest as constant */
    struct model *model;
    const struct objective *objective;
    struct opened_column *column; /* `columns`, as they stood in training; owned */
    uint32_t columns;
    char *description; /* owned */
};

/* For a scorer that is made of it, and when that is freed. */
const struct dml_model *opened_hold(const struct dml_model *model);
void opened_let_go(const struct dml_model *model); /* harmless on NULL */

/* library/description.c: free the result. */
char *description_text(const struct dml_model *model);

#endif

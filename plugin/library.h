/* Inside plugin/ only: a library in this process. */
#ifndef DML_PLUGIN_LIBRARY_H
#define DML_PLUGIN_LIBRARY_H

#include "base/sha256.h"
#include "plugin/dml/objective.h"

struct library {
    const struct dml_objective *objective;
    void *state; /* its own */
    struct dml_form form;
    char sha256[SHA256_TEXT];
};

/* Loads a copy of the file: so what runs is what was hashed, and it stays what it is when the file
 * is replaced or written to. `sha256`: that it must have, or "". ERROR_CONFIG, with a text that
 * names the library. */
int library_load(const char *path, const char *sha256, struct library *library);

/* Gives it the options. ERROR_CONFIG if it does not take them. */
int library_open(const char *path, const char *options, struct library *library);

#endif

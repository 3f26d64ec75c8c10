/* Which columns of a table have effects that only rise or only fall. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/table/table.h"

/* The name of a column may have = in it: the last one parts them. */
bool monotone_parse(const char *text, size_t *length, enum monotone *monotone) {
    const char *equals = strrchr(text, '=');
    if (!equals)
        return false;
    *length = (size_t)(equals - text);
    while (*length && strchr(" \t", text[*length - 1]))
        --*length;
    const char *word = equals + 1 + strspn(equals + 1, " \t");
    *monotone = !strcmp(word, "rising")    ? MONOTONE_RISING
                : !strcmp(word, "falling") ? MONOTONE_FALLING
                                           : MONOTONE_NONE;
    return *length && *monotone != MONOTONE_NONE;
}

int table_column_of_rule(const struct table *table, const char *name, uint32_t *column) {
    char *end;
    for (uint32_t i = 0; i < table->columns; i++)
        if (table->column[i].name && !strcmp(table->column[i].name, name)) {
            *column = i;
            return 0;
        }
    unsigned long number = strtoul(name, &end, 10);
    if (*end || !number || number > table->columns) {
        struct nearest nearest = {.text = name};
        for (uint32_t i = 0; i < table->columns; i++)
            if (table->column[i].name)
                nearest_offer(&nearest, table->column[i].name);
        return error_set(ERROR_CONFIG,
                         "there is no column \"%s\" in the data%s; allowed: a name of its header "
                         "line, or a number from 1",
                         name, nearest_suggestion(&nearest, ""));
    }
    *column = (uint32_t)number - 1;
    return 0;
}

static int set_monotone(struct table *table, const char *name, enum monotone monotone) {
    char text[COLUMN_TEXT];
    uint32_t column;
    int code = table_column_of_rule(table, name, &column);
    if (code)
        return code;
    struct table_column *here = &table->column[column];
    table_describe(table, column, text);
    if (here->kind != COLUMN_NUMBER)
        return error_set(ERROR_CONFIG, "%s is no column of numbers that is trained on", text);
    if (here->monotone != MONOTONE_NONE)
        return error_set(ERROR_CONFIG, "\"%s\" is given twice; allowed: once", name);
    here->monotone = monotone;
    return 0;
}

int table_find_monotone(struct table *table, const char *const *texts, bool bins) {
    int code = 0;
    for (uint32_t i = 0; i < table->columns; i++)
        table->column[i].monotone = MONOTONE_NONE;
    if (texts && *texts && !bins)
        return error_set(ERROR_CONFIG, "is for numbers in bins; set csv.bins, for example "
                                       "csv.bins = 16");
    for (; texts && *texts && !code; texts++) {
        size_t length = 0;
        enum monotone monotone;
        if (!monotone_parse(*texts, &length, &monotone))
            return error_set(ERROR_CONFIG,
                             "\"%s\" is not \"COLUMN = rising\" or \"COLUMN = "
                             "falling\"",
                             *texts);
        char *name = memory_format("%.*s", (int)length, *texts);
        code = set_monotone(table, name, monotone);
        free(name);
    }
    return code;
}

/* Which column of a table a feature was made of: found by its name, and proved by its id. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/table/table.h"

/* Whether a text in this role has the id. */
static bool has_id(uint32_t column, uint64_t id, enum feature_role role, const char *text) {
    return table_feature(column, role, text, strlen(text)) == id;
}

/* The text that stands after the column's name, if it is the value: one that looks like a role's
 * word is in quotes there. Free the result. */
static char *find_value(uint32_t column, uint64_t id, const char *text) {
    size_t length = strlen(text);
    if (has_id(column, id, ROLE_VALUE, text))
        return memory_copy_string(text);
    if (length < 2 || *text != '"')
        return NULL;
    char *inner = memory_format("%.*s", (int)length - 2, text + 1);
    if (has_id(column, id, ROLE_VALUE, inner))
        return inner;
    free(inner);
    return NULL;
}

/* Whether the feature is one of the column, whose name stood before `text`. */
static bool is_of_column(const struct table *table, uint32_t column, uint64_t id,
                         const char *text) {
    assert(column < table->columns);
    if (table->column[column].kind == COLUMN_WORDS)
        return has_id(column, id, ROLE_WORD, text);
    char *value = find_value(column, id, text);
    free(value);
    if (value || has_id(column, id, ROLE_MISSING, "") || has_id(column, id, ROLE_RARE, ""))
        return true;
    for (uint32_t bin = 0; bin <= table->column[column].edges; bin++)
        if (table->column[column].edges && table_bin_feature(column, bin) == id)
            return true;
    return false;
}

/* The text after the column's name and = or #, or NULL. */
static const char *behind_name(const struct table *table, uint32_t column, const char *name) {
    char label[COLUMN_LABEL_TEXT];
    const char *head = table_label(table, column, label);
    size_t length = strlen(head);
    bool same = strncmp(name, head, length) == 0 &&
                (name[length] == '=' || name[length] == '#' || name[length] == '>');
    return same ? name + length + 1 : NULL;
}

char *table_value_of(const struct table *table, uint32_t column, uint64_t id, const char *name) {
    const char *text = behind_name(table, column, name);
    return text ? find_value(column, id, text) : NULL;
}

/* Names of columns may have = in them, so the first that fits is taken only where no id proves one:
 * of hashed texts, and of texts that were escaped. A cross is of no single column. */
uint32_t table_column_of(const struct table *table, uint64_t id, const char *name) {
    uint32_t found = COLUMN_NOWHERE;
    if (!(id & FEATURE_HASHED))
        return id && id <= table->columns ? (uint32_t)id - 1 : COLUMN_NOWHERE;
    for (uint32_t i = 0; i < table->columns; i++) {
        const char *text = behind_name(table, i, name);
        if (text && is_of_column(table, i, id, text))
            return i;
        if (text && found == COLUMN_NOWHERE && text[-1] != '>')
            found = i;
    }
    return table->crosses && strstr(name, " * ") ? COLUMN_NOWHERE : found;
}

/* Whether the parts of a name, each after " * ", are of the cross's columns in their order. */
static bool is_of_cross(const struct table *table, const struct table_cross *cross,
                        const char *name) {
    assert(cross->columns > 0 && cross->columns <= CROSS_COLUMNS_MAX);
    const char *part = behind_name(table, cross->column[0], name);
    for (uint32_t i = 1; part && i < cross->columns; i++) {
        const char *next = NULL;
        while (!next && (part = strstr(part, " * ")))
            next = behind_name(table, cross->column[i], part += 3);
        part = next;
    }
    return part != NULL;
}

/* A name has the parts of smaller crosses among its own, so the largest is the one. */
uint32_t table_cross_of(const struct table *table, const char *name) {
    uint32_t found = table->crosses;
    for (uint32_t i = 0; i < table->crosses; i++)
        if ((found == table->crosses || table->cross[i].columns > table->cross[found].columns) &&
            is_of_cross(table, &table->cross[i], name))
            found = i;
    return found;
}

/* What a merge decides before it writes a row: columns, classes, chunks. All of it is a function
 * of the rows alone, however they are spread over packs. */
#ifndef DML_DATA_MERGE_H
#define DML_DATA_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/dictionary.h"
#include "data/pack_file.h"
#include "data/set_file.h"

/* ---- columns ---- */

struct columns {
    uint32_t count;
    uint64_t *id;       /* original id of each column */
    uint64_t *values;   /* how many values the text had of each */
    const char **name;  /* into the packs, or NULL */
    uint32_t *order;    /* columns by rising id */
    uint32_t **of_pack; /* for each pack: column of each of its features */
    uint32_t packs;
};

int columns_find(struct columns *columns, struct pack *const *packs, uint32_t count);
void columns_release(struct columns *columns);

/* ---- labels ---- */

struct labels {
    enum label_kind kind;
    struct dictionary numbers; /* the bits of a double as id */
    struct text_dictionary texts;
    uint32_t *class_of_number, *class_of_text;
    uint32_t **text_of_pack; /* for each pack: its label texts in `texts` */
    uint32_t packs;
    uint32_t classes;
    char **class_name; /* owned */
    double max_abs;    /* of targets */
};

/* Looks at the labels of all rows. */
int labels_find(struct labels *labels, struct pack *const *packs, uint32_t count,
                enum label_kind kind, const char *positive);
void labels_release(struct labels *labels);

/* The label of a row as the set stores it. Safe from many threads. */
double label_of_row(const struct labels *labels, uint32_t pack, const struct pack_rows *rows,
                    uint32_t row);

/* ---- chunks ---- */

/* A block of a pack, and where its rows are among all. */
struct merge_block {
    uint64_t first_row;
    uint32_t pack, block;
};

struct chunk_plan {
    bool dense;
    enum value_type type;
    uint64_t rows, values, text_values;
    struct merge_block *block; /* owned */
    uint32_t blocks;
    struct set_chunk *chunk; /* owned; offsets and checksums are not set */
    uint32_t chunks;
};

void chunk_plan_make(struct chunk_plan *plan, struct pack *const *packs, uint32_t count,
                     const struct columns *columns);
void chunk_plan_release(struct chunk_plan *plan);

/* ---- rows ---- */

/* Walks over the rows of all packs. */
struct row_walk {
    struct pack *const *packs;
    const struct chunk_plan *plan;
    uint32_t block; /* of the plan */
    uint32_t pack;
    struct pack_rows rows;
    uint32_t row; /* within `rows` */
};

/* Stands at row `first` of all. */
struct row_walk row_walk_from(struct pack *const *packs, const struct chunk_plan *plan,
                              uint64_t first);
void row_walk_next(struct row_walk *walk);

#endif

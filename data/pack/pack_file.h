/* The inside of a pack, for the code that writes and merges packs. Format: doc/FORMATS.md. */
#ifndef DML_DATA_PACK_PACK_FILE_H
#define DML_DATA_PACK_PACK_FILE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/rows.h"
#include "data/pack/container.h"
#include "data/pack/pack.h"
#include "data/source/rows.h"

/* Raise it whenever a file of the old version would be read wrongly or lacks something: packs are
 * made again from their sources. */
#define PACK_VERSION 1
extern const struct container_kind pack_kind;

enum pack_section {
    PACK_FACTS,
    PACK_BLOCKS,      /* struct pack_block × blocks */
    PACK_IDS,         /* u64 × features: original ids by first appearance */
    PACK_COUNTS,      /* u64 × features: values stored of each */
    PACK_NAMES,       /* texts × features, if `named` */
    PACK_LABEL_TEXTS, /* texts × label_texts */
    PACK_SOURCE,      /* one text: the path as given when it was packed */
    PACK_REASONS,     /* texts × reasons: why lines were rejected */
    PACK_TABLE,       /* CSV: one text, as of table_text() */
    PACK_COLUMNS,     /* CSV: u32 × features: the column of each, from 0 */
};

struct pack_facts {
    uint64_t rows, values;
    uint32_t features, blocks;
    uint32_t label_texts, reasons;
    uint32_t format;                             /* enum source_format */
    uint32_t type;                               /* enum value_type: that of the widest block */
    uint32_t label_column;                       /* as in struct source_report */
    uint32_t named;                              /* 1 if features have names */
    uint32_t columns;                            /* as in struct source_report */
    uint32_t weighted;                           /* 1 if some row has another weight than 1 */
    uint32_t header;                             /* CSV: 1 if the file has a header line */
    uint32_t offset;                             /* 1 if some row has another offset than 0 */
    uint64_t source_bytes, text_bytes, rejected; /* source_bytes: as in the stamp */
    struct source_stamp stamp;                   /* of the source */
    struct source_stamp weights_stamp;           /* of the file of weights; or zeros */
    struct source_stamp labels_stamp;            /* and that of the file of labels */
    uint64_t path_hash;                          /* of the absolute paths of all */
    uint64_t options_hash;
    double label_least,
        label_most;       /* of numbers, where the weight is not 0; least > most: of none */
    char source_hash[40]; /* HASH128_TEXT, padded with 0 */
    char weights_hash[40];
    char labels_hash[40];
    char fingerprint[40];
    struct pack_beside { /* the files of offsets and exposures; or zeros */
        struct source_stamp stamp;
        char hash[40];
    } beside[ROW_NUMBERS - ROW_OFFSET];
};
_Static_assert(sizeof(struct pack_facts) == 520, "no padding");

/* A block of rows. At `offset`, each array aligned: start u32 × rows+1, feature u32 × values (both
 * only if not `dense`: then a row has features 0 … values/rows−1), value as `type` says ×
 * values, label f64 × rows (NaN: a text or absent), weight f64 × rows (only if `weighted`),
 * label_text u32 × rows (only if `texts`: number of the text + 1, or 0), position u32 × values
 * (only if `positions`: place of each value in its row's text; else they stand as in the text),
 * offset f64 × rows (only if `shifted`), cluster u64 × rows (only if `clustered`), hash u64 × rows
 * (only if `hashed`, as all that are made of sources are). */
struct pack_block {
    uint64_t offset, bytes, checksum;
    uint64_t first_row;
    uint32_t rows, values;
    uint8_t type, dense, texts, positions, weighted, shifted, clustered, hashed;
};
_Static_assert(sizeof(struct pack_block) == 48, "no padding");

struct pack_block_layout {
    uint64_t start, feature, value, label, weight, label_text, position, offset, cluster, hash,
        bytes; /* offsets within the block */
};
struct pack_block_layout pack_block_layout(const struct pack_block *block);

/* The narrowest type that holds all values. */
enum value_type pack_block_type(const struct source_rows *rows);

/* What is put into a block. */
struct pack_block_content {
    const struct source_rows *rows;
    bool alike;                 /* every row has the features of the first */
    const uint32_t *feature;    /* numbers of the values' features; with `alike` of one row */
    const uint32_t *label_text; /* by row: the number of the text + 1, or 0 */
};

/* Fills `data`, of pack_block_layout().bytes. */
void pack_block_fill(const struct pack_block *block, const struct pack_block_content *content,
                     uint8_t *data);

/* A block's arrays in the mapping; as above, NULL where there is none. */
struct pack_rows {
    uint32_t rows, values;
    enum value_type type;
    const uint32_t *start, *feature;
    const void *value;
    const double *label, *weight, *offset;
    const uint64_t *cluster, *hash;
    const uint32_t *label_text, *position;
};

struct pack {
    struct container container;
    const struct pack_facts *facts;
    const struct pack_block *block;
    const uint64_t *id, *count;
    struct table *table;    /* CSV; or NULL */
    const uint32_t *column; /* CSV: of each feature, from 0; or NULL */
    const char **name;      /* by feature, or NULL */
    const char **label_text;
    const char **reason;
    char *source;
};

/* As pack_open(), with the checksums of the first `hashed` blocks alone: for whoever reads no
 * others, or has just written the file. */
int pack_open_checked(const char *path, uint32_t hashed, struct pack **pack);

struct pack_rows pack_rows(const struct pack *pack, uint32_t block);

/* The text of a category that a feature stands for; NULL if it is something else. Free it. */
char *pack_category_text(const struct pack *pack, uint32_t feature);

/* The values of a row are [*first, the result); feature i of them is pack_feature(rows, *first, i).
 */
static inline uint64_t pack_row(const struct pack_rows *rows, uint32_t row, uint64_t *first) {
    uint64_t width = rows->start ? 0 : rows->values / rows->rows;
    *first = rows->start ? rows->start[row] : row * width;
    return rows->start ? rows->start[row + 1] : *first + width;
}

static inline uint32_t pack_feature(const struct pack_rows *rows, uint64_t first, uint64_t i) {
    return rows->feature ? rows->feature[i] : (uint32_t)(i - first);
}

static inline double pack_value(const struct pack_rows *rows, uint64_t i) {
    return value_at(rows->type, rows->value, i);
}

/* Whether a float holds a value exactly. */
static inline bool pack_is_float(double value) {
    return fabs(value) <= (double)3.4028234663852886e38f && (double)(float)value == value;
}

/* Reads `source` into a new pack in folder `packs`. `known` gives the hashes of the source's path
 * and of the options. *path is where it was put; free it. It is NULL for a source without rows, if
 * the options allow one. */
int pack_write(const char *packs, const char *source, const struct source_options *options,
               unsigned threads, const struct pack_facts *known, char **path);

/* The name of a pack of these contents, read with options of `options_hash`. Weights and labels
 * have "" if they are no files. */
struct pack_hashes {
    char source[HASH128_TEXT], property[ROW_PROPERTIES][HASH128_TEXT], labels[HASH128_TEXT];
};
void pack_fingerprint_make(const struct pack_hashes *hashes, uint64_t options_hash,
                           char text[HASH128_TEXT]);
char *pack_path_make(const char *packs, const char *fingerprint);

#endif

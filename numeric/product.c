#include "numeric/product.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "numeric/clones.h"

/* The width of the registers of AVX2. Every lane is another element of the result, so the width
 * does not show in the bits. */
typedef double quad __attribute__((vector_size(32)));

#define QUAD 4

LANES_INLINE void load(quad *out, const double *from) {
    memcpy(out, from, sizeof *out);
}

LANES_INLINE void store(double *to, const quad *from) {
    memcpy(to, from, sizeof *from);
}

/* ---- a · b ---- */

/* b is packed in panels of at most three quads of columns, the last one filled up with zeros: the
 * k rows of the first panel, those of the second, and so on. */
#define PANEL_QUADS 3

/* Rows of a panel of b that stay in the first cache: 19 KB; whole lines of the cache of a. */
#define PANEL_DEPTH 200
#define LINE_DOUBLES 8

static_assert(sizeof(quad) == QUAD * sizeof(double), "the width of QUAD lanes");
static_assert(PANEL_DEPTH * PANEL_QUADS * sizeof(quad) <= 24 << 10, "half of the first cache");

static size_t panel_quads(size_t columns) {
    size_t quads = (columns + QUAD - 1) / QUAD;
    return quads < PANEL_QUADS ? quads : PANEL_QUADS;
}

size_t product_packed(size_t k, size_t n) {
    return k * ((n + QUAD - 1) / QUAD * QUAD);
}

void product_pack(size_t k, size_t n, const double *b, double *packed) {
    for (size_t first = 0; first < n; first += PANEL_QUADS * QUAD) {
        size_t width = panel_quads(n - first) * QUAD;
        size_t columns = n - first < width ? n - first : width;
        assert(columns && width - columns < QUAD);
        for (size_t i = 0; i < k; i++, packed += width)
            for (size_t column = 0; column < width; column++)
                packed[column] = column < columns ? b[i * n + first + column] : 0;
    }
}

struct panel {
    size_t k;
    size_t from, end;    /* of k: what is to be added */
    const double *a;     /* rows of k */
    const double *b;     /* at `from` */
    const double *ahead; /* what the caller reads next, in place of a; for the second cache */
    double sum[PRODUCT_ROWS_MAX][PANEL_QUADS * QUAD];
};

/* Adds to the sums of `rows` rows. */
LANES_INLINE void panel_rows(size_t rows, size_t quads, struct panel *panel, size_t first) {
    const double *a = panel->a + first * panel->k, *b = panel->b;
    const double *ahead = panel->ahead + first * panel->k;
    quad sum[6][PANEL_QUADS], right[PANEL_QUADS];
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t q = 0; q < quads; q++)
            load(&sum[r][q], &panel->sum[first + r][q * QUAD]);
    }
    for (size_t line = panel->from; line < panel->end; line += LINE_DOUBLES) {
        size_t end = panel->end - line < LINE_DOUBLES ? panel->end : line + LINE_DOUBLES;
        UNROLL for (size_t r = 0; r < rows; r++)
            __builtin_prefetch(ahead + r * panel->k + line, 0, 2);
        for (size_t j = line; j < end; j++, b += quads * QUAD) {
            UNROLL for (size_t q = 0; q < quads; q++) load(&right[q], b + q * QUAD);
            UNROLL for (size_t r = 0; r < rows; r++) {
                const quad left = a[r * panel->k + j] - (quad){0};
                UNROLL for (size_t q = 0; q < quads; q++) sum[r][q] += left * right[q];
            }
        }
    }
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t q = 0; q < quads; q++)
            store(&panel->sum[first + r][q * QUAD], &sum[r][q]);
    }
}

/* `together` rows at a time: as many as there are registers for their sums. The part of b that all
 * rows are multiplied with before the next stays in the cache. */
LANES_INLINE void panel_product(size_t together, size_t quads, size_t m, struct panel *panel) {
    for (size_t from = 0; from < panel->k; from += PANEL_DEPTH) {
        panel->from = from;
        panel->end = panel->k - from < PANEL_DEPTH ? panel->k : from + PANEL_DEPTH;
        size_t i = 0;
        for (; i + together <= m; i += together)
            panel_rows(together, quads, panel, i);
        for (; i < m; i++)
            panel_rows(1, quads, panel, i);
        panel->b += quads * QUAD * (panel->end - from);
    }
}

VECTOR_CLONES
void product_plain(size_t m, size_t n, size_t k, const double *a, const double *packed, double *c) {
    assert(m <= PRODUCT_ROWS_MAX);
    struct panel panel;
    panel.k = k;
    panel.a = a;
    panel.ahead = a + m * k;
    panel.b = packed; /* each panel leaves it at the next one */
    for (size_t first = 0; first < n; first += PANEL_QUADS * QUAD) {
        size_t quads = panel_quads(n - first);
        memset(panel.sum, 0, m * sizeof panel.sum[0]);
        if (quads == 3)
            panel_product(3, 3, m, &panel);
        else if (quads == 2)
            panel_product(4, 2, m, &panel);
        else
            panel_product(6, 1, m, &panel);
        size_t end = n - first < quads * QUAD ? n : first + quads * QUAD;
        for (size_t i = 0; i < m; i++)
            for (size_t column = first; column < end; column++)
                c[i * n + column] = panel.sum[i][column - first];
    }
}

/* ---- bᵀ · a ---- */

/* Columns of a, and of b, whose sums are computed together. */
#define BLOCK_COLUMNS 8
#define BLOCK_OUTPUTS 5

static_assert(sizeof(double[PRODUCT_ROWS_MAX][PANEL_QUADS * QUAD]) <= 64 << 10,
              "a panel's sums are on the stack of a thread");
static_assert(BLOCK_COLUMNS == 2 * QUAD, "a sum of a block is two quads");
static_assert(BLOCK_OUTPUTS == 5, "block_group() has a case for each number of outputs");

struct product_block {
    size_t k, m, n;
    const double *a; /* k rows of BLOCK_COLUMNS columns */
    size_t stride;   /* from row to row of a */
    const double *b; /* k×n */
    size_t b_stride; /* from row to row of b */
    double *c;       /* n×m, at the first of the columns */
    size_t columns;  /* of c */

    const char *ahead; /* what the caller reads next, at these columns; for the second cache */
    size_t ahead_stride;
};

LANES_INLINE void add(double *c, const quad *sum) {
    quad total;
    load(&total, c);
    total += *sum;
    store(c, &total);
}

/* Adds the sums of `outputs` columns of b, from `first` on. `asks`: for what comes next. */
LANES_INLINE void block_outputs(bool asks, size_t outputs, size_t first,
                                const struct product_block *block) {
    quad sum[BLOCK_OUTPUTS][2] = {0};
    const double *a = block->a, *b = block->b + first;
    const char *ahead = block->ahead;
    for (size_t i = 0; i < block->k; i++, a += block->stride, b += block->b_stride) {
        quad low, high;
        if (asks) {
            __builtin_prefetch(a + BLOCK_COLUMNS);
            __builtin_prefetch(ahead, 0, 2);
            ahead += block->ahead_stride;
        }
        load(&low, a);
        load(&high, a + QUAD);
        UNROLL for (size_t o = 0; o < outputs; o++) {
            const quad right = b[o] - (quad){0};
            sum[o][0] += low * right;
            sum[o][1] += high * right;
        }
    }
    UNROLL for (size_t o = 0; o < outputs; o++) {
        double *c = block->c + (first + o) * block->m;
        if (block->columns == BLOCK_COLUMNS) {
            add(c, &sum[o][0]);
            add(c + QUAD, &sum[o][1]);
            continue;
        }
        double row[BLOCK_COLUMNS];
        store(row, &sum[o][0]);
        store(row + QUAD, &sum[o][1]);
        for (size_t j = 0; j < block->columns; j++)
            c[j] += row[j];
    }
}

LANES_INLINE void block_group(bool asks, size_t first, size_t end,
                              const struct product_block *block) {
    switch (end - first) {
    case 5:
        block_outputs(asks, 5, first, block);
        break;
    case 4:
        block_outputs(asks, 4, first, block);
        break;
    case 3:
        block_outputs(asks, 3, first, block);
        break;
    case 2:
        block_outputs(asks, 2, first, block);
        break;
    default:
        block_outputs(asks, 1, first, block);
    }
}

/* The outputs in as few groups as the registers allow, of nearly equal size. The first one asks for
 * what all of them will need, if `asks`. */
LANES_INLINE void block_product(bool asks, const struct product_block *block) {
    size_t groups = (block->n + BLOCK_OUTPUTS - 1) / BLOCK_OUTPUTS, first = block->n / groups;
    block_group(asks, 0, first, block);
    for (size_t group = 1; group < groups; group++) {
        size_t end = block->n * (group + 1) / groups;
        block_group(false, first, end, block);
        first = end;
    }
}

/* The columns after the last whole block, filled up with zeros. */
static void copy_edge(size_t k, size_t m, size_t first, const double *a,
                      double (*edge)[BLOCK_COLUMNS]) {
    for (size_t i = 0; i < k; i++)
        for (size_t l = 0; l < BLOCK_COLUMNS; l++)
            edge[i][l] = first + l < m ? a[i * m + first + l] : 0;
}

VECTOR_CLONES
void product_transposed(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                        const void *ahead, size_t ahead_size) {
    assert(k <= PRODUCT_ROWS_MAX);
    struct product_block block = {.k = k,
                                  .m = m,
                                  .n = n,
                                  .a = a,
                                  .stride = m,
                                  .b = b,
                                  .b_stride = n,
                                  .c = c,
                                  .columns = BLOCK_COLUMNS,
                                  .ahead = ahead,
                                  .ahead_stride = m * ahead_size};
    size_t j = 0;
    for (; j + BLOCK_COLUMNS <= m; j += BLOCK_COLUMNS) {
        block.a = a + j;
        block.c = c + j;
        block.ahead = (const char *)ahead + j * ahead_size;
        block_product(true, &block);
    }
    if (j == m)
        return;
    double edge[PRODUCT_ROWS_MAX][BLOCK_COLUMNS];
    copy_edge(k, m, j, a, edge);
    block.a = edge[0];
    block.stride = BLOCK_COLUMNS;
    block.c = c + j;
    block.columns = m - j;
    block_product(true, &block);
}

/* Computes, for each block of columns, the outputs from its first column on. */
VECTOR_CLONES
void product_triangle(size_t m, size_t k, const double *a, const double *b, double *c) {
    assert(k <= PRODUCT_ROWS_MAX);
    double edge[PRODUCT_ROWS_MAX][BLOCK_COLUMNS];
    struct product_block block = {
        .k = k, .m = m, .stride = m, .b_stride = m, .columns = BLOCK_COLUMNS};
    for (size_t j = 0; j < m; j += BLOCK_COLUMNS) {
        block.n = m - j;
        block.a = a + j;
        block.b = b + j;
        block.c = c + j * m + j;
        if (block.n < BLOCK_COLUMNS) {
            copy_edge(k, m, j, a, edge);
            block.a = edge[0];
            block.stride = BLOCK_COLUMNS;
            block.columns = block.n;
        }
        block_product(false, &block);
    }
}

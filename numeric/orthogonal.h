/* The triangle R of X = QR, in twice the precision of a double: row by row by rotations (Givens),
 * so that Q and X need no memory. RᵀR = XᵀX, but R has all digits where XᵀX has lost those of
 * columns that hardly differ. */
#ifndef DML_NUMERIC_ORTHOGONAL_H
#define DML_NUMERIC_ORTHOGONAL_H

#include <stddef.h>

#include "numeric/doubled.h"

/* Upper, row-major, order × order: element[r·order + c]. The diagonal is ≥ 0; 0 stands for a column
 * that is left out. */
struct orthogonal {
    size_t order;
    struct doubled *element; /* owned */
};

/* Zeros. */
struct orthogonal orthogonal_new(size_t order);
void orthogonal_release(struct orthogonal *r);
void orthogonal_clear(struct orthogonal *r);

/* Adds a row of X, `order` elements, which are lost. */
void orthogonal_add(struct orthogonal *r, struct doubled *row);

/* Leaves column `c` out: R is then as if it had been 0. */
void orthogonal_leave_out(struct orthogonal *r, size_t c);

/* Solve Rᵀx = b and Rx = b in place, over the first `count` columns. Elements of columns that are
 * left out become 0. */
void orthogonal_solve_transposed(const struct orthogonal *r, size_t count, struct doubled *b);
void orthogonal_solve(const struct orthogonal *r, size_t count, struct doubled *b);

#endif

#include "numeric/orthogonal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct doubled *at(const struct orthogonal *r, size_t row, size_t column) {
    return r->element + row * r->order + column;
}

struct orthogonal orthogonal_new(size_t order) {
    return (struct orthogonal){order, memory_new(order * order, sizeof(struct doubled))};
}

void orthogonal_release(struct orthogonal *r) {
    free(r->element);
}

void orthogonal_clear(struct orthogonal *r) {
    memset(r->element, 0, r->order * r->order * sizeof *r->element);
}

/* Turns row `j` of R and the new row so that the element in column j of the latter becomes 0. */
static void rotate(struct orthogonal *r, size_t j, struct doubled *row) {
    struct doubled own = *at(r, j, j), other = row[j];
    struct doubled length = doubled_root(doubled_plus(doubled_times(own, own), other, other));
    struct doubled cosine = doubled_quotient(own, length), sine = doubled_quotient(other, length);
    *at(r, j, j) = length;
    for (size_t c = j + 1; c < r->order; c++) {
        struct doubled above = *at(r, j, c), below = row[c];
        *at(r, j, c) = doubled_plus(doubled_times(cosine, above), sine, below);
        row[c] = doubled_minus(doubled_times(cosine, below), sine, above);
    }
}

void orthogonal_add(struct orthogonal *r, struct doubled *row) {
    for (size_t j = 0; j < r->order; j++)
        if (row[j].high != 0)
            rotate(r, j, row);
}

void orthogonal_leave_out(struct orthogonal *r, size_t c) {
    struct orthogonal before = orthogonal_new(r->order);
    memcpy(before.element, r->element, r->order * r->order * sizeof *r->element);
    orthogonal_clear(r);
    for (size_t row = 0; row < r->order; row++) {
        *at(&before, row, c) = doubled_of(0);
        orthogonal_add(r, at(&before, row, 0));
    }
    orthogonal_release(&before);
}

void orthogonal_solve_transposed(const struct orthogonal *r, size_t count, struct doubled *b) {
    for (size_t j = 0; j < count; j++) {
        struct doubled own = *at(r, j, j);
        b[j] = own.high > 0 ? doubled_quotient(b[j], own) : doubled_of(0);
        for (size_t c = j + 1; c < count; c++)
            b[c] = doubled_minus(b[c], *at(r, j, c), b[j]);
    }
}

void orthogonal_solve(const struct orthogonal *r, size_t count, struct doubled *b) {
    for (size_t j = count; j-- > 0;) {
        struct doubled own = *at(r, j, j);
        for (size_t c = j + 1; c < count; c++)
            b[j] = doubled_minus(b[j], *at(r, j, c), b[c]);
        b[j] = own.high > 0 ? doubled_quotient(b[j], own) : doubled_of(0);
    }
}

/* Writes a sparse binary problem of exactly so many used columns as LIBSVM text. Half of a row's
 * values are in columns drawn log-uniformly, a power law, as frequent words are; the other half
 * goes through all columns in turn, scattered, as rare words come: so each is used, if there are
 * twice as many values. Labels are of a logistic model whose weights are hashes of columns.
 *
 *     bench/wide_data ROWS COLUMNS VALUES > FILE
 *
 * VALUES in a row, less those that were drawn twice. The same arguments give the same bytes. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 1;

/* splitmix64, from public domain code by Sebastiano Vigna. */
static uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double uniform(void) {
    return (double)(mixed(state += UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-53;
}

static double weight(uint32_t column) {
    return (double)(mixed(column * UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-52 - 1;
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* " COLUMN:0.DD", which printf() would take a minute for where there are 10^8. */
static char *put_value(char *at, uint32_t column, unsigned hundredths) {
    char digits[10];
    int count = 0;
    do
        digits[count++] = (char)('0' + column % 10);
    while (column /= 10);
    *at++ = ' ';
    while (count)
        *at++ = digits[--count];
    *at++ = ':';
    *at++ = '0';
    *at++ = '.';
    *at++ = (char)('0' + hundredths / 10);
    *at++ = (char)('0' + hundredths % 10);
    return at;
}

#define VALUE_TEXT 16 /* bytes at most */

/* A number that has no divisor in common with `columns`, so that its multiples visit all. */
static uint64_t stride_of(uint64_t columns) {
    for (uint64_t stride = columns * 5 / 8 + 1;; stride++) {
        uint64_t a = stride, b = columns;
        while (b) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return stride;
    }
}

static void fill_row(uint32_t *row, uint32_t values, uint32_t columns, uint64_t *next) {
    static uint64_t stride;
    if (!stride)
        stride = stride_of(columns);
    for (uint32_t i = 0; i < values; i++)
        if (i % 2)
            row[i] = 1 + (uint32_t)((*next)++ % columns * stride % columns);
        else
            row[i] = (uint32_t)exp(uniform() * log(columns));
    qsort(row, values, sizeof *row, compare);
}

static void write_row(const uint32_t *row, uint32_t values, char *text) {
    double margin = 0;
    char *at = text;
    for (uint32_t i = 0; i < values; i++) {
        if (i && row[i] == row[i - 1])
            continue;
        unsigned hundredths = 1 + (unsigned)(uniform() * 99);
        at = put_value(at, row[i], hundredths);
        margin += weight(row[i]) * hundredths / 100;
    }
    *at++ = '\n';
    fputs(uniform() < 1 / (1 + exp(-margin)) ? "1" : "-1", stdout);
    fwrite(text, 1, (size_t)(at - text), stdout);
}

int main(int count, char **arguments) {
    uint32_t number[3] = {0};
    for (int i = 1; i < count && i <= 3; i++)
        number[i - 1] = (uint32_t)strtod(arguments[i], NULL);
    const uint32_t rows = number[0], columns = number[1], values = number[2];
    if (count != 4 || !rows || !columns || !values) {
        fprintf(stderr, "usage: wide_data ROWS COLUMNS VALUES\n");
        return 64;
    }
    uint64_t next = 0;
    uint32_t *row = malloc(values * sizeof *row);
    char *text = malloc((size_t)values * VALUE_TEXT + 1);
    for (uint32_t i = 0; row && text && i < rows; i++) {
        fill_row(row, values, columns, &next);
        write_row(row, values, text);
    }
    free(row);
    free(text);
    return ferror(stdout) || fflush(stdout) ? 74 : 0;
}

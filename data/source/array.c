#include "data/source/array.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "data/source/input.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MAGIC_BYTES 6
#define NPY_HEADER_BYTES_MAX (64u << 10)
#define IDX_MAGIC_BYTES 4

_Static_assert(ARRAY_MAGIC_BYTES >= NPY_MAGIC_BYTES && ARRAY_MAGIC_BYTES >= IDX_MAGIC_BYTES,
               "a file is told by its first bytes");

const char *array_format_name(enum source_format format) {
    return format == FORMAT_IDX ? "an IDX file" : "a .npy file";
}

static size_t cell_bytes(enum array_cell cell) {
    static const uint8_t bytes[] = {
        [CELL_U8] = 1,  [CELL_BOOL] = 1, [CELL_I8] = 1,  [CELL_U16] = 2,
        [CELL_I16] = 2, [CELL_U32] = 4,  [CELL_I32] = 4, [CELL_U64] = 8,
        [CELL_I64] = 8, [CELL_F32] = 4,  [CELL_F64] = 8,
    };
    return bytes[cell];
}

size_t array_row_bytes(const struct array *array) {
    return array->width * cell_bytes(array->cell);
}

/* ---- dimensions ---- */

/* Takes the next dimension, `number` from 0. */
static int add_dimension(const char *path, struct array *array, unsigned number, uint64_t size) {
    if (!number) {
        array->rows = size;
        array->width = 1;
        return 0;
    }
    if (!size)
        return error_set(ERROR_DATA, "%s: its rows are empty: dimension %u is 0", path, number + 1);
    if (size > ARRAY_WIDTH_MAX / array->width)
        return error_set(ERROR_DATA, "%s: a row has more than %u numbers by the header", path,
                         ARRAY_WIDTH_MAX);
    array->width *= (uint32_t)size;
    assert(array->width <= ARRAY_WIDTH_MAX);
    return 0;
}

static int truncated_header(const char *path) {
    return error_set(ERROR_DATA, "%s is truncated: it ends in its header", path);
}

/* ---- IDX ---- */

/* The cells of a type of IDX; false if there is no such type. */
static bool idx_cell(uint8_t type, enum array_cell *cell) {
    static const enum array_cell cells[] = {
        [0x08] = CELL_U8,  [0x09] = CELL_I8,  [0x0b] = CELL_I16,
        [0x0c] = CELL_I32, [0x0d] = CELL_F32, [0x0e] = CELL_F64,
    };
    if (type < 0x08 || type > 0x0e || type == 0x0a)
        return false;
    *cell = cells[type];
    return true;
}

static int idx_read_header(struct blocks *blocks, struct array *array) {
    const uint8_t *bytes;
    size_t length;
    int code = blocks_peek(blocks, IDX_MAGIC_BYTES, &bytes, &length);
    if (code)
        return code;
    unsigned dimensions = bytes[3];
    size_t header = IDX_MAGIC_BYTES + dimensions * sizeof(uint32_t);
    idx_cell(bytes[2], &array->cell);
    array->big = true;
    code = blocks_peek(blocks, header, &bytes, &length);
    if (!code && length < header)
        code = truncated_header(blocks->path);
    for (unsigned i = 0; i < dimensions && !code; i++) {
        uint32_t size;
        memcpy(&size, bytes + IDX_MAGIC_BYTES + i * sizeof size, sizeof size);
        code = add_dimension(blocks->path, array, i, be32toh(size));
    }
    if (!code)
        blocks_skip(blocks, header);
    return code;
}

/* ---- .npy: numpy.lib.format describes it. The header is the text of a Python dictionary. ---- */

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

static int npy_damaged(const char *path) {
    return error_set(ERROR_DATA,
                     "%s: its header is damaged: it must tell `descr`, `fortran_order` and `shape`",
                     path);
}

/* The value of a key; NULL if there is none. Values before `descr` is known to be a plain text may
 * hold whatever, so that is asked for first. */
static const char *npy_find(const char *header, const char *key) {
    const char *at = strstr(header, key);
    at = at ? skip_blanks(at + strlen(key)) : NULL;
    return at && *at == ':' ? skip_blanks(at + 1) : NULL;
}

static bool npy_cell(const char *type, enum array_cell *cell) {
    static const struct {
        char name[3];
        enum array_cell cell;
    } cells[] = {{"u1", CELL_U8},  {"b1", CELL_BOOL}, {"i1", CELL_I8},  {"u2", CELL_U16},
                 {"i2", CELL_I16}, {"u4", CELL_U32},  {"i4", CELL_I32}, {"u8", CELL_U64},
                 {"i8", CELL_I64}, {"f4", CELL_F32},  {"f8", CELL_F64}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (!strncmp(type, cells[i].name, 2) && (type[2] == '\'' || type[2] == '"')) {
            *cell = cells[i].cell;
            return true;
        }
    return false;
}

static int npy_read_type(const char *path, const char *type, struct array *array) {
    if (!type)
        return npy_damaged(path);
    if (*type == '[')
        return error_set(ERROR_DATA,
                         "%s: its cells are records of several fields; save one array of numbers",
                         path);
    if (*type != '\'' && *type != '"')
        return npy_damaged(path);
    size_t length = strcspn(++type, "'\"");
    if (type[strcspn(type, "O'\"")] == 'O')
        return error_set(ERROR_DATA,
                         "%s: it holds pickled Python objects, which are never read; save an array "
                         "of numbers, as by astype(\"float32\")",
                         path);
    array->big = *type == '>';
    if (*type && strchr("<>|", *type) && npy_cell(type + 1, &array->cell))
        return 0;
    return error_set(ERROR_DATA,
                     "%s: its cells are of type \"%.*s\"; allowed: integers, bool, float32 and "
                     "float64",
                     path, (int)(length < 20 ? length : 20), type);
}

/* Reads the tuple of dimensions. */
static int npy_read_shape(const char *path, const char *at, struct array *array) {
    if (!at || *at++ != '(')
        return npy_damaged(path);
    unsigned count = 0;
    for (at = skip_blanks(at); *at != ')'; at = skip_blanks(at)) {
        uint64_t size = 0;
        const char *first = at;
        for (; *at >= '0' && *at <= '9'; at++)
            if (__builtin_mul_overflow(size, 10, &size) ||
                __builtin_add_overflow(size, (uint64_t)(*at - '0'), &size))
                return error_set(ERROR_DATA, "%s: dimension %u overflows", path, count + 1);
        if (at == first)
            return npy_damaged(path);
        int code = add_dimension(path, array, count++, size);
        if (code)
            return code;
        at += *at == 'L'; /* Python 2 */
        at = skip_blanks(at);
        if (*at == ',')
            at++;
        else if (*at != ')')
            return npy_damaged(path);
    }
    return count ? 0 : error_set(ERROR_DATA, "%s: it is a single number without dimensions", path);
}

static int npy_read_dictionary(const char *path, const char *header, struct array *array) {
    int code = npy_read_type(path, npy_find(header, "'descr'"), array);
    if (!code)
        code = npy_read_shape(path, npy_find(header, "'shape'"), array);
    if (code)
        return code;
    const char *fortran = npy_find(header, "'fortran_order'");
    if (fortran && !strncmp(fortran, "False", strlen("False")))
        return 0;
    if (fortran && !strncmp(fortran, "True", strlen("True")))
        return error_set(
            ERROR_DATA, "%s: it is stored column by column; save numpy.ascontiguousarray(x)", path);
    return npy_damaged(path);
}

/* The header's place and length, which version 1 has in 16 bits and later ones in 32. */
static int npy_find_header(struct blocks *blocks, size_t *first, size_t *bytes) {
    const uint8_t *at;
    size_t there;
    int code = blocks_peek(blocks, NPY_MAGIC_BYTES + 6, &at, &there);
    if (code)
        return code;
    if (there < NPY_MAGIC_BYTES + 6)
        return truncated_header(blocks->path);
    unsigned version = at[NPY_MAGIC_BYTES];
    at += NPY_MAGIC_BYTES + 2;
    if (version < 1 || version > 3)
        return error_set(ERROR_DATA, "%s: version %u of .npy is not known; allowed: 1 to 3",
                         blocks->path, version);
    *first = NPY_MAGIC_BYTES + 2 + (version == 1 ? sizeof(uint16_t) : sizeof(uint32_t));
    *bytes = at[0] | (size_t)at[1] << 8;
    if (version > 1)
        *bytes |= (size_t)at[2] << 16 | (size_t)at[3] << 24;
    return *bytes <= NPY_HEADER_BYTES_MAX
               ? 0
               : error_set(ERROR_DATA, "%s: its header has %zu bytes; allowed: %u at most",
                           blocks->path, *bytes, NPY_HEADER_BYTES_MAX);
}

static int npy_read_header(struct blocks *blocks, struct array *array) {
    const uint8_t *bytes;
    size_t first = 0, header = 0, length = 0;
    int code = npy_find_header(blocks, &first, &header);
    if (!code)
        code = blocks_peek(blocks, first + header, &bytes, &length);
    if (!code && length < first + header)
        code = truncated_header(blocks->path);
    if (code)
        return code;
    char text[NPY_HEADER_BYTES_MAX + 1];
    memcpy(text, bytes + first, header);
    text[header] = '\0';
    code = npy_read_dictionary(blocks->path, text, array);
    if (!code)
        blocks_skip(blocks, first + header);
    return code;
}

/* ---- both ---- */

enum source_format array_format(const uint8_t *bytes, size_t length) {
    enum array_cell cell;
    if (length >= NPY_MAGIC_BYTES && !memcmp(bytes, NPY_MAGIC, NPY_MAGIC_BYTES))
        return FORMAT_NPY;
    bool idx = length >= IDX_MAGIC_BYTES && !bytes[0] && !bytes[1] && idx_cell(bytes[2], &cell) &&
               bytes[3];
    return idx ? FORMAT_IDX : FORMAT_AUTO;
}

int array_read_header(struct blocks *blocks, enum source_format format, struct array *array) {
    *array = (struct array){.format = format};
    return format == FORMAT_IDX ? idx_read_header(blocks, array) : npy_read_header(blocks, array);
}

int array_take(struct blocks *blocks, const struct array *array, uint64_t *taken, uint64_t rows,
               struct batch *batch) {
    size_t bytes = rows * array_row_bytes(array), first = batch->text_length;
    int code = blocks_take(blocks, batch, bytes);
    size_t got = batch->text_length - first;
    *taken += got / array_row_bytes(array);
    assert(code || *taken <= array->rows);
    if (code || got == bytes)
        return code;
    return error_set(ERROR_DATA, "%s is truncated: its header says %llu rows, and it has %llu",
                     blocks->path, (unsigned long long)array->rows, (unsigned long long)*taken);
}

int array_check_end(struct blocks *blocks, const struct array *array) {
    const uint8_t *bytes;
    size_t length;
    int code = blocks_peek(blocks, 1, &bytes, &length);
    if (code || !length)
        return code;
    return error_set(ERROR_DATA,
                     "%s goes on behind its %llu rows: its header does not fit, or it is several "
                     "arrays in one file",
                     blocks->path, (unsigned long long)array->rows);
}

__attribute__((always_inline)) static inline double cell_value(enum array_cell cell, bool big,
                                                               const char *at) {
    uint64_t bits = 0;
    uint16_t half;
    uint32_t word;
    float narrow;
    double wide;
    switch (cell_bytes(cell)) {
    case 1:
        bits = (uint8_t)*at;
        break;
    case 2:
        memcpy(&half, at, sizeof half);
        bits = big ? be16toh(half) : le16toh(half);
        break;
    case 4:
        memcpy(&word, at, sizeof word);
        bits = word = big ? be32toh(word) : le32toh(word);
        memcpy(&narrow, &word, sizeof narrow);
        break;
    default:
        memcpy(&bits, at, sizeof bits);
        bits = big ? be64toh(bits) : le64toh(bits);
        memcpy(&wide, &bits, sizeof wide);
    }
    switch (cell) {
    case CELL_BOOL:
        return bits != 0;
    case CELL_I8:
        return (int8_t)bits;
    case CELL_I16:
        return (int16_t)bits;
    case CELL_I32:
        return (int32_t)bits;
    case CELL_I64:
        return (double)(int64_t)bits;
    case CELL_F32:
        return (double)narrow;
    case CELL_F64:
        return wide;
    default:
        return (double)bits;
    }
}

/* One loop for each kind of cell. */
#define DECODE(kind)                                                                               \
    case kind:                                                                                     \
        for (uint64_t i = 0; i < count; i++)                                                       \
            to[i] = cell_value(kind, big, from + i * cell_bytes(kind));                            \
        break;

void array_decode(const struct array *array, const char *from, uint64_t count, double *to) {
    const bool big = array->big;
    switch (array->cell) {
        DECODE(CELL_U8)
        DECODE(CELL_BOOL)
        DECODE(CELL_I8)
        DECODE(CELL_U16)
        DECODE(CELL_I16)
        DECODE(CELL_U32)
        DECODE(CELL_I32)
        DECODE(CELL_U64)
        DECODE(CELL_I64)
        DECODE(CELL_F32)
        DECODE(CELL_F64)
    }
}

/* ---- arrays beside the rows of others ---- */

int array_column_open(struct array_column *column, struct input *input, const char *path,
                      const char *what) {
    const uint8_t *bytes;
    size_t length;
    *column = (struct array_column){.input = input};
    blocks_init(&column->blocks, input, path);
    int code = blocks_peek(&column->blocks, ARRAY_MAGIC_BYTES, &bytes, &length);
    if (!code)
        code = foreign_check(path, NULL, bytes, length);
    if (code)
        return code;
    enum source_format format = array_format(bytes, length);
    if (format == FORMAT_AUTO)
        return error_set(ERROR_DATA, "%s is neither an IDX nor a .npy file", path);
    code = array_read_header(&column->blocks, format, &column->array);
    if (!code && column->array.width != 1)
        code = error_set(ERROR_DATA, "%s has %u numbers a row; %s is one", path,
                         column->array.width, what);
    return code;
}

void array_column_close(struct array_column *column) {
    blocks_release(&column->blocks);
    input_close(column->input);
    *column = (struct array_column){0};
}

int array_column_take(struct array_column *column, uint64_t rows, struct batch *batch) {
    return array_take(&column->blocks, &column->array, &column->taken, rows, batch);
}

int array_column_end(struct array_column *column) {
    assert(column->taken == column->array.rows);
    return array_check_end(&column->blocks, &column->array);
}

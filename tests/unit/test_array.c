/* Arrays as data: IDX and .npy are read as they are, and what is wrong with them is named. */
#include "tests/unit/suites.h"
#include "data/pack/pack_file.h"
#include "data/set/set.h"
#include "tests/unit/data_fixture.h"

/* ---- files ---- */

/* An array literal of bytes as a file. */
#define BYTES(name, ...)                                                                           \
    fixture_bytes(name, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* An .npy file with this header, and `bytes` of data behind it. */
static const char *npy_file(const char *name, unsigned version, const char *header,
                            const void *data, size_t bytes) {
    struct bytes file;
    bytes_init(&file);
    size_t length = strlen(header);
    uint8_t start[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0};
    for (size_t i = 0; i < 4; i++)
        start[8 + i] = (uint8_t)(length >> 8 * i);
    bytes_append(&file, start, version == 1 ? 10 : 12);
    bytes_append(&file, header, length);
    bytes_append(&file, data, bytes);
    const char *path = fixture_bytes(name, file.data, file.length);
    bytes_release(&file);
    return path;
}

static const char *npy(const char *name, const char *type, const char *shape, const void *data,
                       size_t bytes) {
    char *header =
        memory_format("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    const char *path = npy_file(name, 1, header, data, bytes);
    free(header);
    return path;
}

/* ---- reading ---- */

static int take(void *context, const struct source_rows *rows) {
    struct bytes *text = context;
    assert_true(rows->alike);
    for (uint32_t row = 0; row < rows->count; row++) {
        char word[64];
        int length = snprintf(word, sizeof word, "%g:", rows->label[row]);
        bytes_append(text, word, (size_t)length);
        for (uint64_t i = rows->start[row], j = 0; i < rows->start[row + 1]; i++, j++) {
            assert_int_equal(source_row_ids(rows, row)[j], j + 1);
            length = snprintf(word, sizeof word, " %.17g", rows->value[i]);
            bytes_append(text, word, (size_t)length);
        }
        bytes_append(text, "\n", 1);
    }
    return 0;
}

static struct source_report assert_read(const char *path, const struct source_options *options,
                                        const char *expected) {
    struct source_report report;
    struct bytes text;
    bytes_init(&text);
    if (source_read(path, options, 2, take, &text, &report))
        fail_msg("%s", error_text());
    bytes_put_u8(&text, 0);
    assert_string_equal((char *)text.data, expected);
    bytes_release(&text);
    struct source_report facts = report;
    source_report_release(&report);
    return facts;
}

static void assert_error(const char *path, const struct source_options *options,
                         const char *words) {
    struct source_report report;
    struct bytes text;
    bytes_init(&text);
    int code = source_read(path, options, 2, take, &text, &report);
    if (code != ERROR_DATA || !strstr(error_text(), words))
        fail_msg("code %d, \"%s\" instead of \"… %s …\"", code, error_text(), words);
    error_clear();
    bytes_release(&text);
}

static const struct source_options unlabelled = {.label.optional = true};

static void assert_refused(const char *path, const char *words) {
    assert_error(path, &unlabelled, words);
}

static const char *labels_of(unsigned count) {
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 0, 5, 0, 9};
    uint8_t file[sizeof labels];
    memcpy(file, labels, sizeof labels);
    file[7] = (uint8_t)count;
    return fixture_bytes("labels", file, 8 + count);
}

/* ---- what is read ---- */

static void the_dimensions_beyond_the_first_of_idx_are_flattened(void **state) {
    (void)state;
    const char *images = BYTES("images", 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4,
                               5, 6, 7, 8, 255, 0, 9, 10);
    struct source_options options = {.label.file = labels_of(2)};
    const char *text = "5: 1 2 3 4 5 6\n0: 7 8 255 0 9 10\n";
    struct source_report report = assert_read(images, &options, text);
    assert_int_equal(report.format, FORMAT_IDX);
    assert_int_equal(report.rows, 2);
    assert_int_equal(report.columns, 7);
    assert_int_equal(strlen(report.labels_hash), HASH128_TEXT - 1);
    options.format = FORMAT_IDX;
    assert_read(images, &options, text);
    assert_read(images, &unlabelled, "nan: 1 2 3 4 5 6\nnan: 7 8 255 0 9 10\n");
}

static void every_type_of_idx_is_read(void **state) {
    (void)state;
    assert_read(BYTES("x", 0, 0, 9, 1, 0, 0, 0, 2, 255, 127), &unlabelled, "nan: -1\nnan: 127\n");
    assert_read(BYTES("x", 0, 0, 11, 1, 0, 0, 0, 1, 255, 254), &unlabelled, "nan: -2\n");
    assert_read(BYTES("x", 0, 0, 12, 1, 0, 0, 0, 1, 0, 1, 0, 0), &unlabelled, "nan: 65536\n");
    assert_read(BYTES("x", 0, 0, 13, 1, 0, 0, 0, 1, 63, 192, 0, 0), &unlabelled, "nan: 1.5\n");
    assert_read(BYTES("x", 0, 0, 14, 1, 0, 0, 0, 1, 192, 4, 0, 0, 0, 0, 0, 0), &unlabelled,
                "nan: -2.5\n");
}

static void every_number_of_npy_is_read(void **state) {
    (void)state;
    const double wide[] = {0.1, -1e300, 3, 4};
    assert_read(npy("x", "<f8", "(2, 2)", wide, sizeof wide), &unlabelled,
                "nan: 0.10000000000000001 -1.0000000000000001e+300\nnan: 3 4\n");
    const float narrow[] = {0.5f, -2, 3};
    assert_read(npy("x", "<f4", "(3,)", narrow, sizeof narrow), &unlabelled,
                "nan: 0.5\nnan: -2\nnan: 3\n");
    const int64_t long_[] = {-5, INT64_C(1) << 53};
    assert_read(npy("x", "<i8", "(1, 2)", long_, sizeof long_), &unlabelled,
                "nan: -5 9007199254740992\n");
    assert_read(npy("x", "|u1", "(1, 2, 1)", "\xff\x01", 2), &unlabelled, "nan: 255 1\n");
    assert_read(npy("x", "|i1", "(1, 2)", "\xff\x01", 2), &unlabelled, "nan: -1 1\n");
    assert_read(npy("x", "|b1", "(1, 2)", "\x00\x01", 2), &unlabelled, "nan: 0 1\n");
    assert_read(npy("x", ">u2", "(1, 1)", "\x01\x02", 2), &unlabelled, "nan: 258\n");
    assert_read(npy("x", "<u2", "(1, 1)", "\x01\x02", 2), &unlabelled, "nan: 513\n");
    assert_read(npy("x", "<i2", "(1, 1)", "\xfe\xff", 2), &unlabelled, "nan: -2\n");
    assert_read(npy("x", "<u4", "(1, 1)", "\xff\xff\xff\xff", 4), &unlabelled, "nan: 4294967295\n");
    assert_read(npy("x", "<i4", "(1, 1)", "\xff\xff\xff\xff", 4), &unlabelled, "nan: -1\n");
    assert_read(npy("x", "<u8", "(1, 1)", "\0\0\0\0\0\0\0\x80", 8), &unlabelled,
                "nan: 9.2233720368547758e+18\n");
}

static void later_versions_of_npy_have_a_longer_header(void **state) {
    (void)state;
    const char *header = "{'shape': (1L, 2L), 'fortran_order': False, 'descr': '|u1'}";
    assert_read(npy_file("x", 2, header, "\1\2", 2), &unlabelled, "nan: 1 2\n");
    assert_read(npy_file("x", 3, header, "\1\2", 2), &unlabelled, "nan: 1 2\n");
    assert_refused(npy_file("x", 4, header, "\1\2", 2), "version 4");
}

static void labels_may_be_floats_of_the_other_format(void **state) {
    (void)state;
    const float labels[] = {-0.5f, 2};
    struct source_options options = {.label.file = npy("labels.npy", "<f4", "(2, 1)", labels, 8)};
    assert_read(BYTES("x", 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 8), &options, "-0.5: 7\n2: 8\n");
}

/* Rows end in the middle of what a decompressor hands out, and there are several blocks. */
static void many_rows_come_in_order(void **state) {
    (void)state;
    enum { ROWS = 3000, WIDTH = 100 };
    struct bytes file, expected;
    bytes_init(&file);
    bytes_init(&expected);
    for (unsigned row = 0; row < ROWS; row++) {
        bytes_append(&expected, "nan:", 4);
        for (unsigned j = 0; j < WIDTH; j++) {
            uint8_t cell = (uint8_t)(row * 7 + j);
            char word[8];
            int length = snprintf(word, sizeof word, " %u", cell);
            bytes_append(&expected, word, (size_t)length);
            bytes_append(&file, &cell, 1);
        }
        bytes_append(&expected, "\n", 1);
    }
    bytes_put_u8(&expected, 0);
    const char *path = npy("x", "|u1", "(3000, 100)", file.data, file.length);
    assert_read(path, &unlabelled, (char *)expected.data);
    bytes_release(&file);
    bytes_release(&expected);
}

/* ---- what is refused ---- */

static void a_truncated_array_is_refused(void **state) {
    (void)state;
    assert_refused(BYTES("x", 0, 0, 8, 2, 0, 0, 0, 2), "x is truncated: it ends in its header");
    assert_refused(BYTES("x", 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3),
                   "x is truncated: its header says 2 rows, and it has 1");
    assert_refused(BYTES("x", 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 99, 0, '{', '}'),
                   "truncated: it ends in its header");
    assert_refused(BYTES("x", 0x93, 'N', 'U', 'M', 'P', 'Y', 1), "truncated");
}

static void a_header_that_promises_too_much_allocates_nothing(void **state) {
    (void)state;
    assert_refused(npy("x", "<f8", "(1099511627776, 3)", "\0", 1),
                   "says 1099511627776 rows, and it has 0");
    assert_refused(npy("x", "<f8", "(18446744073709551615, 16777216)", "\0", 1), "it has 0");
    assert_refused(npy("x", "<f8", "(1, 16777217)", "\0", 1), "more than 16777216 numbers");
    assert_refused(npy("x", "<f8", "(1, 65536, 65536, 65536, 65536)", "\0", 1), "more than");
    assert_refused(npy("x", "<f8", "(99999999999999999999, 1)", "\0", 1), "dimension 1 overflows");
    assert_refused(BYTES("x", 0, 0, 8, 3, 0, 0, 0, 2, 255, 255, 255, 255, 255, 255, 255, 255, 1),
                   "more than 16777216 numbers");
    assert_refused(npy_file("x", 2, "", "\0", 1), "damaged");
    assert_refused(BYTES("x", 0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 255, 255, 255, 255, 1),
                   "its header has 4294967295 bytes");
}

static void an_array_of_anything_but_numbers_is_refused(void **state) {
    (void)state;
    assert_refused(npy("x", "|O", "(1,)", "\0", 1), "pickled Python objects, which are never read");
    assert_refused(npy("x", "<U3", "(1,)", "\0", 1), "its cells are of type \"<U3\"");
    assert_refused(npy("x", "<f2", "(1,)", "\0\0", 2), "its cells are of type \"<f2\"");
    assert_refused(npy("x", "<c16", "(1,)", "\0", 1), "its cells are of type \"<c16\"");
    assert_refused(npy_file("x", 1,
                            "{'descr': [('a', '<f4'), ('descr', '<f4')], 'fortran_order': False, "
                            "'shape': (1,), }",
                            "\0", 1),
                   "records of several fields");
    assert_refused(
        npy_file("x", 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", "", 0),
        "column by column");
}

static void an_array_without_rows_or_columns_is_refused(void **state) {
    (void)state;
    assert_refused(npy("x", "<f8", "()", "\0\0\0\0\0\0\0\0", 8), "without dimensions");
    assert_refused(npy("x", "<f8", "(0, 3)", "", 0), "has no rows");
    assert_refused(npy("x", "<f8", "(3, 0)", "", 0), "dimension 2 is 0");
    assert_refused(BYTES("x", 0, 0, 8, 1, 0, 0, 0, 0), "has no rows");
}

static void a_damaged_header_is_refused(void **state) {
    (void)state;
    const char *const headers[] = {
        "{}",
        "{'descr': 5, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': 1}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (x,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '|u1', 'shape': (1,)}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        assert_refused(npy_file("x", 1, headers[i], "\1", 1), "its header is damaged");
}

/* The longest header that is read: nothing is behind it. */
static void a_header_that_ends_within_a_type_is_refused(void **state) {
    (void)state;
    static const char end[] = "{'descr': '";
    char header[(64 << 10) + 1];
    memset(header, ' ', sizeof header);
    memcpy(header + sizeof header - sizeof end, end, sizeof end);
    assert_refused(npy_file("x", 3, header, "\1", 1), "its cells are of type \"\"");
}

static void bytes_behind_the_last_row_are_refused(void **state) {
    (void)state;
    assert_refused(BYTES("x", 0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3), "goes on behind its 2 rows");
}

static void a_file_of_another_format_than_told_is_refused(void **state) {
    (void)state;
    struct source_options options = {.format = FORMAT_IDX, .label.optional = true};
    assert_error(npy("x", "|u1", "(1,)", "\1", 1), &options,
                 "x is not an IDX file, as `format` says or the data is that was trained on: it "
                 "begins with 93 4e 55 4d 50 59, as a .npy file");
    assert_error(fixture_text("x", "1,2\n"), &options, "it begins with 31 2c 32 0a");
    options.format = FORMAT_NPY;
    assert_error(BYTES("x", 0, 0, 8, 1, 0, 0, 0, 1, 1), &options, "x is not a .npy file");
    assert_refused(fixture_text("x", "PK\3\4x\n1,2\n"), "x is a zip archive, as .xlsx files are");
    options.format = FORMAT_LIBSVM;
    assert_error(BYTES("x", 0, 0, 8, 1, 0, 0, 0, 1, 1), &options,
                 "x is an IDX file, and not libsvm");
}

static void a_number_that_is_not_finite_is_a_bad_row(void **state) {
    (void)state;
    const double wide[] = {1, NAN, 3, INFINITY, 5, 6};
    const char *path = npy("x", "<f8", "(3, 2)", wide, sizeof wide);
    assert_refused(path, "x:1: number 2 of this row is nan, which is not finite");
    const uint8_t labels[] = {7, 8, 9};
    struct source_options options = {.label.file = npy("labels", "|u1", "(3,)", labels, 3),
                                     .bad_lines_max = 2};
    assert_read(path, &options, "9: 5 6\n");
    options.bad_lines_max = 1;
    assert_error(path, &options, "x:2: number 2 of this row is inf");
    const double bad[] = {0, 0, -INFINITY};
    options.label.file = npy("bad", "<f8", "(3,)", bad, sizeof bad);
    options.bad_lines_max = 0;
    assert_error(npy("y", "|u1", "(3,)", labels, 3), &options, "y:3: its label in ");
}

static void labels_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const char *x = BYTES("x", 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 8);
    struct source_options options = {.label.file = labels_of(3)};
    assert_error(x, &options, "labels has 3 labels, but ");
    assert_error(x, &options, "x has 2 rows");
    options.label.file = x;
    assert_read(x, &options, "7: 7\n8: 8\n");
    options.label.file = npy("two", "|u1", "(2, 2)", "\1\2\3\4", 4);
    assert_error(x, &options, "two has 2 numbers a row; a label is one");
    options.label.file = npy("cut", "|u1", "(2,)", "\1", 1);
    assert_error(x, &options, "cut is truncated");
    options.label.file = npy("long", "|u1", "(2,)", "\1\1\1", 3);
    assert_error(x, &options, "long goes on behind its 2 rows");
    options.label.file = fixture_text("text", "1\n2\n");
    assert_error(x, &options, "text is neither an IDX nor a .npy file");
    assert_error(fixture_text("csv", "1,2\n"), &options, "csv is text, which has its labels in");
    assert_error(x, &(struct source_options){0}, "in the key `labels`");
    options.label.file = labels_of(2);
    options.label.separator = ',';
    assert_error(x, &options, "its labels are single numbers");
}

static void rows_of_another_width_than_trained_on_are_refused(void **state) {
    (void)state;
    struct source_options options = {.label.optional = true, .table.columns = 4};
    assert_error(BYTES("x", 0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8), &options,
                 "a row has 2 numbers, and 3 are trained on");
}

/* ---- packs ---- */

static void a_pack_is_made_again_when_its_labels_change(void **state) {
    (void)state;
    const char *x = BYTES("x", 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 8);
    struct source_options options = {.label.file = fixture_path("labels")};
    const char *packs = fixture_path("packs");
    struct pack *pack;
    bool made;
    for (int time = 0; time < 3; time++) {
        if (time != 1)
            npy("labels", "|u1", "(2,)", time ? "\1\1" : "\1\0", 2);
        assert_int_equal(pack_of_source(packs, x, &options, 1, &pack, &made), 0);
        assert_int_equal(made, time != 1);
        assert_true(pack_rows(pack, 0).label[1] == (time == 2));
        assert_int_equal(pack->facts->format, FORMAT_IDX);
        pack_close(pack);
    }
}

/* ---- sets ---- */

static struct pack *pack_it(const char *path, const char *labels) {
    struct source_options options = {.label.file = labels};
    struct pack *pack;
    bool made;
    if (pack_of_source(fixture_path("packs"), path, &options, 2, &pack, &made))
        fail_msg("%s", error_text());
    return pack;
}

/* The set of one or two files. */
static struct set *merge(struct pack *one, struct pack *other) {
    struct pack *packs[] = {one, other};
    struct set_options options = {.labels = LABEL_CLASSES, .threads = 2};
    struct set *set;
    bool made;
    if (set_of_packs(fixture_path("sets"), packs, other ? 2 : 1, &options, &set, &made))
        fail_msg("%s", error_text());
    pack_close(one);
    pack_close(other);
    return set;
}

enum { IMAGES = 2000, PIXELS = 40 };

/* The same images as bytes and as CSV, with the remainder of their numbers by 3 as labels. */
static void write_images(const char **bytes, const char **labels, const char **csv) {
    static uint8_t cells[IMAGES * PIXELS], classes[IMAGES];
    struct bytes text;
    bytes_init(&text);
    for (unsigned i = 0; i < IMAGES; i++) {
        char word[16];
        for (unsigned j = 0; j < PIXELS; j++) {
            uint8_t cell = cells[i * PIXELS + j] = (uint8_t)((i * 37 + j * j * 11) % 251);
            int length = snprintf(word, sizeof word, "%u,", cell);
            bytes_append(&text, word, (size_t)length);
        }
        classes[i] = (uint8_t)(i % 3);
        int length = snprintf(word, sizeof word, "%u\n", i % 3);
        bytes_append(&text, word, (size_t)length);
    }
    *bytes = npy("images", "|u1", "(2000, 40)", cells, sizeof cells);
    *labels = npy("classes", "|u1", "(2000,)", classes, sizeof classes);
    *csv = fixture_bytes("csv", text.data, text.length);
    bytes_release(&text);
}

static void bytes_are_chunks_of_the_same_rows_as_text(void **state) {
    (void)state;
    const char *images, *labels, *csv;
    write_images(&images, &labels, &csv);
    struct set *bytes = merge(pack_it(images, labels), NULL),
               *text = merge(pack_it(csv, NULL), NULL);
    const struct set_info *a = set_info(bytes), *b = set_info(text);
    assert_int_equal(a->type, VALUE_BYTE);
    assert_int_equal(b->type, VALUE_FLOAT);
    assert_true(a->dense && a->chunks > 3 && a->chunks == b->chunks);
    assert_memory_equal(a->exponent, b->exponent, (a->features + 1) * sizeof *a->exponent);
    for (uint32_t chunk = 0; chunk < a->chunks; chunk++) {
        struct rows x, y;
        assert_int_equal(set_chunk(bytes, chunk, &x), 0);
        assert_int_equal(set_chunk(text, chunk, &y), 0);
        assert_int_equal(x.type, VALUE_BYTE);
        assert_int_equal(x.count, y.count);
        assert_memory_equal(x.label, y.label, x.count * sizeof *x.label);
        for (uint64_t i = 0; i < x.values; i++)
            assert_true(value_at(x.type, x.value, i) == value_at(y.type, y.value, i));
    }
    set_close(bytes);
    set_close(text);
}

/* Rows of many other columns make the set sparse. */
static void bytes_beside_text_take_the_wider_type(void **state) {
    (void)state;
    const uint8_t cells[] = {0, 1, 255, 3}, classes[] = {0, 1};
    const char *images = npy("x", "|u1", "(2, 2)", cells, sizeof cells);
    const char *labels = npy("classes", "|u1", "(2,)", classes, sizeof classes);
    const char *ones = "0 3:1\n1 4:1\n0 5:1\n1 6:1\n0 7:1\n1 8:1\n0 9:1\n1 10:1\n";
    for (int wide = 0; wide < 2; wide++) {
        const char *text = wide ? "0 3:0.5\n1 4:1\n0 5:1\n1 6:1\n0 7:1\n1 8:1\n" : ones;
        struct set *set = merge(pack_it(images, labels), pack_it(fixture_text("more", text), NULL));
        struct rows rows;
        assert_int_equal(set_chunk(set, 0, &rows), 0);
        assert_false(rows.dense);
        assert_int_equal(rows.type, wide ? VALUE_FLOAT : VALUE_BYTE);
        double sum = 0;
        for (uint32_t i = 0; i < rows.start[2]; i++)
            sum += value_at(rows.type, rows.value, i);
        assert_true(sum == 259);
        assert_true(value_at(rows.type, rows.value, 4) == (wide ? 0.5 : 1));
        set_close(set);
    }
}

static void only_bytes_are_packed_as_bytes(void **state) {
    (void)state;
    const uint8_t cells[] = {1, 1};
    const struct {
        const char *type;
        enum value_type packed;
    } cases[] = {{"|u1", VALUE_BYTE}, {"|i1", VALUE_ONES}, {"|b1", VALUE_ONES}};
    const char *labels = npy("classes", "|u1", "(2,)", cells, sizeof cells);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pack *pack = pack_it(npy("x", cases[i].type, "(2,)", cells, 2), labels);
        assert_int_equal(pack->facts->type, cases[i].packed);
        pack_close(pack);
    }
}

SUITE(array) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dimensions_beyond_the_first_of_idx_are_flattened),
        cmocka_unit_test(every_type_of_idx_is_read),
        cmocka_unit_test(every_number_of_npy_is_read),
        cmocka_unit_test(later_versions_of_npy_have_a_longer_header),
        cmocka_unit_test(labels_may_be_floats_of_the_other_format),
        cmocka_unit_test(many_rows_come_in_order),
        cmocka_unit_test(a_truncated_array_is_refused),
        cmocka_unit_test(a_header_that_promises_too_much_allocates_nothing),
        cmocka_unit_test(an_array_of_anything_but_numbers_is_refused),
        cmocka_unit_test(an_array_without_rows_or_columns_is_refused),
        cmocka_unit_test(a_damaged_header_is_refused),
        cmocka_unit_test(a_header_that_ends_within_a_type_is_refused),
        cmocka_unit_test(bytes_behind_the_last_row_are_refused),
        cmocka_unit_test(a_file_of_another_format_than_told_is_refused),
        cmocka_unit_test(a_number_that_is_not_finite_is_a_bad_row),
        cmocka_unit_test(labels_that_do_not_fit_are_refused),
        cmocka_unit_test(rows_of_another_width_than_trained_on_are_refused),
        cmocka_unit_test(a_pack_is_made_again_when_its_labels_change),
        cmocka_unit_test(bytes_are_chunks_of_the_same_rows_as_text),
        cmocka_unit_test(bytes_beside_text_take_the_wider_type),
        cmocka_unit_test(only_bytes_are_packed_as_bytes),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}

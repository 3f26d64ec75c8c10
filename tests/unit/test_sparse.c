/* Sparse matrices as data: .npz files of scipy.sparse.save_npz() are read, and what is wrong with
 * them is named. */
#include "tests/unit/npz.h"
#include "tests/unit/suites.h"
#include "data/pack/pack_file.h"
#include "tests/unit/data_fixture.h"

/* ---- files ---- */

/* An array of .npy, with its bytes. */
struct member {
    const char *name, *type, *shape;
    const void *data;
    size_t bytes;
};

static const int32_t ends[] = {0, 2, 2, 5}, indices[] = {3, 0, 1, 4, 1};
static const double values[] = {0.5, -2, 1, 7, 0.25};
static const int64_t shape[] = {3, 5};

/* Three rows: 1:-2 4:0.5, none, and 2:1.25 5:7, whose first value is of two entries. */
static const struct member matrix[] = {{"indices.npy", "<i4", "(5,)", indices, sizeof indices},
                                       {"indptr.npy", "<i4", "(4,)", ends, sizeof ends},
                                       {"format.npy", "|S3", "()", "csr", 3},
                                       {"shape.npy", "<i8", "(2,)", shape, sizeof shape},
                                       {"data.npy", "<f8", "(5,)", values, sizeof values}};
enum { MEMBERS = sizeof matrix / sizeof *matrix, FORMAT = 2 };

static void add_array(struct npz *npz, const struct member *member) {
    char *header = memory_format("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n",
                                 member->type, member->shape);
    struct bytes array;
    bytes_init(&array);
    bytes_append(&array, "\x93NUMPY\1\0", 8);
    npz_put(&array, 2, strlen(header));
    bytes_append(&array, header, strlen(header));
    bytes_append(&array, member->data, member->bytes);
    npz_add(npz, member->name, array.data, array.length);
    bytes_release(&array);
    free(header);
}

/* The matrix as a file, in which `other` stands in the place of the member with its name; NULL: it
 * is as it was. */
static struct npz archive_with(const struct member *other, bool deflates, bool wide) {
    struct npz npz = {.deflates = deflates, .wide = wide};
    bytes_init(&npz.file);
    bytes_init(&npz.directory);
    for (unsigned i = 0; i < MEMBERS; i++) {
        bool same = !other || strcmp(other->name, matrix[i].name) != 0;
        if (same || other->data)
            add_array(&npz, same ? &matrix[i] : other);
    }
    npz_end(&npz);
    return npz;
}

static const char *write_archive(const char *name, struct npz npz) {
    const char *path = fixture_bytes(name, npz.file.data, npz.file.length);
    npz_release(&npz);
    return path;
}

/* ---- reading ---- */

static int take(void *context, const struct source_rows *rows) {
    struct bytes *text = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        char word[64];
        int length = snprintf(word, sizeof word, "%g:", rows->label[row]);
        bytes_append(text, word, (size_t)length);
        for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++) {
            length = snprintf(word, sizeof word, " %llu:%.17g", (unsigned long long)rows->id[i],
                              rows->value[i]);
            bytes_append(text, word, (size_t)length);
        }
        bytes_append(text, "\n", 1);
    }
    return 0;
}

static int read_it(const char *path, const struct source_options *options, struct bytes *text,
                   struct source_report *report) {
    bytes_init(text);
    int code = source_read(path, options, 2, take, text, report);
    bytes_put_u8(text, 0);
    return code;
}

static const struct source_options unlabelled = {.label.optional = true};

static void assert_read(const char *path, const struct source_options *options,
                        const char *expected) {
    struct source_report report;
    struct bytes text;
    if (read_it(path, options, &text, &report))
        fail_msg("%s", error_text());
    assert_string_equal((char *)text.data, expected);
    assert_int_equal(report.format, FORMAT_LIBSVM);
    bytes_release(&text);
    source_report_release(&report);
}

static void assert_error(const char *path, const struct source_options *options,
                         const char *words) {
    struct source_report report;
    struct bytes text;
    int code = read_it(path, options, &text, &report);
    if (code != ERROR_DATA || !strstr(error_text(), words))
        fail_msg("code %d, \"%s\" instead of \"… %s …\"", code, error_text(), words);
    error_clear();
    bytes_release(&text);
}

/* The matrix with another member is refused, in these words. */
static void assert_refused(struct member other, const char *words) {
    assert_error(write_archive("x", archive_with(&other, false, false)), &unlabelled, words);
}

#define ROWS "nan: 1:-2 4:0.5\nnan:\nnan: 2:1.25 5:7\n"

static void stored_and_deflated_members_are_read(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++)
        assert_read(write_archive("x", archive_with(NULL, kind & 1, kind & 2)), &unlabelled, ROWS);
    const struct source_options options = {.label.optional = true, .format = FORMAT_NPZ};
    assert_read(write_archive("x", archive_with(NULL, false, false)), &options, ROWS);
}

static void a_compressed_archive_is_read(void **state) {
    (void)state;
    struct npz npz = archive_with(NULL, false, false);
    const char *path = fixture_path("x.npz.gz");
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, npz.file.data, (unsigned)npz.file.length), npz.file.length);
    assert_int_equal(gzclose(file), Z_OK);
    npz_release(&npz);
    assert_read(path, &unlabelled, ROWS);
}

static void other_types_of_numbers_are_read(void **state) {
    (void)state;
    static const int64_t wide_ends[] = {0, 2, 2, 5};
    static const float narrow[] = {0.5f, -2, 1, 7, 0.25f};
    struct member other = {"indptr.npy", "<i8", "(4,)", wide_ends, sizeof wide_ends};
    assert_read(write_archive("x", archive_with(&other, false, false)), &unlabelled, ROWS);
    other = (struct member){"data.npy", "<f4", "(5,)", narrow, sizeof narrow};
    assert_read(write_archive("x", archive_with(&other, false, false)), &unlabelled, ROWS);
    other = (struct member){"format.npy", "<U3", "()", "c\0\0\0s\0\0\0r\0\0", 12};
    assert_read(write_archive("x", archive_with(&other, false, false)), &unlabelled, ROWS);
}

static void labels_and_weights_are_arrays_of_their_own(void **state) {
    (void)state;
    const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 0, 2, 9};
    const struct source_options options = {.label.file = fixture_bytes("labels", labels, 11)};
    const char *path = write_archive("x", archive_with(NULL, false, false));
    assert_read(path, &options, "1: 1:-2 4:0.5\n0:\n2: 2:1.25 5:7\n");
    const struct source_options weighted = {.label.file = options.label.file,
                                            .property.file[ROW_WEIGHT] =
                                                fixture_bytes("weights", labels, 11)};
    assert_read(path, &weighted, "1: 1:-2 4:0.5\n0:\n2: 2:1.25 5:7\n");
    const struct source_options longer = {.label.file = fixture_bytes("longer", labels, 12)};
    assert_error(path, &longer, "longer goes on");
    assert_error(path, &(struct source_options){0}, "in the key `labels`");
}

static void the_pack_is_that_of_libsvm_text(void **state) {
    (void)state;
    static const double labels[] = {1, 0, 2};
    const char *text = fixture_text("text", "1 4:0.5 1:-2\n0\n2 2:1.25 5:7\n");
    struct bytes array;
    bytes_init(&array);
    bytes_append(&array, "\0\0\x0e\1\0\0\0\3", 8);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t bits;
        memcpy(&bits, &labels[i], sizeof bits);
        for (unsigned j = 8; j--;)
            bytes_put_u8(&array, (uint8_t)(bits >> 8 * j));
    }
    const struct source_options plain = {0}, beside = {.label.file = fixture_bytes("l", array.data,
                                                                                   array.length)};
    bytes_release(&array);
    struct pack *a = NULL, *b = NULL;
    bool made;
    const char *path = write_archive("x", archive_with(NULL, true, false));
    if (pack_of_source(fixture_path("packs"), text, &plain, 2, &a, &made) ||
        pack_of_source(fixture_path("packs"), path, &beside, 2, &b, &made))
        fail_msg("%s", error_text());
    assert_int_equal(a->facts->format, b->facts->format);
    assert_int_equal(a->facts->rows, b->facts->rows);
    assert_int_equal(a->facts->values, b->facts->values);
    pack_close(a);
    pack_close(b);
}

/* ---- what is refused ---- */

static void arrays_that_are_no_matrix_in_csr_format_are_refused(void **state) {
    (void)state;
    assert_refused((struct member){"format.npy", "|S3", "()", "csc", 3},
                   "has a matrix in the format csc: give a sparse matrix in CSR format");
    assert_refused((struct member){.name = "format.npy"}, "and not of a sparse matrix");
    assert_refused((struct member){.name = "indptr.npy"}, "and not of a sparse matrix");
    assert_refused((struct member){"shape.npy", "<i8", "(1,)", shape, 8}, "`shape`");
    assert_refused((struct member){"data.npy", "<c8", "(5,)", values, 40},
                   "x/data.npy: its cells are of type \"<c8\"");
    assert_refused((struct member){"data.npy", "|O", "(5,)", values, 40}, "never read");
    const struct source_options csv = {.label.optional = true, .format = FORMAT_CSV};
    assert_error(write_archive("x", archive_with(NULL, false, false)), &csv,
                 "is a .npz file, and not csv, as `format` says");
    const struct source_options npz = {.label.optional = true, .format = FORMAT_NPZ};
    assert_error(fixture_text("text", "1 1:1\n"), &npz, "text is not a .npz file");
    assert_error(fixture_bytes("book", "PK\3\4..........................[Content_Types].xml", 49),
                 &unlabelled, "a zip archive, as .xlsx files are");
}

static void arrays_that_do_not_fit_each_other_are_refused(void **state) {
    (void)state;
    static const int32_t falls[] = {0, 3, 2, 5}, beyond[] = {0, 2, 2, 6}, short_[] = {0, 2, 2, 4},
                         late[] = {1, 2, 2, 5}, outside[] = {3, 0, 1, 5, 1},
                         negative[] = {3, 0, 1, -1, 1};
    assert_refused((struct member){"indptr.npy", "<i4", "(4,)", falls, 16},
                   "x/indptr.npy: row 2 ends at value 2, and begins at 3 of 5 values");
    assert_refused((struct member){"indptr.npy", "<i4", "(4,)", beyond, 16},
                   "row 3 ends at value 6, and begins at 2 of 5 values");
    assert_refused((struct member){"indptr.npy", "<i4", "(4,)", short_, 16},
                   "x has 5 values, and its rows have 4");
    assert_refused((struct member){"indptr.npy", "<i4", "(4,)", late, 16}, "begins with 1");
    assert_refused((struct member){"indptr.npy", "<i4", "(3,)", ends, 12},
                   "has 3 numbers for 3 rows");
    assert_refused((struct member){"indptr.npy", "<i4", "(4,)", ends, 12}, "truncated");
    assert_refused((struct member){"data.npy", "<f8", "(4,)", values, 32},
                   "x/indices.npy has 5 numbers, and ");
    assert_refused((struct member){"indices.npy", "<i4", "(5,)", indices, 16},
                   "x/indices.npy is truncated: its header says 5 rows, and it has 4");
    assert_refused((struct member){"indices.npy", "<i4", "(5,)", outside, 20},
                   "x:3: index 5 of its value 2 is not one of the 5 columns");
    assert_refused((struct member){"indices.npy", "<i4", "(5,)", negative, 20}, "x:3: index -1");
}

static void a_row_may_be_malformed(void **state) {
    (void)state;
    static const double odd[] = {0.5, NAN, 1, 7, 0.25};
    const struct member other = {"data.npy", "<f8", "(5,)", odd, sizeof odd};
    const char *path = write_archive("x", archive_with(&other, false, false));
    assert_error(path, &unlabelled, "x:1: the value of column 1 of this row is nan");
    const struct source_options skips = {.label.optional = true, .bad_lines_max = 1};
    assert_read(path, &skips, "nan:\nnan: 2:1.25 5:7\n");
}

static void a_row_has_a_bounded_number_of_values(void **state) {
    (void)state;
    static const int64_t wide_ends[] = {0, INT64_C(1) << 30};
    static const int64_t one_row[] = {1, INT64_C(1) << 40};
    struct npz npz = {0};
    bytes_init(&npz.file);
    bytes_init(&npz.directory);
    add_array(&npz, &(struct member){"indptr.npy", "<i8", "(2,)", wide_ends, 16});
    add_array(&npz, &(struct member){"indices.npy", "<i8", "(1073741824,)", one_row, 16});
    add_array(&npz, &(struct member){"data.npy", "<f8", "(1073741824,)", one_row, 16});
    add_array(&npz, &(struct member){"shape.npy", "<i8", "(2,)", one_row, 16});
    add_array(&npz, &matrix[FORMAT]);
    npz_end(&npz);
    assert_error(write_archive("x", npz), &unlabelled,
                 "row 1 has 1073741824 values; allowed: 16777216 at most");
}

/* Every byte that is changed is found, or is one that nothing depends on. */
static void a_damaged_archive_is_refused_or_read_right(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct npz npz = archive_with(NULL, kind & 1, kind & 2);
        for (size_t i = 0; i < npz.file.length; i++) {
            npz.file.data[i] ^= 0x41;
            const char *path = fixture_bytes("damaged", npz.file.data, npz.file.length);
            struct source_report report;
            struct bytes text;
            int code = read_it(path, &unlabelled, &text, &report);
            if (!code) {
                assert_string_equal((char *)text.data, ROWS);
                source_report_release(&report);
            }
            assert_true(!code || code == ERROR_DATA);
            error_clear();
            bytes_release(&text);
            npz.file.data[i] ^= 0x41;
        }
        for (size_t length = 60; length < npz.file.length; length += 7)
            assert_error(fixture_bytes("cut", npz.file.data, length), &unlabelled, "damaged");
        npz_release(&npz);
    }
}

static void many_rows_come_in_order(void **state) {
    (void)state;
    enum { ROWS_ = 20000, MOST = 9 };
    struct bytes part[3], expected;
    for (unsigned i = 0; i < 3; i++)
        bytes_init(&part[i]);
    bytes_init(&expected);
    uint64_t end = 0;
    npz_put(&part[0], 8, 0);
    for (unsigned row = 0; row < ROWS_; row++) {
        bytes_append(&expected, "nan:", 4);
        for (unsigned j = 0; j < row % (MOST + 1); j++) {
            char word[32];
            int length = snprintf(word, sizeof word, " %u:%u", j * 3 + 1, (row + j) % 250);
            bytes_append(&expected, word, (size_t)length);
            npz_put(&part[1], 4, j * 3);
            npz_put(&part[2], 1, (row + j) % 250);
            end++;
        }
        npz_put(&part[0], 8, end);
        bytes_append(&expected, "\n", 1);
    }
    bytes_put_u8(&expected, 0);
    static const int64_t size[] = {ROWS_, 100};
    char *count = memory_format("(%llu,)", (unsigned long long)end);
    struct npz npz = {.deflates = true};
    bytes_init(&npz.file);
    bytes_init(&npz.directory);
    add_array(&npz,
              &(struct member){"indptr.npy", "<i8", "(20001,)", part[0].data, part[0].length});
    add_array(&npz, &(struct member){"indices.npy", "<u4", count, part[1].data, part[1].length});
    add_array(&npz, &(struct member){"data.npy", "|u1", count, part[2].data, part[2].length});
    add_array(&npz, &(struct member){"shape.npy", "<i8", "(2,)", size, sizeof size});
    add_array(&npz, &matrix[FORMAT]);
    npz_end(&npz);
    assert_read(write_archive("x", npz), &unlabelled, (char *)expected.data);
    for (unsigned i = 0; i < 3; i++)
        bytes_release(&part[i]);
    bytes_release(&expected);
    free(count);
}

SUITE(sparse) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_and_deflated_members_are_read),
        cmocka_unit_test(a_compressed_archive_is_read),
        cmocka_unit_test(other_types_of_numbers_are_read),
        cmocka_unit_test(labels_and_weights_are_arrays_of_their_own),
        cmocka_unit_test(the_pack_is_that_of_libsvm_text),
        cmocka_unit_test(arrays_that_are_no_matrix_in_csr_format_are_refused),
        cmocka_unit_test(arrays_that_do_not_fit_each_other_are_refused),
        cmocka_unit_test(a_row_may_be_malformed),
        cmocka_unit_test(a_row_has_a_bounded_number_of_values),
        cmocka_unit_test(a_damaged_archive_is_refused_or_read_right),
        cmocka_unit_test(many_rows_come_in_order),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}

/* Parquet is read as the CSV of the same table is, and what is not read, or damaged, is named.
 * tests/unit/parquet/fixtures.py makes the files of tests/unit/parquet/ by pyarrow. */
#include "data/source/rows.h"
#include "tests/unit/suites.h"
#include "base/random.h"
#include "data/text/date.h"
#include "data/parquet/parquet.h"
#include "data/parquet/parquet_cell.h"
#include "tests/unit/data_fixture.h"

static const char *stored_file(const char *name) {
    static char path[4][512];
    static unsigned next;
    const char *root = getenv("DML_SOURCE");
    char *slot = path[next++ % 4];
    snprintf(slot, sizeof path[0], "%s/tests/unit/parquet/%s", root ? root : ".", name);
    return slot;
}

/* ---- rows as text ---- */

static void put(struct bytes *text, const char *format, ...) {
    char word[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(word, sizeof word, format, arguments);
    va_end(arguments);
    bytes_append(text, word, (size_t)length < sizeof word ? (size_t)length : sizeof word - 1);
}

static int take(void *context, const struct source_rows *rows) {
    struct bytes *text = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        put(text, "%.17g %s %.17g %llx:", rows->label[row],
            rows->label_text && rows->label_text[row] ? rows->label_text[row] : "-",
            rows->weight ? rows->weight[row] : 1,
            rows->cluster ? (unsigned long long)rows->cluster[row] : 0);
        const uint64_t *id = source_row_ids(rows, row);
        for (uint64_t i = rows->start[row], j = 0; i < rows->start[row + 1]; i++, j++)
            put(text, " %llx=%.17g%s", (unsigned long long)id[j], rows->value[i],
                rows->origin && rows->origin[i].text ? rows->origin[i].text : "");
        for (uint32_t i = 0; i < rows->carried_count; i++)
            put(text, " [%s]", source_row_carried(rows, row)[i]);
        put(text, "\n");
    }
    return 0;
}

/* All rows of a file, and what its columns are; free it. */
static char *rows_of(const char *path, const struct source_options *options) {
    struct source_report report;
    struct bytes text;
    bytes_init(&text);
    int code = source_read(path, options, 3, take, &text, &report);
    if (code)
        print_message("%s\n", error_text());
    assert_int_equal(code, 0);
    char *table = table_text(report.table);
    put(&text, "%llu rows\n", (unsigned long long)report.rows);
    bytes_append(&text, table, strlen(table) + 1);
    free(table);
    source_report_release(&report);
    return (char *)text.data;
}

static void assert_same_rows(const char *csv, const char *parquet,
                             const struct source_options *options) {
    char *expected = rows_of(csv, options), *found = rows_of(parquet, options);
    assert_string_equal(found, expected);
    free(expected);
    free(found);
}

static void assert_refused(const char *path, const struct source_options *options,
                           const char *why) {
    struct source_report report;
    struct bytes text;
    bytes_init(&text);
    assert_int_equal(source_read(path, options, 2, take, &text, &report), ERROR_DATA);
    if (!strstr(error_text(), why))
        print_message("%s\n", error_text());
    assert_non_null(strstr(error_text(), why));
    error_clear();
    bytes_release(&text);
}

/* ---- what is read ---- */

static const char *const files[] = {"dictionary.parquet", "plain.parquet", "encoded0.parquet",
                                    "encoded1.parquet"};
#define FILES (sizeof files / sizeof *files)
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void the_rows_are_those_of_the_csv(void **state) {
    const char *const *dates = LIST("day", "stamp"), *const *some = LIST("double", "wide", "day");
    const struct source_options ways[] = {
        {.label.column = "y"},
        {.label.column = "y", .table.dates = dates, .table.trim = true},
        {.label.column = "kind", .bad_lines_max = 99, .table.skip = NULL},
        {.label.column = "y",
         .bad_lines_max = 99,
         .property.column[ROW_WEIGHT] = "uint32",
         .property.column[ROW_CLUSTER] = "uint64",
         .table.skip = LIST("truth")},
        {.label.column = "truth",
         .label.optional = true,
         .property.column[ROW_OFFSET] = "int8",
         .table.skip = some,
         .bad_lines_max = 99},
        {.label.column = "y",
         .table.categories = LIST("cents", "wide", "half", "int8", "sum", "price", "day"),
         .table.hash_bits = 9},
        {.label.column = "y",
         .table.text = LIST("kind", "code"),
         .words.ngrams = 2,
         .words.lowercase = true},
        {.label.column = "y",
         .carried = LIST("kind", "cents", "sum", "float", "stamp", "y", "truth")},
        {.label.column = "y",
         .table.missing = LIST("-72", "005", "true"),
         .table.numbers = LIST("code", "fixed")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (size_t k = 0; k < FILES; k++)
            assert_same_rows(stored_file("table.csv"), stored_file(files[k]), &ways[i]);
}

/* The stored table with more columns: their names, and the cells of all rows. */
static const char *table_with(const char *names, const char *cells) {
    FILE *from = fopen(stored_file("table.csv"), "r"), *to = fopen(fixture_path("with.csv"), "w");
    char line[4096];
    assert_true(from && to);
    for (bool first = true; fgets(line, sizeof line, from); first = false)
        fprintf(to, "%.*s%s\n", (int)strcspn(line, "\r\n"), line, first ? names : cells);
    assert_int_equal(fclose(from) | fclose(to), 0);
    return fixture_path("with.csv");
}

static void folders_give_the_columns_of_a_table_that_has_them(void **state) {
    static struct source_folder folders[] = {{.name = "month", .value = "07"},
                                             {.name = "town", .value = "a, \"b\"", .texts = true},
                                             {.name = "none", .value = ""},
                                             {.name = "from", .value = "2024-03-01", .texts = true},
                                             {0}};
    const char *written = table_with(",month,town,none,from", ",07,\"a, \"\"b\"\"\",,2024-03-01");
    const struct source_options ways[] = {
        {.label.column = "y"},
        {.label.column = "y",
         .table.numbers_only = false,
         .table.hash_bits = 9,
         .table.categories = LIST("month", "none")},
        {.label.column = "town",
         .property.column[ROW_WEIGHT] = "month",
         .table.dates = LIST("from"),
         .table.skip = LIST("none")},
        {.label.column = "month",
         .table.text = LIST("town"),
         .property.column[ROW_CLUSTER] = "from",
         .table.skip = LIST("kind")},
        {.label.column = "y", .carried = LIST("town", "kind", "none"), .table.missing = LIST("07")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct source_options given = ways[i];
        char *expected = rows_of(written, &given);
        given.folders.column = folders;
        for (size_t k = 0; k <= FILES; k++) {
            char *found = rows_of(stored_file(k < FILES ? files[k] : "table.csv"), &given);
            assert_string_equal(found, expected);
            free(found);
        }
        free(expected);
    }
    folders[0].name = (char[]){"int8"};
    const struct source_options twice = {.label.column = "y", .folders.column = folders};
    assert_refused(stored_file("plain.parquet"), &twice, ":1: column 6 (int8) has another value");
    assert_refused(stored_file("table.csv"), &twice, ":2: column 6 (int8) has another value");
}

static void a_known_table_is_found_in_the_file(void **state) {
    struct table *table;
    const struct source_options first = {.label.column = "y", .table.dates = LIST("day", "stamp")};
    (void)state;
    assert_int_equal(source_columns(stored_file("plain.parquet"), &first, true, &table, NULL), 0);
    const struct source_options next = {.format = FORMAT_CSV, .table.known = table};
    assert_same_rows(stored_file("table.csv"), stored_file("dictionary.parquet"), &next);
    table_free(table);
}

static void bad_rows_have_their_numbers(void **state) {
    const struct source_options options = {.label.column = "y", .table.numbers = LIST("kind")};
    (void)state;
    assert_refused(stored_file("plain.parquet"), &options,
                   "plain.parquet:1: column 12 (kind) holds \"kind \"7\", or other\"");
}

static char *bytes_of(const char *path, size_t *length) {
    char *content = NULL;
    assert_int_equal(file_read(path, 1u << 20, &content, length), 0);
    return content;
}

static void compressed_as_a_whole_it_is_read_too(void **state) {
    const struct source_options options = {.label.column = "y"};
    size_t length;
    char *content = bytes_of(stored_file("encoded0.parquet"), &length);
    const char *path = fixture_path("whole.parquet.gz");
    gzFile file = gzopen(path, "w");
    (void)state;
    assert_int_equal(gzwrite(file, content, (unsigned)length), length);
    assert_int_equal(gzclose(file), Z_OK);
    free(content);
    assert_same_rows(stored_file("table.csv"), path, &options);
}

static void a_text_may_begin_as_parquet_does(void **state) {
    const struct source_options options = {.label.column = "y"};
    (void)state;
    char *rows = rows_of(fixture_text("text", "PAR1,y\n1,0\n2,1\n"), &options);
    assert_non_null(strstr(rows, "2 rows"));
    free(rows);
}

/* ---- numbers of 32 bits ---- */

static void a_float_is_the_number_that_its_shortest_text_means(void **state) {
    struct random random;
    struct parquet_column column = {.type = PARQUET_FLOAT, .width = 4};
    struct parquet_values values = {.count = 1, .width = 4};
    const struct parquet_span span = {&column, &values};
    (void)state;
    random_init(&random, 7);
    for (int i = 0; i < (SANITIZED ? 20000 : 200000); i++) {
        float number;
        uint32_t bits = (uint32_t)random_next(&random);
        memcpy(&number, &bits, sizeof number);
        if (i % 2)
            number = (float)((int)(bits % 2000001) - 1000000) / (float)(i % 3 ? 100 : 1024);
        if (!isfinite(number))
            continue;
        char text[320];
        int digits = 1;
        do {
            snprintf(text, sizeof text, "%.*g", digits++, (double)number);
        } while (strtof(text, NULL) != number);
        double found;
        values.data = (uint8_t *)&number;
        parquet_numbers(&span, 0, NULL, 1, &found, 1);
        assert_true(found == strtod(text, NULL));
    }
}

/* ---- integers of some bits ---- */

#define PACKED 1000

static void integers_of_any_bits_are_unpacked(void **state) {
    struct random random;
    (void)state;
    random_init(&random, 8);
    for (unsigned bits = 0; bits <= 32; bits++) {
        static uint8_t page[8 + 4 * PACKED];
        static uint32_t expected[PACKED], found[PACKED];
        uint32_t groups = PACKED / 8, head = groups << 1 | 1;
        memset(page, 0, sizeof page);
        page[0] = (uint8_t)(head | 0x80);
        page[1] = (uint8_t)(head >> 7);
        for (uint32_t i = 0; i < PACKED; i++) {
            expected[i] = bits ? (uint32_t)random_next(&random) >> (32 - bits) : 0;
            for (unsigned k = 0; k < bits; k++)
                page[2 + (i * bits + k) / 8] |=
                    (uint8_t)((expected[i] >> k & 1) << (i * bits + k) % 8);
        }
        struct cursor cursor = cursor_over(page, 2 + groups * bits);
        assert_true(parquet_runs(&cursor, bits, PACKED, found));
        assert_memory_equal(found, expected, sizeof found);
        cursor = cursor_over(page, 2 + groups * bits - (bits > 0));
        assert_true(parquet_runs(&cursor, bits, PACKED, found) == !bits);
    }
}

static void levels_are_bits_and_runs_of_one(void **state) {
    /* 16 bits, a run of 5 ones, one of 3 zeros, 3 bits of a group */
    static const uint8_t page[] = {2 << 1 | 1, 0xa5, 0x0f, 5 << 1, 1, 3 << 1, 0, 1 << 1 | 1, 0x05},
                         odd[] = {5 << 1, 2};
    static const uint8_t expected[] = {1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0,
                                       0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1};
    uint8_t found[sizeof expected];
    uint32_t set;
    (void)state;
    struct cursor cursor = cursor_over(page, sizeof page);
    assert_true(parquet_levels(&cursor, sizeof found, found, &set));
    assert_memory_equal(found, expected, sizeof found);
    assert_int_equal(set, 15);
    cursor = cursor_over(page, sizeof page - 1);
    assert_false(parquet_levels(&cursor, sizeof found, found, &set));
    cursor = cursor_over(odd, sizeof odd);
    assert_false(parquet_levels(&cursor, 5, found, &set));
}

/* ---- what is refused ---- */

static void what_is_not_read_is_named(void **state) {
    const struct source_options options = {.label.column = "y"};
    const struct source_options skipped = {.label.column = "y", .table.skip = LIST("list")};
    const struct source_options labels = {.label.file = stored_file("few.csv")};
    const struct source_options wanted = {.format = FORMAT_PARQUET};
    (void)state;
    assert_refused(stored_file("brotli.parquet"), &options,
                   "column \"double\" is not read: it is compressed by brotli");
    assert_refused(stored_file("nested.parquet"), &options,
                   "column \"list\" is not read: it is nested");
    assert_refused(stored_file("plain.parquet"), &labels, "goes without the file of labels");
    assert_refused(stored_file("few.csv"), &wanted, "is not Parquet, as `format` says");
    char *rows = rows_of(stored_file("nested.parquet"), &skipped);
    assert_non_null(strstr(rows, "5 rows"));
    free(rows);
}

/* ---- small files, byte by byte ---- */

/* Thrift's compact protocol: fields of a structure follow each other, the next one each. */
static void put_i32(struct bytes *to, unsigned step, uint32_t value) {
    bytes_put_u8(to, (uint8_t)(step << 4 | 5));
    for (uint64_t left = (uint64_t)value << 1;; left >>= 7) {
        bytes_put_u8(to, (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0)));
        if (left <= 0x7f)
            return;
    }
}

static void put_bytes(struct bytes *to, const uint8_t *bytes, size_t length) {
    bytes_append(to, bytes, length);
}
#define PUT(to, ...)                                                                               \
    put_bytes(to, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* The header of a page of data, or of a dictionary, whose bytes follow it. */
static void put_page(struct bytes *file, bool dictionary, const uint32_t bytes[2], uint32_t rows,
                     uint32_t encoding) {
    put_i32(file, 1, dictionary ? 2 : 0);
    put_i32(file, 1, bytes[0]);                           /* unpacked */
    put_i32(file, 1, bytes[1]);                           /* stored */
    PUT(file, (uint8_t)((dictionary ? 4 : 2) << 4 | 12)); /* its own header */
    put_i32(file, 1, rows);
    put_i32(file, 1, encoding);
    if (!dictionary) {
        put_i32(file, 1, 3);
        put_i32(file, 1, 3);
    }
    PUT(file, 0, 0);
}

/* The header of a page of data of the second kind, whose bytes follow it. `levels` are the bytes of
 * the levels that say what is null, and of those that say where lists begin. */
static void put_second_page(struct bytes *file, uint32_t bytes, uint32_t rows, uint32_t nulls,
                            const uint32_t levels[2]) {
    put_i32(file, 1, 3);
    put_i32(file, 1, bytes);
    put_i32(file, 1, bytes);
    PUT(file, 5 << 4 | 12);
    put_i32(file, 1, rows);
    put_i32(file, 1, nulls);
    put_i32(file, 1, rows);
    put_i32(file, 1, PARQUET_ENCODED_PLAIN);
    put_i32(file, 1, levels[0]);
    put_i32(file, 1, levels[1]);
    PUT(file, 0, 0);
}

/* Ends a file of one column "y" of 64-bit integers behind its pages. */
static const char *end_file(struct bytes *file, uint32_t rows, bool optional) {
    uint32_t end = (uint32_t)file->length;
    PUT(file, 2 << 4 | 9, 2 << 4 | 12);              /* the schema: two elements */
    PUT(file, 4 << 4 | 8, 1, 'r', 1 << 4 | 5, 2, 0); /* the root, with one child */
    PUT(file, 1 << 4 | 5, 4, 2 << 4 | 5, optional ? 2 : 0, 1 << 4 | 8, 1, 'y', 0);
    put_i32(file, 1, rows);
    PUT(file, 1 << 4 | 9, 1 << 4 | 12); /* a group of rows */
    PUT(file, 1 << 4 | 9, 1 << 4 | 12); /* of one column */
    PUT(file, 3 << 4 | 12);             /* its metadata */
    put_i32(file, 1, 2);
    put_i32(file, 3, 0);
    put_i32(file, 3, end - 4);
    put_i32(file, 2, 4);
    PUT(file, 0, 0);
    put_i32(file, 2, rows);
    PUT(file, 0, 0);
    bytes_put_u32(file, (uint32_t)file->length - end);
    bytes_append(file, "PAR1", 4);
    const char *path = fixture_bytes("small.parquet", file->data, file->length);
    bytes_release(file);
    return path;
}

/* A file with one page of `there` values; its header says what it likes. */
static const char *small_file(uint32_t unpacked, uint32_t stored, uint32_t rows, uint32_t there,
                              uint32_t encoding) {
    struct bytes file;
    bytes_init(&file);
    bytes_append(&file, "PAR1", 4);
    put_page(&file, false, (const uint32_t[]){unpacked, stored}, rows, encoding);
    for (uint32_t i = 0; i < there; i++)
        bytes_put_u64(&file, i);
    return end_file(&file, rows, false);
}

static void a_page_has_no_more_rows_than_its_group(void **state) {
    const struct source_options options = {
        .table.numbers_only = true, .label.column = "z", .label.optional = true};
    struct bytes file;
    (void)state;
    bytes_init(&file);
    bytes_append(&file, "PAR1", 4);
    put_page(&file, false, (const uint32_t[]){24, 24}, 3, PARQUET_ENCODED_PLAIN);
    for (uint32_t i = 0; i < 3; i++)
        bytes_put_u64(&file, i);
    assert_refused(end_file(&file, 2, false), &options, "its pages have more rows than the file");
}

/* So does pyarrow write it: the dictionary of a column of nulls has no entries. */
static void a_column_of_nulls_may_have_an_empty_dictionary(void **state) {
    const struct source_options options = {
        .label.column = "z", .label.optional = true, .table.numbers = LIST("y")};
    struct bytes file;
    (void)state;
    bytes_init(&file);
    bytes_append(&file, "PAR1", 4);
    put_page(&file, true, (const uint32_t[]){0, 0}, 0, PARQUET_ENCODED_PLAIN);
    put_page(&file, false, (const uint32_t[]){6, 6}, 3, PARQUET_ENCODED_DICTIONARY);
    bytes_put_u32(&file, 2);
    PUT(&file, 3 << 1, 0); /* a run: three times no value */
    char *rows = rows_of(end_file(&file, 3, true), &options);
    assert_non_null(strstr(rows, "3 rows"));
    free(rows);
}

/* A run of three levels of no bits, for lists of which a flat column has none; then levels of one
 * bit, where a value may be null, or of none. */
static void pages_may_have_levels_that_say_nothing(void **state) {
    const struct source_options options = {
        .label.column = "z", .label.optional = true, .table.numbers = LIST("y")};
    (void)state;
    for (int optional = 0; optional < 2; optional++) {
        struct bytes file;
        const uint32_t levels[] = {optional ? 2 : 1, 1}, values = optional ? 2 : 3;
        bytes_init(&file);
        bytes_append(&file, "PAR1", 4);
        put_second_page(&file, levels[0] + 1 + 8 * values, 3, 3 - values, levels);
        PUT(&file, 3 << 1);
        if (optional)
            PUT(&file, 3, 5); /* eight bits, of which three count: 1, 0, 1 */
        else
            PUT(&file, 3 << 1);
        for (uint32_t i = 0; i < values; i++)
            bytes_put_u64(&file, 7 + i);
        char *rows = rows_of(end_file(&file, 3, optional), &options);
        assert_non_null(strstr(rows, "1=7\n"));
        assert_non_null(strstr(rows, optional ? "1=8\n" : "1=9\n"));
        assert_non_null(strstr(rows, "3 rows"));
        free(rows);
    }
}

static void groups_without_rows_are_passed_over(void **state) {
    const struct source_options options = {.label.column = "y"};
    (void)state;
    assert_same_rows(stored_file("few.csv"), stored_file("groups.parquet"), &options);
}

/* The index of pandas: what its metadata name, by whatever name. */
static void an_index_is_neither_a_feature_nor_the_label(void **state) {
    const struct source_options plain = {0}, id = {.table.numbers = LIST("id")},
                                named = {.label.column = "id"};
    struct table *table;
    (void)state;
    assert_int_equal(source_columns(stored_file("index.parquet"), &plain, true, &table, NULL), 0);
    assert_int_equal(table->columns, 4);
    assert_int_equal(table->column[0].kind, COLUMN_NUMBER);
    assert_int_equal(table->column[1].kind, COLUMN_LABEL);
    assert_int_equal(table->column[2].kind, COLUMN_SKIPPED);
    assert_int_equal(table->column[3].kind, COLUMN_SKIPPED);
    table_free(table);
    assert_int_equal(source_columns(stored_file("index.parquet"), &id, true, &table, NULL), 0);
    assert_int_equal(table->column[1].kind, COLUMN_LABEL);
    assert_int_equal(table->column[2].kind, COLUMN_NUMBER); /* the job says so */
    table_free(table);
    assert_int_equal(source_columns(stored_file("index.parquet"), &named, true, &table, NULL), 0);
    assert_int_equal(table->column[2].kind, COLUMN_LABEL);
    assert_int_equal(table->column[3].kind, COLUMN_SKIPPED);
    table_free(table);
}

struct hashes {
    uint64_t hash[64];
    uint32_t count;
};

static int take_hashes(void *context, const struct source_rows *rows) {
    struct hashes *hashes = context;
    for (uint32_t row = 0; row < rows->count; row++)
        hashes->hash[hashes->count++] = rows->hash[row];
    return 0;
}

static struct hashes hashes_of(const char *path, struct source_options options) {
    struct hashes hashes = {.count = 0};
    struct source_report report;
    options.hashes_rows = true;
    if (source_read(path, &options, 2, take_hashes, &hashes, &report))
        fail_msg("%s", error_text());
    source_report_release(&report);
    return hashes;
}

/* However values are stored, and whatever is read of them; a column that is not read has no part.
 */
static void the_hash_of_a_row_is_of_all_its_cells(void **state) {
    const struct source_options label = {.label.column = "y"},
                                other = {.label.column = "y",
                                         .table.skip = LIST("kind", "double", "day")},
                                one = {.label.column = "n"},
                                of = {.label.column = "x", .table.skip = LIST("n")},
                                nested = {.label.column = "y", .table.skip = LIST("list")};
    (void)state;
    const struct hashes plain = hashes_of(stored_file("plain.parquet"), label);
    assert_int_equal(plain.count, 40);
    for (size_t i = 0; i < FILES; i++) {
        const struct hashes found = hashes_of(stored_file(files[i]), i % 2 ? other : label);
        assert_memory_equal(&found, &plain, sizeof plain);
    }
    assert_true(hashes_of(stored_file("row.parquet"), one).hash[0] == UINT64_C(0x88707db7631adaf6));
    assert_true(hashes_of(stored_file("row.parquet"), of).hash[0] == UINT64_C(0x88707db7631adaf6));
    assert_int_equal(hashes_of(stored_file("nested.parquet"), nested).count, 5);
}

static void a_page_has_no_more_than_the_limits(void **state) {
    const struct source_options options = {
        .table.numbers_only = true, .label.column = "z", .label.optional = true};
    (void)state;
    struct source_report report;
    struct bytes text;
    bytes_init(&text);
    assert_int_equal(source_read(small_file(24, 24, 3, 3, 0), &options, 1, take, &text, &report),
                     0);
    assert_int_equal(report.rows, 3);
    source_report_release(&report);
    bytes_release(&text);
    assert_refused(small_file(0x7fffffff, 24, 3, 3, 0), &options, "has a page of 2147483647 bytes");
    assert_refused(small_file(24, 24, 0x7fffffff, 3, 0), &options,
                   "has a page of 2147483647 values");
    assert_refused(small_file(24, 999, 3, 3, 0), &options, "longer than what is left");
    assert_refused(small_file(24, 24, 4, 3, 0), &options, "fewer than it says");
    assert_refused(small_file(24, 24, 3, 3, 4), &options, "in the encoding BIT_PACKED");
    assert_refused(small_file(24, 24, 3, 3, 8), &options, "a dictionary that is not there");
}

/* An integer of an encoding: seven bits a byte. */
static void put_varint(struct bytes *to, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        bytes_put_u8(to, (uint8_t)(value | 0x80));
    bytes_put_u8(to, (uint8_t)value);
}

/* Integers by their differences, in blocks of one part with 8 differences of 64 bits. */
static void put_deltas(struct bytes *to, const uint64_t *value, uint32_t count) {
    put_varint(to, 8);
    put_varint(to, 1);
    put_varint(to, count);
    put_varint(to, value[0] << 1);
    for (uint32_t i = 1; i < count; i += 8) {
        PUT(to, 0, 64);
        for (uint32_t k = i; k < i + 8; k++)
            bytes_put_u64(to, k < count ? value[k] - value[k - 1] : 0);
    }
}

/* Each text has all of the one before, so that a mebibyte stands for as many as it likes. One is a
 * byte longer, so that the limit falls between the text and the 0 behind it. */
static void texts_by_their_prefixes_have_no_more_bytes_than_a_page(void **state) {
    enum { EACH = 1 << 20, MOST = PARQUET_PAGE_BYTES_MAX / EACH, TEXTS = MOST + 2 };
    uint64_t prefix[TEXTS], length[TEXTS];
    char *first = memory_new(EACH, 1);
    (void)state;
    for (uint32_t i = 0; i < TEXTS; i++) {
        prefix[i] = i == 0 ? 0 : i < MOST ? EACH - 1 : EACH;
        length[i] = i == 0 ? EACH - 1 : i == MOST - 1;
    }
    for (uint32_t count = MOST - 1; count <= TEXTS; count += 3) {
        struct parquet_values values = {0};
        struct bytes page;
        bytes_init(&page);
        put_deltas(&page, prefix, count);
        put_deltas(&page, length, count);
        bytes_append(&page, first, EACH);
        struct cursor from = cursor_over(page.data, page.length);
        assert_int_equal(parquet_texts(&from, PARQUET_ENCODED_DELTA_TEXT, count, &values),
                         count < MOST);
        parquet_values_release(&values);
        bytes_release(&page);
    }
    free(first);
}

static void an_encrypted_file_is_named(void **state) {
    const struct source_options options = {.label.column = "y"};
    size_t length;
    char *content = bytes_of(stored_file("plain.parquet"), &length);
    (void)state;
    content[length - 1] = 'E';
    assert_refused(fixture_bytes("encrypted", content, length), &options,
                   "is encrypted Parquet, which is not read");
    assert_refused(fixture_bytes("short", content, length - 9), &options, "is truncated");
    free(content);
}

/* ---- damage ---- */

static int count_rows(void *context, const struct source_rows *rows) {
    uint64_t *sum = context;
    for (uint64_t i = 0; i < rows->start[rows->count]; i++)
        *sum += rows->id[rows->alike ? 0 : i] & 1;
    return 0;
}

static void damage_is_an_error_or_another_value(void **state) {
    const struct source_options options = {
        .label.column = "y", .bad_lines_max = 99, .table.dates = LIST("day", "stamp")};
    struct random random;
    (void)state;
    random_init(&random, 11);
    for (int i = 0; i < 600; i++) {
        size_t length;
        uint64_t sum = 0;
        struct source_report report;
        char *content = bytes_of(stored_file(files[i % (int)FILES]), &length);
        for (uint64_t left = 1 + random_below(&random, 3); left; left--) {
            /* often the footer, which is in the last third */
            size_t from = random_below(&random, 2) ? length - length / 3 : 0;
            content[from + random_below(&random, length - from)] =
                (char)(random_below(&random, 4) ? random_next(&random) : 0xff);
        }
        const char *path = fixture_bytes("damaged", content, length);
        int code = source_read(path, &options, 2, count_rows, &sum, &report);
        assert_true(code == 0 || code == ERROR_DATA);
        if (!code)
            source_report_release(&report);
        error_clear();
        free(content);
    }
}

SUITE(parquet) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_are_those_of_the_csv),
        cmocka_unit_test(folders_give_the_columns_of_a_table_that_has_them),
        cmocka_unit_test(a_known_table_is_found_in_the_file),
        cmocka_unit_test(bad_rows_have_their_numbers),
        cmocka_unit_test(compressed_as_a_whole_it_is_read_too),
        cmocka_unit_test(a_text_may_begin_as_parquet_does),
        cmocka_unit_test(a_float_is_the_number_that_its_shortest_text_means),
        cmocka_unit_test(integers_of_any_bits_are_unpacked),
        cmocka_unit_test(levels_are_bits_and_runs_of_one),
        cmocka_unit_test(a_column_of_nulls_may_have_an_empty_dictionary),
        cmocka_unit_test(what_is_not_read_is_named),
        cmocka_unit_test(pages_may_have_levels_that_say_nothing),
        cmocka_unit_test(groups_without_rows_are_passed_over),
        cmocka_unit_test(an_index_is_neither_a_feature_nor_the_label),
        cmocka_unit_test(the_hash_of_a_row_is_of_all_its_cells),
        cmocka_unit_test(a_page_has_no_more_than_the_limits),
        cmocka_unit_test(a_page_has_no_more_rows_than_its_group),
        cmocka_unit_test(texts_by_their_prefixes_have_no_more_bytes_than_a_page),
        cmocka_unit_test(an_encrypted_file_is_named),
        cmocka_unit_test(damage_is_an_error_or_another_value),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}

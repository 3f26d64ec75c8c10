#include "tests/unit/suites.h"
#include "data/table/words.h"

#include <math.h>

#include "data/text/letters.h"
#include "tests/unit/data_fixture.h"

/* The n-grams of a text and their counts, as "word:1 other:2 ". */
static const char *words_with(struct words *words, const struct table *table, const char *text) {
    static char told[65536];
    char *to = told;
    *to = '\0';
    enum words_error error = words_find(words, table, 0, text, strlen(text));
    if (error)
        return error == WORDS_NO_UTF8 ? "no UTF-8" : "collide";
    for (uint32_t i = 0; i < words->count; i++)
        to += sprintf(to, "%s:%u ", words->found[i].text, words->found[i].count);
    return told;
}

static void assert_words(const struct table_text *rule, const char *text, const char *expected) {
    struct words words = {0};
    struct table *table = table_new(1);
    table->text = *rule;
    words_begin_block(&words);
    assert_string_equal(words_with(&words, table, text), expected);
    words_release(&words);
    table_free(table);
}

static const struct table_text plain = {.ngrams = 1, .lowercase = true};

static void words_are_runs_of_letters_and_digits(void **state) {
    (void)state;
    assert_words(&plain, "The dog's dog, a 2nd x_1 dog!", "the:1 dog:3 2nd:1 x_1:1 ");
    assert_words(&plain, "", "");
    assert_words(&plain, "a b ! \xf0\x9f\x98\x80", ""); /* an emoji parts words */
    const struct table_text as_it_is = {.ngrams = 1};
    assert_words(&as_it_is, "The the", "The:1 the:1 ");
}

static void other_characters_may_be_of_words_and_words_be_shorter_or_longer(void **state) {
    (void)state;
    const struct table_text dashes = {.ngrams = 1, .lowercase = true, .letters = "'-"};
    assert_words(&dashes, "Don't, don't well-known. - --", "don't:2 well-known:1 --:1 ");
    const struct table_text short_ones = {.ngrams = 1, .least = 1, .letters = "#"};
    assert_words(&short_ones, "a b#1 \xce\x91 a #", "a:2 b#1:1 \xce\x91:1 #:1 ");
    const struct table_text long_ones = {.ngrams = 1, .least = 4};
    assert_words(&long_ones, "one four \xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4_23",
                 "four:1 \xc3\xa4_23:1 ");
}

/* One reader goes from one rule to the next. */
static void words_of_another_rule_are_read_by_it(void **state) {
    (void)state;
    struct words words = {0};
    struct table *table = table_new(1);
    words_begin_block(&words);
    assert_string_equal(words_with(&words, table, "a-b cd"), "cd:1 ");
    table->text.letters[0] = '-';
    assert_string_equal(words_with(&words, table, "a-b cd"), "a-b:1 cd:1 ");
    table->text.letters[0] = '\0';
    assert_string_equal(words_with(&words, table, "a-b cd"), "cd:1 ");
    words_release(&words);
    table_free(table);
}

/* What Python's str.lower() and \w\w+ give. */
static void scripts_are_told_apart_as_in_python(void **state) {
    (void)state;
    assert_words(&plain, "ΟΔΟΣ ΟΔΟΣ. Σ ΣΑΣ ΑΣ", "οδος:2 σας:1 ας:1 ");
    assert_words(&plain, "ΑΣ'Β", "ασ:1 "); /* an apostrophe ends no word in capitals */
    assert_words(&plain, "İSTANBUL ISPARTA", "stanbul:1 isparta:1 ");
    assert_words(&plain, "Straße STRASSE ẞẞ", "straße:1 strasse:1 ßß:1 ");
    assert_words(&plain, "ПРИВЕТ ёЁ", "привет:1 ёё:1 ");
    assert_words(&plain, "中文 一、二三", "中文:1 二三:1 ");
    assert_words(&plain, "x²½ e\xcc\x81te", "x²½:1 te:1 "); /* numerals are of words, marks not */
    assert_words(&plain, "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6", "");
    assert_words(&plain, "ȺȺ", "ⱥⱥ:1 "); /* longer in lower case */
}

static void ngrams_are_joined_by_a_blank(void **state) {
    (void)state;
    const struct table_text two = {.ngrams = 2, .lowercase = true};
    assert_words(&two, "New York, a New--York", "new:2 new york:2 york:2 york new:1 ");
    const struct table_text three = {.ngrams = 3, .lowercase = true};
    assert_words(&three, "aa bb cc", "aa:1 aa bb:1 aa bb cc:1 bb:1 bb cc:1 cc:1 ");
}

static void what_is_no_utf8_is_found(void **state) {
    (void)state;
    static const char *const texts[] = {
        "caf\xe9 noir", "\xc0\xaf", "ab \xe2\x82",  "\xed\xa0\x80",     "\xf4\x90\x80\x80",
        "\xff",         "\x80",     "\xe0\x80\x80", "\xf0\x80\x80\x80", "x\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_words(&plain, texts[i], "no UTF-8");
    struct words words = {0};
    struct table *table = table_new(1);
    words_begin_block(&words);
    assert_int_equal(words_find(&words, table, 0, "caf\xe9", 4), WORDS_NO_UTF8);
    assert_int_equal(words.invalid, 3);
    words_release(&words);
    table_free(table);
}

static void every_character_is_written_as_it_was_read(void **state) {
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char text[LETTER_BYTES_MAX];
        uint32_t again = 0;
        unsigned size = letter_write(text, c);
        unsigned read = letter_read(text, size, &again);
        assert_int_equal(read, c >= 0xd800 && c < 0xe000 ? 0 : size);
        assert_true(!read || again == c);
    }
}

/* The text of a word is that of the id, also behind thousands of others and in the next block. */
static void words_of_a_block_are_known_by_their_ids(void **state) {
    (void)state;
    struct words words = {0};
    struct table *table = table_new(2);
    struct bytes text;
    bytes_init(&text);
    for (unsigned block = 0; block < 3; block++) {
        words_begin_block(&words);
        for (unsigned row = 0; row < 3; row++) {
            bytes_clear(&text);
            for (unsigned i = 0; i < 20000; i++) {
                char word[32];
                bytes_append(&text, word, (size_t)sprintf(word, "Word%u ", i * (row + 1) + block));
            }
            assert_int_equal(words_find(&words, table, 1, (char *)text.data, text.length),
                             WORDS_FOUND);
            assert_int_equal(words.count, 20000);
            for (uint32_t i = 0; i < words.count; i++) {
                char joined[64] = "     ", expected[32];
                sprintf(expected, "word%u", i * (row + 1) + block);
                assert_string_equal(words.found[i].text, expected);
                assert_int_equal(words.found[i].count, 1);
                strcpy(joined + TABLE_PREFIX_BYTES, expected);
                assert_true(words.found[i].id == table_word_feature(1, joined, strlen(expected)));
            }
        }
    }
    bytes_release(&text);
    words_release(&words);
    table_free(table);
}

/* As doc/FORMATS.md has it. */
static void ids_of_words_never_change(void **state) {
    (void)state;
    char joined[] = "     good";
    assert_true(table_word_feature(1, joined, 4) == UINT64_C(0xfcc191c0f87af7d7));
    assert_true(table_word_feature(1, joined, 4) == table_feature(1, ROLE_WORD, "good", 4));
}

static void hashed_words_share_features(void **state) {
    (void)state;
    struct words words = {0};
    struct table *table = table_new(1);
    table->hash = 1;
    words_begin_block(&words);
    assert_int_equal(words_find(&words, table, 0, "aa bb cc dd ee ff gg hh", 23), WORDS_FOUND);
    assert_int_equal(words.count, 2);
    assert_int_equal(words.found[0].count + words.found[1].count, 8);
    assert_null(words.found[0].text);
    words_release(&words);
    table_free(table);
}

static void a_word_may_be_long(void **state) {
    (void)state;
    struct words words = {0};
    struct table *table = table_new(1);
    char *text = memory_new(100001, 1);
    memset(text, 'X', 100000);
    words_begin_block(&words);
    assert_int_equal(words_find(&words, table, 0, text, 100000), WORDS_FOUND);
    assert_int_equal(words.count, 1);
    assert_int_equal(strspn(words.found[0].text, "x"), 100000);
    words_release(&words);
    table_free(table);
    free(text);
}

static void assert_near(double found, double expected, double apart) {
    assert_true(fabs(found - expected) <= apart);
}

/* scikit-learn 1.9: TfidfVectorizer().fit(texts).idf_ with 4 texts, of which 1, 2 and 4 have the
 * word. */
static void words_weigh_as_in_scikit_learn(void **state) {
    (void)state;
    struct table *table = table_new(1);
    table->text.rows = 4;
    assert_near(table_word_idf(table, 1), 1.916290731874155, 1e-15);
    assert_near(table_word_idf(table, 2), 1.5108256237659907, 1e-15);
    assert_near(table_word_idf(table, 4), 1, 0);
    assert_near(table_word_value(table, 3, 1.5), 4.5, 0);
    table->text.values = TEXT_LOG_TFIDF;
    assert_near(table_word_value(table, 1, 1.5), 1.5, 0);
    assert_near(table_word_value(table, 3, 1.5), 1.5 * 2.09861228866811, 1e-14);
    table->text.values = TEXT_COUNT;
    assert_near(table_word_value(table, 3, 1.5), 3, 0);
    table->text.values = TEXT_BINARY;
    assert_near(table_word_value(table, 3, 1.5), 1, 0);
    table_free(table);
}

SUITE(words) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_runs_of_letters_and_digits),
        cmocka_unit_test(other_characters_may_be_of_words_and_words_be_shorter_or_longer),
        cmocka_unit_test(words_of_another_rule_are_read_by_it),
        cmocka_unit_test(scripts_are_told_apart_as_in_python),
        cmocka_unit_test(ngrams_are_joined_by_a_blank),
        cmocka_unit_test(what_is_no_utf8_is_found),
        cmocka_unit_test(every_character_is_written_as_it_was_read),
        cmocka_unit_test(words_of_a_block_are_known_by_their_ids),
        cmocka_unit_test(ids_of_words_never_change),
        cmocka_unit_test(hashed_words_share_features),
        cmocka_unit_test(a_word_may_be_long),
        cmocka_unit_test(words_weigh_as_in_scikit_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "data/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/source/rows.h"
#include "data/text/date.h"
#include "data/text/number.h"

/* All columns together count about so many different values. */
#define DIFFERENT_OF_ALL 20000000u
#define DIFFERENT_LEAST 64u

#define PLACES_FIRST 16u

static uint32_t place_of(const uint64_t *seen, uint32_t places, uint64_t hash) {
    uint32_t place = (uint32_t)hash & (places - 1);
    while (seen[place] && seen[place] != hash)
        place = (place + 1) & (places - 1);
    return place;
}

static void note_different(const struct profile *profile, struct column_profile *column,
                           uint64_t hash) {
    if (column->different >= profile->different_max)
        return;
    if (2 * column->different >= column->places) {
        /* Doubles the table of a column, so that at most half of its places are in use. */
        const uint32_t places = column->places ? 2 * column->places : PLACES_FIRST;
        uint64_t *seen = memory_new(places, sizeof *seen);
        for (uint32_t i = 0; i < column->places; i++)
            if (column->seen[i])
                seen[place_of(seen, places, column->seen[i])] = column->seen[i];
        free(column->seen);
        column->seen = seen;
        column->places = places;
    }
    hash += !hash; /* 0 is a free place */
    const uint32_t place = place_of(column->seen, column->places, hash);
    column->different += !column->seen[place];
    column->seen[place] = hash;
}

/* How many different values of a column are counted at most; this depends on the table alone. */
static uint32_t different_max(uint32_t columns) {
    const uint32_t each = DIFFERENT_OF_ALL / (columns ? columns : 1);
    return each > PROFILE_DIFFERENT_MAX ? PROFILE_DIFFERENT_MAX
           : each < DIFFERENT_LEAST     ? DIFFERENT_LEAST
                                        : each;
}

static bool was_seen(const struct column_profile *column, double number) {
    const uint64_t hash = hash64(&number, sizeof number);
    return column->places && column->seen[place_of(column->seen, column->places, hash + !hash)];
}

static void note_number(const struct profile *profile, struct column_profile *column,
                        double number) {
    column->least = column->cells ? fmin(column->least, number) : number;
    column->most = column->cells ? fmax(column->most, number) : number;
    column->whole = (column->whole || !column->cells) && number == rint(number);
    column->cells++;
    if (column->whole) {
        column->near += was_seen(column, number - 1) || was_seen(column, number + 1);
        /* Whether a whole number is a date as 20240506. */
        const uint32_t date = number >= 19000101 && number <= 21001231 ? (uint32_t)number : 0;
        const uint32_t month = date / 100 % 100, day = date % 100;
        column->compact += month >= 1 && month <= 12 && day >= 1 && day <= 31;
    }
    note_different(profile, column, hash64(&number, sizeof number));
}

/* Hours and minutes, with seconds or without. */
static bool is_clock(const char *text) {
    const size_t hours = strspn(text, "0123456789");
    size_t parts = 0;
    text += hours;
    while (*text == ':' && strspn(text + 1, "0123456789") == 2) {
        text += 3;
        parts++;
    }
    return hours && hours <= 2 && parts >= 1 && parts <= 2 && !*text;
}

static void note_odd(struct column_profile *column, const char *text, uint64_t hash) {
    uint32_t i = 0;
    column->odd_cells++;
    if (!column->odd)
        column->odd = memory_new(PROFILE_ODD_MAX, sizeof *column->odd);
    while (i < column->odd_count && column->odd[i].hash != hash)
        i++;
    if (i == PROFILE_ODD_MAX)
        return;
    struct odd_text *odd = &column->odd[i];
    if (i == column->odd_count) {
        column->odd_count++;
        odd->hash = hash;
        if (strlen(text) < sizeof odd->text)
            snprintf(odd->text, sizeof odd->text, "%s", text);
    }
    odd->cells++;
}

/* Some texts are numbers, or amounts, and others are not. */
static void note_amount(struct column_profile *column, const char *text, uint64_t hash) {
    double number;
    const bool point = number_of_amount(text, '.', &number);
    const bool comma = number_of_amount(text, ',', &number);
    if (number_of_text(text, &number))
        column->numbers++;
    column->points += point;
    column->commas += comma;
    column->only_points += point && !comma;
    column->only_commas += comma && !point;
    column->plain_commas += number_has_decimal_comma(text);
    if (!point && !comma) {
        note_odd(column, text, hash);
        return;
    }
    const bool plain_comma = number_has_decimal_comma(text);
    const bool by_points = point && text[strspn(text, "0123456789+-. eE")];
    const bool by_commas = comma && !plain_comma && text[strspn(text, "0123456789+- ")];
    column->formatted_points += by_points;
    column->formatted_commas += by_commas;
    const bool better = !plain_comma && number_has_decimal_comma(column->amount);
    if ((by_points || by_commas) && (!*column->amount || better))
        snprintf(column->amount, sizeof column->amount, "%s", text);
}

static void note_text(const struct profile *profile, struct column_profile *column,
                      const char *text) {
    const uint64_t hash = hash64(text, strlen(text));
    uint64_t blanks = 0;
    for (const char *p = text; (p = strchr(p, ' ')); p++)
        blanks++;
    column->words += ((double)blanks - column->words) / (double)++column->cells;
    if (column->cells == 1) {
        column->dates = DATE_FORMATS_ALL;
        snprintf(column->unit, sizeof column->unit, "%s", number_unit(text));
    }
    uint32_t formats = DATE_FORMATS_ALL;
    date_formats_narrow(text, &formats);
    column->dates &= formats;
    if (date_formats_first(formats))
        column->dated++;
    else if (!*column->undated)
        snprintf(column->undated, sizeof column->undated, "%s", text);
    if (number_is_formatted(text, column->unit)) {
        /* If numbers have a decimal comma, those with other signs as well are the better examples.
         */
        if (!column->formatted++ ||
            (number_has_decimal_comma(column->example) && !number_has_decimal_comma(text)))
            snprintf(column->example, sizeof column->example, "%s", text);
    }
    column->times_of_day += is_clock(text);
    note_amount(column, text, hash);
    column->longest = strlen(text) > column->longest ? strlen(text) : column->longest;
    column->foreign = column->foreign || !text_is_utf8(text);
    note_different(profile, column, hash);
}

static void note_value(struct profile *profile, const struct source_rows *rows, uint32_t row,
                       uint64_t i) {
    uint64_t at = rows->start[row] + i;
    uint32_t number = source_row_column(rows, row, i);
    const struct source_origin *origin = rows->origin ? &rows->origin[at] : NULL;
    if (number >= profile->columns)
        return;
    if (!origin || origin->role == ROLE_NUMBER)
        note_number(profile, &profile->column[number], rows->value[at]);
    else if (origin->role == ROLE_VALUE)
        note_text(profile, &profile->column[number], origin->text);
}

static void note_label(struct profile *profile, double number, const char *text) {
    uint32_t i = 0;
    if (text)
        note_text(profile, &profile->labels, text);
    else
        note_number(profile, &profile->labels, number);
    profile->texts |= text != NULL;
    while (i < profile->label_count &&
           (text ? !profile->label[i].text || strcmp(profile->label[i].text, text) != 0
                 : profile->label[i].text || profile->label[i].number != number))
        i++;
    if (i == PROFILE_LABELS_MAX)
        return;
    if (i == profile->label_count)
        profile->label[profile->label_count++] = (struct label_profile){
            .text = text ? memory_copy_string(text) : NULL, .number = text ? NAN : number};
    profile->label[i].rows++;
}

static int take(void *context, const struct source_rows *rows) {
    struct profile *profile = context;
    if (!profile->column && profile->report.table) {
        profile->columns = profile->report.table->columns;
        profile->different_max = different_max(profile->columns);
        profile->column = memory_new(profile->columns, sizeof *profile->column);
    }
    for (uint32_t row = 0; row < rows->count; row++) {
        const char *text = rows->label_text ? rows->label_text[row] : NULL;
        for (uint64_t i = 0; profile->column && i < rows->start[row + 1] - rows->start[row]; i++)
            note_value(profile, rows, row, i);
        if (text || !isnan(rows->label[row]))
            note_label(profile, rows->label[row], text);
        else
            profile->unlabelled++;
    }
    return 0;
}

int profile_read(const char *path, const struct source_options *options, unsigned threads,
                 struct profile *profile) {
    *profile = (struct profile){.different_max = PROFILE_DIFFERENT_MAX};
    return source_read(path, options, threads, take, profile, &profile->report);
}

void profile_release(struct profile *profile) {
    for (uint32_t i = 0; i < profile->columns; i++) {
        free(profile->column[i].seen);
        free(profile->column[i].odd);
    }
    for (uint32_t i = 0; i < profile->label_count; i++)
        free(profile->label[i].text);
    free(profile->column);
    free(profile->labels.seen);
    free(profile->labels.odd);
    source_report_release(&profile->report);
    *profile = (struct profile){.unlabelled = 0};
}

#include "data/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "data/date.h"
#include "data/number.h"

/* Places for the hashes of a column, so many that they are never all in use. */
#define SEEN_PLACES (UINT32_C(1) << 14)

static void note_different(struct column_profile *column, uint64_t hash) {
    if (column->different >= PROFILE_DIFFERENT_MAX)
        return;
    if (!column->seen)
        column->seen = memory_new(SEEN_PLACES, sizeof *column->seen);
    hash += !hash; /* 0 is a free place */
    uint32_t place = (uint32_t)(hash % SEEN_PLACES);
    while (column->seen[place] && column->seen[place] != hash)
        place = (place + 1) % SEEN_PLACES;
    column->different += !column->seen[place];
    column->seen[place] = hash;
}

static void note_number(struct column_profile *column, double number) {
    column->least = column->cells ? fmin(column->least, number) : number;
    column->most = column->cells ? fmax(column->most, number) : number;
    column->whole = (column->whole || !column->cells) && number == rint(number);
    column->cells++;
    note_different(column, hash64(&number, sizeof number));
}

static void note_date(struct column_profile *column, const char *text) {
    uint32_t formats = DATE_FORMATS_ALL;
    date_formats_narrow(text, &formats);
    column->dates &= formats;
    if (date_formats_first(formats))
        column->dated++;
    else if (!*column->undated)
        snprintf(column->undated, sizeof column->undated, "%s", text);
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

/* Some texts are numbers, and others are not. */
static void note_odd(struct column_profile *column, const char *text, uint64_t hash) {
    double number;
    uint32_t i = 0;
    if (number_of_text(text, &number)) {
        column->numbers++;
        return;
    }
    while (i < column->odd_count && column->odd[i] != hash)
        i++;
    if (i < column->odd_count || i == PROFILE_ODD_MAX)
        return;
    column->odd[column->odd_count++] = hash;
    if (!i)
        snprintf(column->odd_example, sizeof column->odd_example, "%s", text);
}

/* Of numbers with a decimal comma, those with other signs as well are the better examples. */
static void note_dressed(struct column_profile *column, const char *text) {
    if (!column->dressed++ ||
        (number_has_decimal_comma(column->example) && !number_has_decimal_comma(text)))
        snprintf(column->example, sizeof column->example, "%s", text);
}

static void note_text(struct column_profile *column, const char *text) {
    const uint64_t hash = hash64(text, strlen(text));
    uint64_t blanks = 0;
    for (const char *p = text; (p = strchr(p, ' ')); p++)
        blanks++;
    column->words += ((double)blanks - column->words) / (double)++column->cells;
    if (column->cells == 1) {
        column->dates = DATE_FORMATS_ALL;
        snprintf(column->unit, sizeof column->unit, "%s", number_unit(text));
    }
    note_date(column, text);
    if (number_is_dressed(text, column->unit))
        note_dressed(column, text);
    column->clocks += is_clock(text);
    note_odd(column, text, hash);
    note_different(column, hash);
}

static void note_value(struct profile *profile, const struct source_rows *rows, uint32_t row,
                       uint64_t i) {
    uint64_t at = rows->start[row] + i;
    uint32_t number = source_row_column(rows, row, i);
    const struct source_origin *origin = rows->origin ? &rows->origin[at] : NULL;
    if (number >= profile->columns)
        return;
    if (!origin || origin->role == ROLE_NUMBER)
        note_number(&profile->column[number], rows->value[at]);
    else if (origin->role == ROLE_VALUE)
        note_text(&profile->column[number], origin->text);
}

static void note_label(struct profile *profile, double number, const char *text) {
    uint32_t i = 0;
    if (text)
        note_text(&profile->labels, text);
    else
        note_number(&profile->labels, number);
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
    *profile = (struct profile){.unlabelled = 0};
    return source_read(path, options, threads, take, profile, &profile->report);
}

void profile_release(struct profile *profile) {
    for (uint32_t i = 0; i < profile->columns; i++)
        free(profile->column[i].seen);
    for (uint32_t i = 0; i < profile->label_count; i++)
        free(profile->label[i].text);
    free(profile->column);
    free(profile->labels.seen);
    source_report_release(&profile->report);
    *profile = (struct profile){.unlabelled = 0};
}

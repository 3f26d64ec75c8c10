/* Columns of dates: what features are made of is columns of the table after those of the file, a
 * part of the date each. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/csv/table_row.h"
#include "data/csv/layout.h"
#include "data/text/date.h"

/* ---- the table ---- */

/* The column that has this part of a date: a new one, or one whose number is kept for it. */
static uint32_t place_part(struct table *table, uint32_t date, enum date_part part) {
    assert(date < table->columns && table->column[date].kind == COLUMN_DATE);
    char *name = table->column[date].name
                     ? memory_format("%s.%s", table->column[date].name, date_part_names[part])
                     : NULL;
    uint32_t i = date + 1;
    while (i < table->columns &&
           !(name && table_lacks(table, i) && !strcmp(table->column[i].name, name)))
        i++;
    if (i == table->columns) {
        table->column = memory_resize(table->column, ++table->columns, sizeof *table->column);
        table->column[i] = (struct table_column){.place = COLUMN_NOWHERE, .mean = NAN};
    }
    free(table->column[i].name);
    table->column[i].name = name;
    return i;
}

static bool has_part(const struct table *table, uint32_t date, enum date_part part) {
    for (uint32_t i = date + 1; i < table->columns; i++)
        if (table->column[i].is_part && table->column[i].date == date &&
            table->column[i].part == part)
            return true;
    return false;
}

void csv_add_date_parts(struct table *table) {
    for (uint32_t date = 0; date < table->columns; date++)
        for (enum date_part part = 0; part < DATE_PARTS && table->column[date].kind == COLUMN_DATE;
             part++) {
            if (has_part(table, date, part))
                continue;
            uint32_t place = place_part(table, date, part);
            struct table_column *column = &table->column[place];
            assert(place > date);
            column->kind = date_part_is_number(part) ? COLUMN_NUMBER : COLUMN_CATEGORY;
            column->is_part = true;
            column->date = date;
            column->part = part;
        }
}

/* ---- the file ---- */

void csv_place_dates(struct format *format) {
    const struct table *table = format->table;
    for (uint32_t i = 0; i < format->columns; i++) {
        struct csv_column *column = &format->column[i];
        if (column->kind != COLUMN_DATE)
            continue;
        column->part = memory_new(DATE_PARTS, sizeof *column->part);
        for (uint32_t k = 0; k < table->columns; k++)
            if (table->column[k].is_part && table->column[k].date == column->number)
                column->part[table->column[k].part].number = k;
    }
}

/* ---- rows ---- */

static const char *const hours[] = {"0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",
                                    "8",  "9",  "10", "11", "12", "13", "14", "15",
                                    "16", "17", "18", "19", "20", "21", "22", "23"};
static const char *const weekdays[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

/* The text of a part that is a category; NULL: the date has none. */
static const char *text_of(const struct date *date, enum date_part part) {
    assert(date->month >= 1 && date->month <= 12 && date->hour < 24);
    if (part == DATE_MONTH)
        return hours[date->month]; /* they are the same numbers */
    if (part == DATE_WEEKDAY)
        return weekdays[date_weekday(date)];
    return date->has_time ? hours[date->hour] : NULL;
}

static void add_category(struct batch *batch, uint32_t column, enum feature_role role,
                         const char *text) {
    struct source_origin origin = {.text = text, .column = column, .role = role};
    uint64_t id = table_feature(column, role, text, text ? strlen(text) : 0);
    batch_add_text(batch, id, 1, &origin);
}

void csv_put_date(const struct format *format, struct batch *batch, uint32_t column,
                  const struct date *date) {
    const struct csv_part *parts = format->column[column].part;
    double *value = batch->value + batch->value_count;
    assert(parts); /* csv_place_dates() has found them */
    for (enum date_part part = 0; part < DATE_PARTS; part++) {
        const char *text;
        if (part == DATE_YEAR)
            value[parts[part].place] = date ? (double)date->year : (double)NAN;
        else if (part == DATE_DAYS)
            value[parts[part].place] = date ? date_days(date) : (double)NAN;
        else if (!date)
            add_category(batch, parts[part].number, ROLE_MISSING, NULL);
        else if ((text = text_of(date, part)))
            add_category(batch, parts[part].number, ROLE_VALUE, text);
    }
}

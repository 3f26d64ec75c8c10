/* What a file of data looks like: how many different values its columns have, and what its labels
 * are. For proposing a job; what is trained on does not depend on it. */
#ifndef DML_DATA_PROFILE_H
#define DML_DATA_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source/source.h"

/* From so many on different values of a column are not counted; in tables of very many columns
 * counting ends earlier (struct profile), so that memory stays in proportion to the file. */
#define PROFILE_DIFFERENT_MAX 5000u
#define PROFILE_LABELS_MAX 101u
#define PROFILE_ODD_MAX 8u

/* A text among numbers that is none. */
struct odd_text {
    uint64_t hash, cells;
    char text[24]; /* "" if it is longer */
};

/* A column of a table, or the labels. */
struct column_profile {
    uint64_t cells;          /* that are not missing */
    uint64_t different;      /* values among them, up to `different_max` of the profile */
    double least, most;      /* of numbers */
    bool whole;              /* they are whole numbers */
    uint64_t near;           /* whole numbers whose neighbour, one more or less, was there before */
    uint64_t compact;        /* whole numbers that are dates as 20240506 */
    double words;            /* of texts: in the mean, so many follow a blank */
    uint64_t longest;        /* bytes of a text; of a category as many as it may have at most */
    bool foreign;            /* some text is not UTF-8 */
    uint32_t dates;          /* the formats in which all texts are dates: data/text/date.h */
    uint64_t dated;          /* texts that are dates of some format */
    char undated[24];        /* the first that is none */
    uint64_t formatted;      /* texts that would be numbers without "$", "%", blanks, commas, or the
                              unit that the first one has */
    char example[24];        /* the first of them that is more than a number with a decimal comma */
    char unit[8];            /* "" if the first text has none */
    uint64_t times_of_day;   /* texts such as 12:05 or 7:30:15 */
    uint64_t numbers;        /* texts that are numbers */
    uint64_t points, commas; /* texts that are amounts with a decimal point, and with a comma */
    uint64_t only_points, only_commas;           /* of these, those that are none the other way */
    uint64_t plain_commas;                       /* texts of digits and one comma */
    uint64_t formatted_points, formatted_commas; /* with more than digits, the point and blanks */
    char amount[24];      /* the first of them, preferably with other signs */
    uint32_t odd_count;   /* different texts that are neither, up to PROFILE_ODD_MAX */
    uint64_t odd_cells;   /* texts that are neither */
    struct odd_text *odd; /* PROFILE_ODD_MAX, once there is one; owned */

    uint64_t *seen;  /* the hashes of different values; a table with open addresses; owned */
    uint32_t places; /* how many hashes the table has room for: a power of two, or 0 */
};

struct label_profile {
    char *text;    /* owned; NULL for a number */
    double number; /* else NaN */
    uint64_t rows;
};

struct profile {
    struct source_report report; /* of reading the file */
    uint32_t columns;            /* of a table; else 0 */
    uint32_t different_max;      /* from so many on different values are not counted */
    struct column_profile *column;
    struct column_profile labels;
    struct label_profile label[PROFILE_LABELS_MAX]; /* the first different ones; */
    uint32_t label_count;                           /* so many of them */
    uint64_t unlabelled;
    bool texts; /* some labels are no numbers */
};

/* Reads the whole file. Release the profile, also after an error. Errors of source_read(). */
int profile_read(const char *path, const struct source_options *options, unsigned threads,
                 struct profile *profile);
void profile_release(struct profile *profile);

#endif

/* How a table is written as text: the options of CSV, and the decimal point of all tables. */
#ifndef DML_DATA_TEXT_SYNTAX_H
#define DML_DATA_TEXT_SYNTAX_H

enum csv_header { CSV_HEADER_AUTO, CSV_HEADER_YES, CSV_HEADER_NO };

/* What quotes in CSV are. AUTO: they enclose cells, as DOUBLE says, but not cells that take in
 * whole rows, as one does that begins at a stray quote. NONE: characters like others. */
enum csv_quote { CSV_QUOTE_AUTO, CSV_QUOTE_DOUBLE, CSV_QUOTE_NONE, CSV_QUOTES };

struct text_syntax {
    enum csv_header header;
    const char *delimiter; /* one character, or "tab"; NULL: found from the first line */
    enum csv_quote quote;
    const char *comment; /* the character that begins lines of comment; NULL: there are none */
    const char *decimal; /* "," where numbers have a comma for their point. NULL: a point, and texts
                            that look like such numbers are refused */
};

#endif

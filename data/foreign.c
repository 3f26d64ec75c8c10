#include "data/foreign.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

#define BY_PANDAS(read)                                                                            \
    "python3 -c \"import pandas; pandas." read "('FILE').to_csv('FILE.csv', index=False)\""
#define BY_ICONV "iconv -f UTF-16 -t UTF-8 FILE > FILE.csv"

static const struct foreign {
    const char *bytes;
    size_t length;
    const char *name, *command;
} formats[] = {
    {"PAR1", 4, "Parquet", BY_PANDAS("read_parquet")},
    {"ARROW1", 6, "Arrow (Feather)", BY_PANDAS("read_feather")},
    {"FEA1", 4, "Feather", BY_PANDAS("read_feather")},
    {"\xff\xff\xff\xff", 4, "an Arrow stream",
     "python3 -c \"import pyarrow; "
     "pyarrow.ipc.open_stream('FILE').read_pandas().to_csv('FILE.csv', index=False)\""},
    {"ORC", 3, "ORC", BY_PANDAS("read_orc")},
    {"Obj\x01", 4, "Avro",
     "python3 -c \"import pandas, fastavro; "
     "pandas.DataFrame(fastavro.reader(open('FILE', 'rb'))).to_csv('FILE.csv', index=False)\""},
    {"\x89HDF\r\n", 6, "HDF5", BY_PANDAS("read_hdf")},
    {"\xd0\xcf\x11\xe0", 4, "an Excel workbook", BY_PANDAS("read_excel")},
    {"PK\x03\x04", 4, "a zip archive, as .npz files are, and .xlsx",
     "unzip FILE, and a workbook: " BY_PANDAS("read_excel")},
    {"SQLite format 3", 15, "an SQLite database",
     "sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > FILE.csv"},
    {"BZh", 3, "bzip2", "bunzip2 FILE"},
    {"\xfd"
     "7zXZ",
     5, "xz", "unxz FILE"},
    {"\x04\"M\x18", 4, "lz4", "unlz4 FILE"},
    {"\xff\xfe", 2, "text in UTF-16", BY_ICONV},
    {"\xfe\xff", 2, "text in UTF-16", BY_ICONV},
};

/* Some beginnings are of letters that a text may begin with. */
static bool is_text(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] < ' ' && !memchr("\t\r\n", bytes[i], 3))
            return false;
    return isalpha((unsigned char)bytes[0]);
}

/* The command with the file's name. */
static char *command_for(const char *command, const char *path) {
    char *text = memory_copy_string("");
    for (const char *at = command, *name; *at; at = name + strlen("FILE")) {
        name = strstr(at, "FILE");
        char *longer = name ? memory_format("%s%.*s%s", text, (int)(name - at), at, path)
                            : memory_format("%s%s", text, at);
        free(text);
        text = longer;
        if (!name)
            break;
    }
    return text;
}

static int refuse(const char *path, const struct foreign *format) {
    char *command = command_for(format->command, path);
    error_set(ERROR_DATA,
              "%s is %s, which is not read: give CSV, LIBSVM, IDX or .npy, plain or as .gz or "
              ".zst; this converts it: %s",
              path, format->name, command);
    free(command);
    return ERROR_DATA;
}

int foreign_check(const char *path, const void *bytes, size_t length) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (length >= formats[i].length && !memcmp(bytes, formats[i].bytes, formats[i].length) &&
            !is_text(bytes, length))
            return refuse(path, &formats[i]);
    return 0;
}

int foreign_check_path(const char *path) {
    size_t scheme = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+");
    if (scheme < 2 || strncmp(path + scheme, "://", 3) != 0)
        return 0;
    const char *get = !strncmp(path, "s3", 2)     ? "aws s3 cp %s -"
                      : !strncmp(path, "gs", 2)   ? "gsutil cat %s"
                      : !strncmp(path, "hdfs", 4) ? "hdfs dfs -cat %s"
                                                  : "curl -fsS %s";
    char command[512];
    snprintf(command, sizeof command, "%.*s%.200s%s", (int)strcspn(get, "%"), get, path,
             strchr(get, '%') + 2);
    return error_set(ERROR_DATA,
                     "%s is an address and no file: copy what is there first, or read it from "
                     "standard input: give - as the data, as in `%s | dml-coordinator ...`",
                     path, command);
}

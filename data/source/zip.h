/* Zip archives, as NumPy and SciPy write .npz files: members that are stored or deflated, also in
 * archives of 4 GiB and more. */
#ifndef DML_DATA_SOURCE_ZIP_H
#define DML_DATA_SOURCE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source/input.h"

#define ZIP_MEMBERS_MAX 64 /* a member more is an error: .npz files of matrices have about five */

struct zip {
    uint32_t count;
    struct zip_member {
        char *name; /* owned */
        struct input_member at;
    } member[ZIP_MEMBERS_MAX];
};

/* Whether a file that begins so is a zip archive whose first member is an array: an .npz file. */
bool zip_begins_with_array(const void *bytes, size_t length);

/* Reads the directory of the archive behind the descriptor. ERROR_DATA if it is damaged, or a
 * member is encrypted or compressed in another way. Release in any case. */
int zip_read(struct zip *zip, const char *path, int descriptor);
void zip_release(struct zip *zip);

/* NULL if there is none of that name. */
const struct input_member *zip_find(const struct zip *zip, const char *name);

#endif

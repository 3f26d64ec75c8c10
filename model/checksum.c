#include "model/checksum.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sha256.h"

static void hash_of(const void *data, size_t length, char text[SHA256_TEXT]) {
    struct sha256 *sha = sha256_new();
    sha256_add(sha, data, length);
    sha256_finish(sha, text);
}

/* The hash of the content, not of its layout on the page: members are sorted, blanks are left out,
 * numbers have 17 digits. The member that holds this hash is not part of it. */
static void hash_json(const json_t *all, char text[SHA256_TEXT]) {
    json_t *rest = json_copy((json_t *)all);
    json_object_del(rest, CHECKSUM_JSON);
    char *canonical = json_dumps(rest, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17));
    hash_of(canonical, strlen(canonical), text);
    free(canonical);
    json_decref(rest);
}

void checksum_add(json_t *all, const void *tensors, size_t length) {
    char text[SHA256_TEXT];
    hash_of(tensors, length, text);
    json_object_set_new(all, CHECKSUM_TENSORS, json_string(text));
    hash_json(all, text);
    json_object_set_new(all, CHECKSUM_JSON, json_string(text));
}

/* Files that were written before there were checksums, or edited by hand, have no such member. */
static bool differs(const json_t *all, const char *member, const char *found) {
    const json_t *stored = json_object_get(all, member);
    return stored && (!json_is_string(stored) || strcmp(json_string_value(stored), found));
}

int checksum_check(const json_t *all, const char *json_path, const void *tensors, size_t length,
                   const char *tensors_path) {
    char text[SHA256_TEXT];
    hash_json(all, text);
    if (differs(all, CHECKSUM_JSON, text))
        return error_set(ERROR_DATA,
                         "%s is damaged, or was edited: it does not have the hash that it gives as "
                         "`" CHECKSUM_JSON "`; if it was edited, take that member out",
                         json_path);
    if (!json_object_get(all, CHECKSUM_TENSORS))
        return 0;
    hash_of(tensors, length, text);
    if (differs(all, CHECKSUM_TENSORS, text))
        return error_set(
            ERROR_DATA,
            "%s is damaged, or was changed: it does not have the hash in %s; if it was "
            "changed, take `" CHECKSUM_TENSORS "`, `" CHECKSUM_JSON
            "` and `model_sha256` out there",
            tensors_path, json_path);
    return 0;
}

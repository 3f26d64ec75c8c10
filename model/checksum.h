/* Checksums of a model's two files. They show damage to anything that scoring reads. Inside model/
 * only. */
#ifndef DML_MODEL_CHECKSUM_H
#define DML_MODEL_CHECKSUM_H

#include <jansson.h>
#include <stddef.h>

/* Members of model.json: the SHA-256 of the whole model.safetensors, and that of model.json. */
#define CHECKSUM_TENSORS "tensors_sha256"
#define CHECKSUM_JSON "json_sha256"

/* Puts both members into `all`; they replace members of these names. */
void checksum_add(json_t *all, const void *tensors, size_t length);

/* ERROR_DATA if a member is present and differs from the hash of what was read. The paths are for
 * the message. */
int checksum_check(const json_t *all, const char *json_path, const void *tensors, size_t length,
                   const char *tensors_path);

#endif

#include "base/sha256.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

struct sha256 {
    EVP_MD_CTX *context;
};

struct sha256 *sha256_new(void) {
    struct sha256 *sha = memory_new(1, sizeof *sha);
    sha->context = EVP_MD_CTX_new();
    if (!sha->context || !EVP_DigestInit_ex(sha->context, EVP_sha256(), NULL))
        abort();
    return sha;
}

void sha256_add(struct sha256 *sha, const void *data, size_t length) {
    EVP_DigestUpdate(sha->context, data, length);
}

void sha256_finish(struct sha256 *sha, char text[SHA256_TEXT]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_DigestFinal_ex(sha->context, digest, &length);
    for (unsigned i = 0; i < length; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    EVP_MD_CTX_free(sha->context);
    free(sha);
}

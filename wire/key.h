/* The key that all programs of a cluster share: a file of 64 hexadecimal digits and a newline, that
 * only its owner may read. Links between hosts are encrypted and authenticated with it
 * (wire/channel.h). */
#ifndef DML_WIRE_KEY_H
#define DML_WIRE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#define KEY_BYTES 32
#define KEY_NAME_BYTES 17
#define KEY_TEXT_BYTES (2 * KEY_BYTES + 1) /* its digits and the newline */

struct key {
    uint8_t secret[KEY_BYTES];
    /* Names the key without giving it away: a part of a hash of the secret, in hexadecimal. Sent
     * in clear, and used in messages. */
    char name[KEY_NAME_BYTES];
};

/* Reads a key file. ERROR_PERMISSION if it belongs to another user or others may read it;
 * ERROR_DATA if it holds no key; ERROR_IO. The text says what to do. */
int key_read(const char *path, struct key *key);

/* Reads STATE/key; makes it first if it is missing, and then sets *made. The file is there whole or
 * not at all, also after a power cut; if two processes make it at the same time, both get the same
 * key. As key_read(), and ERROR_CREATE. */
int key_ensure(const char *state, struct key *key, bool *made);

/* The text of a key file. Overwrite it after use. */
void key_text(const struct key *key, char text[KEY_TEXT_BYTES + 1]);

/* Reads that text from a pipe, and no byte beyond it. ERROR_UNAVAILABLE if none comes: the other
 * end closes before, or says nothing for so long. ERROR_DATA if what comes is no key; ERROR_IO. */
int key_receive(int descriptor, int timeout_ms, struct key *key);

/* STATE/key. Free it. */
char *key_path(const char *state);

/* Overwrites the secret. */
void key_forget(struct key *key);

#endif

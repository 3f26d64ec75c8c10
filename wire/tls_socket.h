/* The socket below OpenSSL. OpenSSL writes into memory that always takes it: so a record is never
 * half-written when it returns, and nothing has to be called again with the same arguments. For
 * wire/tls.c. */
#ifndef DML_WIRE_TLS_SOCKET_H
#define DML_WIRE_TLS_SOCKET_H

#include <openssl/bio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls_socket {
    int descriptor;   /* not owned */
    bool starved;     /* it had no more at the last read; the reader sets it back */
    bool ended;       /* it was closed, or failed */
    int broken;       /* errno of the failure, or 0 */
    size_t allowance; /* bytes that it may still receive; SIZE_MAX: no limit */
    uint8_t first[4]; /* the first bytes that came, whatever OpenSSL makes of them */
    unsigned first_count;
    uint8_t *unsent; /* encrypted; from unsent_at to unsent_end */
    size_t unsent_at, unsent_end, unsent_capacity;
};

/* After `allowance` bytes the socket looks as if it had been closed. */
void tls_socket_init(struct tls_socket *socket, int descriptor, size_t allowance);
void tls_socket_release(struct tls_socket *socket);

/* What OpenSSL reads from and writes to; SSL_free() frees it. The socket must stay in its place. */
BIO *tls_socket_bio(struct tls_socket *socket);

/* Queues bytes that do not come from OpenSSL. */
void tls_socket_append(struct tls_socket *socket, const void *data, size_t bytes);

/* Offers to the socket what is queued: 0, or −1 and errno. */
int tls_socket_flush(struct tls_socket *socket);
size_t tls_socket_unsent(const struct tls_socket *socket);

#endif

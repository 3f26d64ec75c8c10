#define _GNU_SOURCE
#include "wire/tls_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"

void tls_socket_init(struct tls_socket *socket, int descriptor, size_t allowance) {
    *socket = (struct tls_socket){.descriptor = descriptor, .allowance = allowance};
}

void tls_socket_release(struct tls_socket *socket) {
    free(socket->unsent);
    *socket = (struct tls_socket){.descriptor = -1};
}

void tls_socket_append(struct tls_socket *socket, const void *data, size_t bytes) {
    if (socket->unsent_end + bytes > socket->unsent_capacity && socket->unsent_at) {
        size_t kept = tls_socket_unsent(socket);
        memmove(socket->unsent, socket->unsent + socket->unsent_at, kept);
        socket->unsent_at = 0;
        socket->unsent_end = kept;
    }
    if (socket->unsent_end + bytes > socket->unsent_capacity) {
        socket->unsent_capacity = 2 * socket->unsent_end + bytes;
        socket->unsent = memory_resize(socket->unsent, socket->unsent_capacity, 1);
    }
    memcpy(socket->unsent + socket->unsent_end, data, bytes);
    socket->unsent_end += bytes;
}

int tls_socket_flush(struct tls_socket *socket) {
    while (socket->unsent_at < socket->unsent_end) {
        ssize_t sent = send(socket->descriptor, socket->unsent + socket->unsent_at,
                            tls_socket_unsent(socket), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
            return 0;
        if (sent < 0)
            return -1;
        socket->unsent_at += (size_t)sent;
    }
    socket->unsent_at = socket->unsent_end = 0;
    return 0;
}

size_t tls_socket_unsent(const struct tls_socket *socket) {
    return socket->unsent_end - socket->unsent_at;
}

/* ---- what OpenSSL calls ---- */

static int write_out(BIO *bio, const char *data, int length) {
    tls_socket_append(BIO_get_data(bio), data, (size_t)length);
    return length;
}

static void note_first(struct tls_socket *socket, const char *data, ssize_t length) {
    for (ssize_t i = 0; i < length && socket->first_count < sizeof socket->first; i++)
        socket->first[socket->first_count++] = (uint8_t)data[i];
}

static int read_in(BIO *bio, char *data, int length) {
    struct tls_socket *socket = BIO_get_data(bio);
    size_t most = (size_t)length < socket->allowance ? (size_t)length : socket->allowance;
    ssize_t got = most ? recv(socket->descriptor, data, most, MSG_DONTWAIT) : 0;
    BIO_clear_retry_flags(bio);
    if (got > 0) {
        if (socket->allowance != SIZE_MAX)
            socket->allowance -= (size_t)got;
        note_first(socket, data, got);
        return (int)got;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        socket->starved = true;
        BIO_set_retry_read(bio);
        return -1;
    }
    socket->ended = true;
    socket->broken = got ? errno : 0;
    return 0;
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)number, (void)pointer;
    const struct tls_socket *socket = BIO_get_data(bio);
    switch (command) {
    case BIO_CTRL_FLUSH:
        return 1;
    case BIO_CTRL_EOF:
        return socket->ended;
    default:
        return 0;
    }
}

/* Made once, and kept until the process ends. */
static const BIO_METHOD *bio_method(void) {
    static BIO_METHOD *method;
    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "dml");
        if (!method)
            abort();
        BIO_meth_set_write(method, write_out);
        BIO_meth_set_read(method, read_in);
        BIO_meth_set_ctrl(method, control);
    }
    return method;
}

BIO *tls_socket_bio(struct tls_socket *socket) {
    BIO *bio = BIO_new(bio_method());
    if (!bio)
        abort();
    BIO_set_data(bio, socket);
    BIO_set_init(bio, 1);
    return bio;
}

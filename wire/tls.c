#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/channel.h"

/* The identity is this and the name of the key. */
#define IDENTITY "dml "
#define CIPHER "TLS_AES_128_GCM_SHA256"

enum {
    RECORD_BYTES = 16384,         /* of text in a record, at most */
    UNSENT_KEPT_BYTES = 4096,     /* room for what waits that a connection keeps when it is idle */
    UNSENT_BYTES = 64 << 10,      /* no more text is encrypted while so much waits */
    RECEIVED_BYTES = 64 << 10,    /* read at once */
    TURN_BYTES = 1 << 20,         /* received or sent before other connections have their turn */
    HANDSHAKE_BYTES = 16384,      /* a stranger may send; a handshake takes some hundred */
    KEY_UPDATES = 8,              /* that the other end may make too often */
    SESSION_SECONDS = 0x7fffffff, /* 68 years: a key does not age, and clocks are set */
};

static_assert((int)UNSENT_BYTES >= (int)RECORD_BYTES && (int)TURN_BYTES >= (int)RECORD_BYTES,
              "a whole record can be queued, and be sent in a turn");

uint64_t tls_rekey_bytes = UINT64_C(1) << 36;

/* ---- the socket below OpenSSL ----
 *
 * OpenSSL writes into memory that always takes it: so a record is never half-written when it
 * returns, and nothing has to be called again with the same arguments. */

struct tls_socket {
    int descriptor;   /* not owned */
    bool starved;     /* it had no more at the last read; the reader sets it back */
    bool ended;       /* it was closed, or failed */
    int broken;       /* errno of the failure, or 0 */
    size_t allowance; /* bytes that it may still receive, or SIZE_MAX; at 0 it looks closed */
    uint8_t first[2]; /* the first bytes that came, whatever OpenSSL makes of them */
    unsigned first_count;
    uint8_t *unsent; /* encrypted; from unsent_at to unsent_end */
    size_t unsent_at, unsent_end, unsent_capacity;
};

static size_t tls_socket_unsent(const struct tls_socket *socket) {
    assert(socket->unsent_at <= socket->unsent_end);
    assert(socket->unsent_end <= socket->unsent_capacity);
    return socket->unsent_end - socket->unsent_at;
}

/* All was sent. What bulk took is given back: of many connections few send any at a time. */
static void forget_sent(struct tls_socket *socket) {
    socket->unsent_at = socket->unsent_end = 0;
    if (socket->unsent_capacity <= UNSENT_KEPT_BYTES)
        return;
    free(socket->unsent);
    socket->unsent = NULL;
    socket->unsent_capacity = 0;
}

/* Offers to the socket what is queued: 0, or −1 and errno. */
static int tls_socket_flush(struct tls_socket *socket) {
    while (socket->unsent_at < socket->unsent_end) {
        ssize_t sent = send(socket->descriptor, socket->unsent + socket->unsent_at,
                            tls_socket_unsent(socket), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
            return 0;
        if (sent < 0)
            return -1;
        assert((size_t)sent <= tls_socket_unsent(socket));
        socket->unsent_at += (size_t)sent;
    }
    forget_sent(socket);
    return 0;
}

/* OpenSSL calls the next three. This one queues encrypted bytes. */
static int write_out(BIO *bio, const char *data, int length) {
    struct tls_socket *socket = BIO_get_data(bio);
    assert(length >= 0);
    size_t end = socket->unsent_end + (size_t)length;
    if (end > socket->unsent_capacity && socket->unsent_at) {
        size_t kept = tls_socket_unsent(socket);
        memmove(socket->unsent, socket->unsent + socket->unsent_at, kept);
        socket->unsent_at = 0;
        socket->unsent_end = kept;
        end = kept + (size_t)length;
    }
    if (end > socket->unsent_capacity) {
        socket->unsent_capacity = 2 * end;
        socket->unsent = memory_resize(socket->unsent, socket->unsent_capacity, 1);
    }
    memcpy(socket->unsent + socket->unsent_end, data, (size_t)length);
    socket->unsent_end = end;
    return length;
}

static int read_in(BIO *bio, char *data, int length) {
    struct tls_socket *socket = BIO_get_data(bio);
    size_t most = (size_t)length < socket->allowance ? (size_t)length : socket->allowance;
    ssize_t got = most ? recv(socket->descriptor, data, most, MSG_DONTWAIT) : 0;
    BIO_clear_retry_flags(bio);
    assert(got <= (ssize_t)most);
    if (got > 0) {
        if (socket->allowance != SIZE_MAX)
            socket->allowance -= (size_t)got;
        for (ssize_t i = 0; i < got && socket->first_count < sizeof socket->first; i++)
            socket->first[socket->first_count++] = (uint8_t)data[i];
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

/* ---- the key ---- */

struct tls {
    struct key key;
    char identity[sizeof IDENTITY + KEY_NAME_BYTES];
    SSL_CTX *server, *client;
    SSL_SESSION *session; /* the key in the form that OpenSSL wants */
};

struct tls_stream {
    const struct tls *tls;
    SSL *ssl;
    struct tls_socket socket;
    bool done; /* the handshake */
    enum frame_error error;
    char other_key[KEY_NAME_BYTES];
    uint64_t received, sent, rekeyed; /* bytes of text; what was sent when the keys were changed */
    uint64_t key_updates;             /* of the other end */
};

static struct tls_stream *stream_of(const SSL *ssl) {
    struct tls_stream *stream = SSL_get_app_data(ssl);
    assert(stream && stream->ssl == ssl);
    return stream;
}

/* The server's: whose key is it? Answers 1 without a session if it is not ours: then the handshake
 * finds no way to go on, and an alert (handshake_failure) tells the client. */
static int find_session(SSL *ssl, const unsigned char *identity, size_t length,
                        SSL_SESSION **session) {
    struct tls_stream *stream = stream_of(ssl);
    const struct tls *tls = stream->tls;
    size_t mark = strlen(IDENTITY), own = strlen(tls->identity);
    *session = NULL;
    if (length == own && !memcmp(identity, tls->identity, own)) {
        SSL_SESSION_up_ref(tls->session);
        *session = tls->session;
        stream->error = FRAME_FINE; /* an identity before this one may have set it */
    } else if (length == own && !memcmp(identity, IDENTITY, mark)) {
        stream->error = FRAME_TLS_OTHER_KEY;
        for (size_t i = 0; i < KEY_NAME_BYTES - 1; i++) /* a stranger may have sent anything */
            stream->other_key[i] =
                strchr("0123456789abcdef", identity[mark + i]) ? (char)identity[mark + i] : '?';
    }
    return 1;
}

/* The client's: it has one key, and names it. */
static int use_session(SSL *ssl, const EVP_MD *digest, const unsigned char **identity,
                       size_t *length, SSL_SESSION **session) {
    const struct tls *tls = stream_of(ssl)->tls;
    (void)digest; /* that of our only cipher, or NULL */
    SSL_SESSION_up_ref(tls->session);
    *session = tls->session;
    *identity = (const unsigned char *)tls->identity;
    *length = strlen(tls->identity);
    return 1;
}

/* After the handshake only KeyUpdate may come. Each makes work, so there may be one for each
 * gigabyte, and a few more. */
static void watch(int sent, int version, int type, const void *data, size_t length, SSL *ssl,
                  void *context) {
    struct tls_stream *stream = context;
    (void)version, (void)data, (void)ssl;
    if (sent || type != SSL3_RT_HANDSHAKE || !stream->done || !length)
        return;
    stream->key_updates++;
    if (*(const uint8_t *)data != SSL3_MT_KEY_UPDATE ||
        stream->key_updates > KEY_UPDATES + (stream->received >> 30))
        stream->error = FRAME_TLS_FLOOD;
}

static SSL_CTX *make_context(const SSL_METHOD *method) {
    SSL_CTX *context = SSL_CTX_new(method);
    if (!context)
        return NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_recv_max_early_data(context, 0);
    SSL_CTX_set_default_read_buffer_len(context, RECEIVED_BYTES);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);    /* a flood of messages must not hold us */
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* while a connection is idle */
    if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) &&
        SSL_CTX_set_ciphersuites(context, CIPHER) && SSL_CTX_set1_groups_list(context, "X25519") &&
        SSL_CTX_set_num_tickets(context, 0))
        return context;
    SSL_CTX_free(context);
    return NULL;
}

/* OpenSSL refuses a session some minutes after it was made unless it is told otherwise. */
static SSL_SESSION *make_session(const struct key *key, SSL_CTX *context) {
    SSL *ssl = SSL_new(context);
    const SSL_CIPHER *cipher = ssl ? sk_SSL_CIPHER_value(SSL_get_ciphers(ssl), 0) : NULL;
    SSL_SESSION *session = SSL_SESSION_new();
    bool fine = cipher && session &&
                SSL_SESSION_set1_master_key(session, key->secret, sizeof key->secret) &&
                SSL_SESSION_set_cipher(session, cipher) &&
                SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
                SSL_SESSION_set_timeout(session, SESSION_SECONDS);
    SSL_free(ssl);
    if (fine)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

int tls_of_file(const char *path, struct tls **tls) {
    struct key key;
    int code = key_read(path, &key);
    if (!code)
        code = tls_new(&key, tls);
    key_forget(&key);
    return code;
}

int tls_new(const struct key *key, struct tls **made) {
    struct tls *tls = memory_new(1, sizeof *tls);
    tls->key = *key;
    snprintf(tls->identity, sizeof tls->identity, "%s%s", IDENTITY, key->name);
    assert(strlen(tls->identity) == strlen(IDENTITY) + KEY_NAME_BYTES - 1);
    tls->server = make_context(TLS_server_method());
    tls->client = make_context(TLS_client_method());
    if (tls->client) /* no certificate is trusted, so a server without the key cannot pass */
        SSL_CTX_set_verify(tls->client, SSL_VERIFY_PEER, NULL);
    tls->session = tls->client ? make_session(key, tls->client) : NULL;
    if (!tls->server || !tls->session) {
        const char *why = ERR_reason_error_string(ERR_peek_error());
        ERR_clear_error();
        tls_free(tls);
        return error_set(ERROR_UNAVAILABLE, "OpenSSL does not offer TLS 1.3 with %s: %s", CIPHER,
                         why ? why : "no reason");
    }
    SSL_CTX_set_psk_find_session_callback(tls->server, find_session);
    SSL_CTX_set_psk_use_session_callback(tls->client, use_session);
    *made = tls;
    return 0;
}

void tls_free(struct tls *tls) {
    if (!tls)
        return;
    SSL_SESSION_free(tls->session);
    SSL_CTX_free(tls->server);
    SSL_CTX_free(tls->client);
    key_forget(&tls->key);
    free(tls);
}

const char *tls_key_name(const struct tls *tls) {
    return tls->key.name;
}

/* ---- streams ---- */

struct tls_stream *tls_stream_new(const struct tls *tls, int descriptor, bool client) {
    struct tls_stream *stream = memory_new(1, sizeof *stream);
    assert(tls->server && tls->client && descriptor >= 0);
    stream->tls = tls;
    stream->ssl = SSL_new(client ? tls->client : tls->server);
    BIO *bio = BIO_new(bio_method());
    if (!stream->ssl || !bio) /* no memory */
        abort();
    stream->socket.descriptor = descriptor;
    stream->socket.allowance = HANDSHAKE_BYTES;
    BIO_set_data(bio, &stream->socket);
    BIO_set_init(bio, 1);
    SSL_set_bio(stream->ssl, bio, bio); /* SSL_free() frees it */
    SSL_set_app_data(stream->ssl, stream);
    SSL_set_msg_callback(stream->ssl, watch);
    SSL_set_msg_callback_arg(stream->ssl, stream);
    if (client)
        SSL_set_connect_state(stream->ssl);
    else
        SSL_set_accept_state(stream->ssl);
    return stream;
}

void tls_stream_free(struct tls_stream *stream) {
    if (!stream)
        return;
    ERR_clear_error();
    if (stream->done && !stream->error && !stream->socket.broken && SSL_shutdown(stream->ssl) >= 0)
        (void)tls_socket_flush(&stream->socket);
    ERR_clear_error();
    SSL_free(stream->ssl);
    free(stream->socket.unsent);
    free(stream);
}

bool tls_pending(const struct tls_stream *stream) {
    return !stream->error && !stream->socket.starved && !stream->socket.ended &&
           SSL_has_pending(stream->ssl);
}

size_t tls_unsent(const struct tls_stream *stream) {
    return tls_socket_unsent(&stream->socket);
}

int tls_flush(struct tls_stream *stream) {
    return tls_socket_flush(&stream->socket);
}

enum frame_error tls_error(const struct tls_stream *stream) {
    return stream->error;
}

const char *tls_other_key(const struct tls_stream *stream) {
    return stream->other_key;
}

/* ---- failures ---- */

/* What an alert of the other end says about us. */
static enum frame_error meaning_of_alert(int alert) {
    switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE: /* find_session() found none there */
        return FRAME_TLS_OTHER_KEY;
    case SSL_AD_ILLEGAL_PARAMETER:
    case SSL_AD_DECRYPT_ERROR:
        return FRAME_TLS_PROOF;
    case SSL_AD_PROTOCOL_VERSION:
        return FRAME_TLS_VERSION;
    case SSL_AD_BAD_RECORD_MAC:
        return FRAME_TLS_RECORD;
    default:
        return FRAME_TLS_ALERT;
    }
}

static enum frame_error meaning_of_reason(int reason) {
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return FRAME_TLS_VERSION;
    case SSL_R_BINDER_DOES_NOT_VERIFY:
        return FRAME_TLS_PROOF;
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
        return FRAME_TLS_RECORD;
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return FRAME_TLS_NO_KEY;
    default:
        return reason > SSL_AD_REASON_OFFSET ? meaning_of_alert(reason - SSL_AD_REASON_OFFSET)
                                             : FRAME_TLS_BROKEN;
    }
}

/* A record of TLS begins with its type, a handshake or an alert here, and 3. */
static enum frame_error meaning_of_first(const struct tls_stream *stream) {
    const uint8_t *first = stream->socket.first;
    bool tls = (first[0] == SSL3_RT_HANDSHAKE || first[0] == SSL3_RT_ALERT) &&
               (stream->socket.first_count < 2 || first[1] == SSL3_VERSION_MAJOR);
    return tls ? FRAME_FINE : FRAME_TLS_GARBAGE;
}

/* OpenSSL has failed for good. A reason that we found ourselves says more than its own. */
static void note_failure(struct tls_stream *stream) {
    int reason = ERR_GET_REASON(ERR_peek_error());
    ERR_clear_error();
    if (!stream->error && !stream->done)
        stream->error = meaning_of_first(stream);
    if (!stream->error)
        stream->error = meaning_of_reason(reason);
    assert(stream->error);
    (void)tls_socket_flush(&stream->socket); /* the alert */
}

/* After a call of OpenSSL that did not succeed: whether it may be made again at once. If not, errno
 * says why; 0 is the end of the stream. */
static bool goes_on(struct tls_stream *stream, int result) {
    assert(result <= 0);
    int why = SSL_get_error(stream->ssl, result);
    if (stream->error || (why == SSL_ERROR_SSL && !stream->socket.ended)) {
        note_failure(stream);
        errno = EPROTO;
        return false;
    }
    if (why == SSL_ERROR_ZERO_RETURN || stream->socket.ended) {
        ERR_clear_error();
        stream->socket.ended = true;
        if (!stream->done && stream->socket.first_count)
            stream->error = meaning_of_first(stream);
        if (!stream->socket.allowance && !stream->error)
            stream->error = FRAME_TLS_BROKEN;
        errno = stream->error ? EPROTO : stream->socket.broken;
        return false;
    }
    errno = EAGAIN;
    return !stream->socket.starved;
}

/* Sends what is queued. After a failure nothing is sent or received any more. */
static void flush(struct tls_stream *stream) {
    if (tls_socket_flush(&stream->socket)) {
        stream->socket.broken = errno;
        stream->socket.ended = true;
    }
}

int tls_handshake(struct tls_stream *stream) {
    while (!stream->done && !stream->error && !stream->socket.ended) {
        stream->socket.starved = false;
        ERR_clear_error();
        int result = SSL_do_handshake(stream->ssl);
        if (result == 1) {
            /* There are no certificates, so a handshake cannot succeed without the key. It is
             * checked all the same, as all security rests on it. */
            stream->done = SSL_session_reused(stream->ssl);
            stream->error = stream->done ? FRAME_FINE : FRAME_TLS_NO_KEY;
            stream->socket.allowance = SIZE_MAX;
        } else if (!goes_on(stream, result)) {
            break;
        }
    }
    if (!stream->socket.ended)
        flush(stream);
    return stream->error || stream->socket.ended ? -1 : stream->done;
}

/* ---- text ---- */

/* Fills one place; less than `length` if there is no more for now. */
static size_t receive_into(struct tls_stream *stream, void *place, size_t length) {
    size_t total = 0, got;
    bool more = true;
    while (more && total < length) {
        ERR_clear_error();
        int result = SSL_read_ex(stream->ssl, (char *)place + total, length - total, &got);
        if (result)
            total += got;
        more = result ? !stream->error : goes_on(stream, result);
    }
    assert(total <= length);
    stream->received += total;
    return total;
}

ssize_t tls_receive(struct tls_stream *stream, const struct msghdr *message) {
    size_t total = 0;
    if (!stream->done && tls_handshake(stream) == 0) {
        errno = EAGAIN;
        return -1;
    }
    stream->socket.starved = false;
    for (size_t i = 0; i < message->msg_iovlen && total < TURN_BYTES; i++) {
        size_t most = TURN_BYTES - total, length = message->msg_iov[i].iov_len;
        if (length > most)
            length = most;
        if (stream->error || stream->socket.ended)
            break;
        size_t got = receive_into(stream, message->msg_iov[i].iov_base, length);
        total += got;
        if (got < length)
            break;
    }
    if (tls_socket_unsent(&stream->socket) && !stream->socket.ended)
        flush(stream);
    assert(total <= TURN_BYTES);
    if (total)
        return (ssize_t)total;
    errno = stream->error ? EPROTO : stream->socket.ended ? stream->socket.broken : EAGAIN;
    return errno ? -1 : 0;
}

/* How far the text of a message was sent: the place, and the offset in it. */
struct walk {
    const struct iovec *place, *end;
    size_t offset;
};

/* The text of the next record: where it lies, if it lies in one piece, else gathered. */
static size_t next_text(struct walk *walk, uint8_t *gathered, const uint8_t **text) {
    size_t length = 0;
    while (walk->place < walk->end && length < RECORD_BYTES) {
        const uint8_t *from = (const uint8_t *)walk->place->iov_base + walk->offset;
        assert(walk->offset <= walk->place->iov_len);
        size_t rest = walk->place->iov_len - walk->offset, lack = RECORD_BYTES - length;
        size_t taken = rest < lack ? rest : lack;
        walk->offset += taken;
        if (taken == RECORD_BYTES) {
            *text = from;
            return taken;
        }
        memcpy(gathered + length, from, taken);
        length += taken;
        if (walk->offset == walk->place->iov_len) {
            walk->place++;
            walk->offset = 0;
        }
    }
    *text = gathered;
    assert(length <= RECORD_BYTES);
    return length;
}

/* Encrypts one record. */
static bool send_record(struct tls_stream *stream, const uint8_t *text, size_t length) {
    size_t written;
    assert(stream->done && length && length <= RECORD_BYTES);
    ERR_clear_error();
    if (stream->sent - stream->rekeyed >= tls_rekey_bytes) {
        (void)SSL_key_update(stream->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        stream->rekeyed = stream->sent;
    }
    if (SSL_write_ex(stream->ssl, text, length, &written) && written == length) {
        stream->sent += length;
        return true;
    }
    note_failure(stream);
    return false;
}

ssize_t tls_send(struct tls_stream *stream, const struct msghdr *message) {
    uint8_t gathered[RECORD_BYTES];
    const uint8_t *text;
    struct walk walk = {.place = message->msg_iov, .end = message->msg_iov + message->msg_iovlen};
    size_t total = 0, length;
    while (stream->done && total < TURN_BYTES) {
        if (tls_socket_unsent(&stream->socket) >= UNSENT_BYTES)
            flush(stream);
        if (stream->socket.ended || tls_socket_unsent(&stream->socket) >= UNSENT_BYTES)
            break;
        length = next_text(&walk, gathered, &text);
        if (!length || !send_record(stream, text, length))
            break;
        total += length;
    }
    if (!stream->socket.ended)
        flush(stream);
    errno = stream->error ? EPROTO : stream->socket.ended ? EPIPE : EAGAIN;
    return total && errno == EAGAIN ? (ssize_t)total : -1;
}

/* Two ends of a connection with TLS; or one, and the bare socket of the other, on which OpenSSL
 * speaks as somebody else would. */
#ifndef DML_TESTS_UNIT_TLS_FIXTURE_H
#define DML_TESTS_UNIT_TLS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/channel.h"

static const struct key key_a = {.secret = "0123456789abcdef0123456789abcde",
                                 .name = "aaaaaaaaaaaaaaaa"};
static const struct key key_b = {.secret = "0123456789abcdef0123456789abcdX",
                                 .name = "bbbbbbbbbbbbbbbb"};

struct tls_pair {
    struct tls *of_server, *of_client;
    struct channel *server, *client;
    int raw; /* instead of one of them, or −1 */
};

/* A key that is NULL: that end is `raw`. */
static void tls_pair_init(struct tls_pair *pair, const struct key *server,
                          const struct key *client) {
    int ends[2];
    *pair = (struct tls_pair){.raw = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    if (server) {
        assert_int_equal(tls_new(server, &pair->of_server), 0);
        pair->server = channel_new_tls(ends[0], pair->of_server, false);
    } else {
        pair->raw = ends[0];
    }
    if (client) {
        assert_int_equal(tls_new(client, &pair->of_client), 0);
        pair->client = channel_new_tls(ends[1], pair->of_client, true);
    } else {
        pair->raw = ends[1];
    }
}

static void tls_pair_release(struct tls_pair *pair) {
    channel_free(pair->client);
    channel_free(pair->server);
    tls_free(pair->of_client);
    tls_free(pair->of_server);
    if (pair->raw >= 0)
        close(pair->raw);
}

/* 1 once both ends have shaken hands, −1 if one refuses. */
__attribute__((unused)) static int tls_pair_shake(struct tls_pair *pair) {
    int client = 0, server = 0;
    for (int i = 0; i < 20; i++) {
        client = channel_handshake(pair->client);
        server = channel_handshake(pair->server);
    }
    return client == 1 && server == 1 ? 1 : -1;
}

__attribute__((unused)) static ssize_t say(struct channel *channel, const char *text,
                                           size_t length) {
    struct iovec place = {(void *)(uintptr_t)text, length};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1};
    return channel_send(channel, &message);
}

__attribute__((unused)) static ssize_t hear(struct channel *channel) {
    char text[1024];
    struct iovec place = {text, sizeof text};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1};
    return channel_receive(channel, &message);
}

/* ---- somebody else ---- */

struct foreign_options {
    bool client;
    const uint8_t *secret; /* of the pre-shared key, or NULL */
    const char *identity;
    int version;      /* the highest; 0: 1.3 */
    bool certificate; /* the server has one that it signed itself */
    bool tickets, early;
};

struct foreign {
    struct foreign_options options;
    SSL_CTX *context;
    SSL *ssl;
    SSL_SESSION *session;
    bool wrote_early;
};

static int foreign_use(SSL *ssl, const EVP_MD *digest, const unsigned char **identity,
                       size_t *length, SSL_SESSION **session) {
    struct foreign *foreign = SSL_get_app_data(ssl);
    (void)digest;
    *identity = (const unsigned char *)foreign->options.identity;
    *length = foreign->session ? strlen(foreign->options.identity) : 0;
    *session = foreign->session;
    return !foreign->session || SSL_SESSION_up_ref(foreign->session);
}

static int foreign_find(SSL *ssl, const unsigned char *identity, size_t length,
                        SSL_SESSION **session) {
    size_t own;
    const unsigned char *wanted;
    int found = foreign_use(ssl, NULL, &wanted, &own, session);
    assert_true(!*session || (own == length && !memcmp(wanted, identity, own)));
    return found;
}

static void foreign_certify(SSL_CTX *context) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = X509_new();
    assert_true(key && x509);
    X509_gmtime_adj(X509_getm_notBefore(x509), 0);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key);
    assert_true(X509_sign(x509, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(context, x509), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(x509);
    EVP_PKEY_free(key);
}

static void foreign_know(struct foreign *foreign) {
    static const unsigned char cipher[] = {0x13, 0x01};
    foreign->session = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(foreign->session, foreign->options.secret, KEY_BYTES);
    SSL_SESSION_set_cipher(foreign->session, SSL_CIPHER_find(foreign->ssl, cipher));
    SSL_SESSION_set_protocol_version(foreign->session, TLS1_3_VERSION);
    if (foreign->options.early)
        SSL_SESSION_set_max_early_data(foreign->session, 1000);
}

static struct foreign *foreign_new(int descriptor, const struct foreign_options *options) {
    struct foreign *foreign = calloc(1, sizeof *foreign);
    foreign->options = *options;
    foreign->context = SSL_CTX_new(options->client ? TLS_client_method() : TLS_server_method());
    if (options->version)
        SSL_CTX_set_max_proto_version(foreign->context, options->version);
    SSL_CTX_set_num_tickets(foreign->context, options->tickets ? 2 : 0);
    SSL_CTX_set_psk_use_session_callback(foreign->context, foreign_use);
    SSL_CTX_set_psk_find_session_callback(foreign->context, foreign_find);
    if (options->certificate)
        foreign_certify(foreign->context);
    foreign->ssl = SSL_new(foreign->context);
    SSL_set_app_data(foreign->ssl, foreign);
    SSL_set_fd(foreign->ssl, descriptor);
    if (options->secret)
        foreign_know(foreign);
    if (options->client)
        SSL_set_connect_state(foreign->ssl);
    else
        SSL_set_accept_state(foreign->ssl);
    return foreign;
}

static void foreign_turn(struct foreign *foreign) {
    size_t written;
    if (foreign->options.early && !foreign->wrote_early)
        foreign->wrote_early = SSL_write_early_data(foreign->ssl, "early", 5, &written);
    else
        (void)SSL_do_handshake(foreign->ssl);
}

static void foreign_free(struct foreign *foreign) {
    SSL_SESSION_free(foreign->session);
    SSL_free(foreign->ssl);
    SSL_CTX_free(foreign->context);
    free(foreign);
}

#endif

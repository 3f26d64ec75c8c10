/* The stream of bytes below a connection: a socket, plain or with TLS. Whoever receives and sends
 * frames does not see which. */
#ifndef DML_WIRE_CHANNEL_H
#define DML_WIRE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "wire/frame.h"
#include "wire/key.h"

struct channel; /* opaque */
struct tls;     /* a key, ready for use; opaque */

/* Both take over a connected non-blocking socket: the first for a plain channel, the second for one
 * of TLS. There a handshake comes before all else, in which the client speaks first, and `tls` must
 * outlive the channel. */
struct channel *channel_new(int descriptor);
struct channel *channel_new_tls(int descriptor, const struct tls *tls, bool client);
void channel_free(struct channel *channel); /* closes; harmless on NULL */

/* The socket; it stays the channel's. */
int channel_descriptor(const struct channel *channel);

/* Whether it is a Unix socket without TLS: then descriptors may be sent along. */
bool channel_is_local(const struct channel *channel);

/* Goes on with the handshake: 1 if there is none or it is done, 0 while bytes are awaited, −1 if it
 * failed. */
int channel_handshake(struct channel *channel);

/* As recvmsg() and sendmsg(), which they are on a plain channel; they never block, and raise no
 * signal. EPROTO: channel_error() says why. Only a local channel sends and receives descriptors. */
ssize_t channel_receive(struct channel *channel, struct msghdr *message);
ssize_t channel_send(struct channel *channel, const struct msghdr *message);

/* Whether received bytes wait here that the socket will not report again: channel_receive() must
 * then be called without an event. */
bool channel_pending(const struct channel *channel);

/* Bytes that were sent but that the socket has not taken yet; channel_flush() is to be called when
 * it takes more: 0, or −1 and errno. */
size_t channel_unsent(const struct channel *channel);
int channel_flush(struct channel *channel);

/* Why it failed; FRAME_FINE if it did not. And the name of the other end's key if that is known and
 * not ours, else "". */
enum frame_error channel_error(const struct channel *channel);
const char *channel_other_key(const struct channel *channel);

/* ---- TLS: for the programs that have a key, and for channel.c ----
 *
 * TLS 1.3 with a key that both ends have (wire/key.h), on a non-blocking socket. No certificates,
 * no tickets, no early data; each connection has session keys of its own. So what was recorded of
 * one cannot be replayed on another, and who learns the key later cannot read it.
 *
 * The name of the key travels in clear as the identity, so that a program with another key can be
 * told from one without any. Which run a program belongs to is not TLS's matter: HELLO and GREET
 * say it.
 *
 * Nothing here blocks: what the socket does not take is kept, and tls_flush() sends it. */

struct tls_stream; /* one connection; opaque */

/* ERROR_UNAVAILABLE if OpenSSL is not able to do this. */
int tls_new(const struct key *key, struct tls **tls);

/* tls_new() for a key file. Also as key_read(). */
int tls_of_file(const char *path, struct tls **tls);

void tls_free(struct tls *tls); /* after its streams; harmless on NULL */

/* The name of the key. */
const char *tls_key_name(const struct tls *tls);

/* The socket stays the caller's; `tls` must outlive the stream. The client speaks first. */
struct tls_stream *tls_stream_new(const struct tls *tls, int descriptor, bool client);

/* Says to the other end that the stream is complete, if the socket still takes that: without it
 * the end looks like a cut connection. Harmless on NULL. */
void tls_stream_free(struct tls_stream *stream);

/* Goes on with the handshake: 1 once it is done, 0 while bytes are awaited, −1 after a failure:
 * tls_error(). tls_receive() does the same by itself. */
int tls_handshake(struct tls_stream *stream);

/* As recvmsg(): fills the places in order, with 1 MiB at most, and answers how many bytes that
 * were; 0 at the end; −1 and EAGAIN if nothing is there, EPROTO after a failure (tls_error()), else
 * what the socket said. */
ssize_t tls_receive(struct tls_stream *stream, const struct msghdr *message);

/* As sendmsg(): takes 1 MiB at most. Only after the handshake. */
ssize_t tls_send(struct tls_stream *stream, const struct msghdr *message);

/* Whether received bytes wait that the socket will not report again. */
bool tls_pending(const struct tls_stream *stream);

/* Bytes that the socket has not taken yet. tls_flush() offers them again: 0, or −1 and errno. */
size_t tls_unsent(const struct tls_stream *stream);
int tls_flush(struct tls_stream *stream);

/* Why it failed, FRAME_FINE if it did not. */
enum frame_error tls_error(const struct tls_stream *stream);

/* The name of the key that the other end has, if it told one that is not ours; else "". */
const char *tls_other_key(const struct tls_stream *stream);

/* After how many bytes the sender changes its keys, before AES-GCM wears out: 2^24.5 records (RFC
 * 8446, section 5.5) are about 2^38 bytes. Tests lower it. */
extern uint64_t tls_rekey_bytes;

#endif

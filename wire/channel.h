/* The stream of bytes below a connection: a socket, plain or with TLS. Whoever receives and sends
 * frames does not see which. */
#ifndef DML_WIRE_CHANNEL_H
#define DML_WIRE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "wire/frame.h"
#include "wire/tls.h"

struct channel; /* opaque */

/* Take over a connected non-blocking socket. The first is plain; with the others a handshake comes
 * first, and `tls` must outlive the channel. */
struct channel *channel_new(int descriptor);
struct channel *channel_new_client(int descriptor, const struct tls *tls);
struct channel *channel_new_server(int descriptor, const struct tls *tls);
void channel_free(struct channel *channel); /* closes; harmless on NULL */

int channel_descriptor(const struct channel *channel);

/* A Unix socket: descriptors may be sent along. */
bool channel_is_local(const struct channel *channel);

/* Goes on with the handshake: 1 if there is none or it is done, 0 while bytes are awaited, −1 if it
 * failed. */
int channel_handshake(struct channel *channel);

/* As recvmsg() and sendmsg(), which they are on a plain channel; they never block, and raise no
 * signal. EPROTO: channel_error() says why. With TLS, descriptors are neither sent nor received. */
ssize_t channel_receive(struct channel *channel, struct msghdr *message);
ssize_t channel_send(struct channel *channel, const struct msghdr *message);

/* Whether bytes wait that the socket will not report again: channel_receive() must be called
 * without an event. */
bool channel_pending(const struct channel *channel);

/* Bytes that were sent but that the socket has not taken yet; channel_flush() is to be called when
 * it takes more: 0, or −1 and errno. */
size_t channel_unsent(const struct channel *channel);
int channel_flush(struct channel *channel);

/* Why it failed, FRAME_FINE if it did not; and the name of the other end's key, if that is another
 * than ours and known, else "". */
enum frame_error channel_error(const struct channel *channel);
const char *channel_other_key(const struct channel *channel);

#endif

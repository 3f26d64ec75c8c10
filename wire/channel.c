#define _GNU_SOURCE
#include "wire/channel.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

struct channel {
    int descriptor;
    bool local;
    struct tls_stream *stream; /* NULL: plain */
};

struct channel *channel_new(int descriptor) {
    assert(descriptor >= 0);
    struct channel *channel = memory_new(1, sizeof *channel);
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    channel->descriptor = descriptor;
    channel->local = !getsockname(descriptor, (struct sockaddr *)&address, &length) &&
                     address.ss_family == AF_UNIX;
    return channel;
}

struct channel *channel_new_tls(int descriptor, const struct tls *tls, bool client) {
    struct channel *channel = channel_new(descriptor);
    assert(tls);
    channel->local = false; /* a descriptor cannot be sent through TLS */
    channel->stream = tls_stream_new(tls, descriptor, client);
    return channel;
}

void channel_free(struct channel *channel) {
    if (!channel)
        return;
    tls_stream_free(channel->stream);
    close(channel->descriptor);
    free(channel);
}

int channel_descriptor(const struct channel *channel) {
    return channel->descriptor;
}

bool channel_is_local(const struct channel *channel) {
    assert(!channel->local || !channel->stream);
    return channel->local;
}

int channel_handshake(struct channel *channel) {
    return channel->stream ? tls_handshake(channel->stream) : 1;
}

ssize_t channel_receive(struct channel *channel, struct msghdr *message) {
    assert(message->msg_iovlen > 0);
    if (!channel->stream)
        return recvmsg(channel->descriptor, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    message->msg_controllen = 0;
    message->msg_flags = 0;
    return tls_receive(channel->stream, message);
}

ssize_t channel_send(struct channel *channel, const struct msghdr *message) {
    assert(channel->local || !message->msg_controllen);
    return channel->stream ? tls_send(channel->stream, message)
                           : sendmsg(channel->descriptor, message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool channel_pending(const struct channel *channel) {
    return channel->stream && tls_pending(channel->stream);
}

size_t channel_unsent(const struct channel *channel) {
    return channel->stream ? tls_unsent(channel->stream) : 0;
}

int channel_flush(struct channel *channel) {
    return channel->stream ? tls_flush(channel->stream) : 0;
}

enum frame_error channel_error(const struct channel *channel) {
    return channel->stream ? tls_error(channel->stream) : FRAME_FINE;
}

const char *channel_other_key(const struct channel *channel) {
    return channel->stream ? tls_other_key(channel->stream) : "";
}

#include "wire/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "wire/frame.h"
#include "wire/segment.h"

struct outlet_frame {
    struct outlet_frame *next;
    int descriptor; /* to send with the first byte; owned; −1 for none */
    size_t length, sent;
    uint8_t bytes[];
};

enum {
    FRAMES_AT_ONCE = 16,
    MAPPED_BYTES_MIN = 1 << 20, /* frames of this size or more get their own pages */
};

void outlet_init(struct outlet *outlet, struct channel *channel) {
    *outlet = (struct outlet){.channel = channel};
    outlet->end = &outlet->first;
}

static bool is_mapped(size_t length) {
    return length >= MAPPED_BYTES_MIN;
}

static struct outlet_frame *new_frame(size_t length) {
    size_t bytes = sizeof(struct outlet_frame) + length;
    struct outlet_frame *frame = is_mapped(length) ? memory_map(bytes) : memory_new(1, bytes);
    return frame;
}

static void free_frame(struct outlet_frame *frame, size_t length) {
    if (is_mapped(length))
        memory_unmap(frame, sizeof *frame + length);
    else
        free(frame);
}

static void drop_first(struct outlet *outlet) {
    struct outlet_frame *frame = outlet->first;
    outlet->first = frame->next;
    if (!outlet->first)
        outlet->end = &outlet->first;
    outlet->queued -= frame->length - frame->sent;
    if (frame->descriptor >= 0)
        close(frame->descriptor);
    free_frame(frame, frame->length);
}

void outlet_release(struct outlet *outlet) {
    while (outlet->first)
        drop_first(outlet);
}

static void fail(struct outlet *outlet, int error) {
    outlet->error = error;
    outlet_release(outlet);
}

/* Returns how many bytes the system took; 0 if it takes none now, or after a failure, which is
 * recorded. ENOBUFS and ETOOMANYREFS (too many descriptors under way) pass, as EAGAIN does. */
static size_t send_some(struct outlet *outlet, struct iovec *places, size_t count, int descriptor) {
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct msghdr header = {.msg_iov = places, .msg_iovlen = count};
    if (descriptor >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    ssize_t sent = channel_send(outlet->channel, &header);
    if (sent >= 0)
        return (size_t)sent;
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ETOOMANYREFS)
        fail(outlet, errno);
    return 0;
}

/* Queues the bytes that were not sent. If none was sent, the descriptor was not sent either: a
 * duplicate waits with the frame, since the segment may be freed before. */
static void queue(struct outlet *outlet, const struct iovec *places, size_t count, size_t sent,
                  int descriptor) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += places[i].iov_len;
    length -= sent;
    struct outlet_frame *frame = new_frame(length);
    frame->descriptor = sent || descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (!sent && descriptor >= 0 && frame->descriptor < 0) {
        int error = errno;
        free_frame(frame, length);
        fail(outlet, error);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t skipped = sent < places[i].iov_len ? sent : places[i].iov_len;
        size_t rest = places[i].iov_len - skipped;
        sent -= skipped;
        if (rest)
            memcpy(frame->bytes + frame->length, (const uint8_t *)places[i].iov_base + skipped,
                   rest);
        frame->length += rest;
    }
    *outlet->end = frame;
    outlet->end = &frame->next;
    outlet->queued += length;
}

/* The segment, if the bulk can be handed over in it. */
static struct segment *segment_of(const struct outlet *outlet, const struct bulk *bulk) {
    struct segment *segment = bulk->segment;
    if (!channel_is_local(outlet->channel) || !segment || !bulk->length)
        return NULL;
    size_t offset = (size_t)((const uint8_t *)bulk->data - (const uint8_t *)segment->start);
    return offset % 64 == 0 ? segment : NULL;
}

/* Describes the bulk in the header. Returns the descriptor to send along, or −1. */
static int describe_bulk(struct outlet *outlet, const struct bulk *bulk,
                         struct frame_header *header) {
    struct segment *segment = segment_of(outlet, bulk);
    header->bulk_length = bulk->length;
    if (!segment) {
        header->bulk_place = bulk->length ? hash64(bulk->data, bulk->length) : 0;
        return -1;
    }
    uint32_t *known = &outlet->known[segment->id % SEGMENT_PLACES];
    header->flags = FRAME_SHARED;
    header->segment = segment->id;
    header->bulk_place = (uint64_t)((const uint8_t *)bulk->data - (const uint8_t *)segment->start);
    if (*known == segment->id)
        return -1;
    *known = segment->id;
    header->flags |= FRAME_DESCRIPTOR;
    return segment->descriptor;
}

void outlet_send(struct outlet *outlet, enum message_type type, uint64_t epoch, const void *body,
                 size_t body_length, const struct bulk *bulk) {
    if (outlet->error)
        return;
    struct frame_header header = {.type = (uint16_t)type,
                                  .epoch = epoch,
                                  .body_length = (uint32_t)body_length,
                                  .body_hash = hash64(body, body_length)};
    int descriptor = describe_bulk(outlet, bulk, &header);
    uint8_t raw[FRAME_HEADER_BYTES];
    frame_header_encode(&header, raw);
    /* sendmsg() only reads, though its type does not say so. */
    struct iovec places[3] = {{raw, sizeof raw},
                              {(void *)(uintptr_t)body, body_length},
                              {(void *)(uintptr_t)bulk->data, frame_stream_bulk(&header)}};
    size_t total = sizeof raw + body_length + places[2].iov_len;
    size_t sent = outlet->first || outlet->held ? 0 : send_some(outlet, places, 3, descriptor);
    if (sent < total && !outlet->error)
        queue(outlet, places, 3, sent, descriptor);
}

static void account(struct outlet *outlet, size_t sent) {
    while (sent) {
        struct outlet_frame *frame = outlet->first;
        size_t rest = frame->length - frame->sent, part = sent < rest ? sent : rest;
        if (frame->descriptor >= 0)
            close(frame->descriptor);
        frame->descriptor = -1;
        frame->sent += part;
        outlet->queued -= part;
        sent -= part;
        if (frame->sent == frame->length)
            drop_first(outlet);
    }
}

bool outlet_waits(const struct outlet *outlet) {
    return outlet->first || channel_unsent(outlet->channel);
}

/* A descriptor is sent with the first byte of a sendmsg(). It must go with the first byte of its
 * frame, so a frame with a descriptor begins a new call. */
void outlet_flush(struct outlet *outlet) {
    if (channel_flush(outlet->channel))
        fail(outlet, errno);
    while (outlet->first) {
        struct iovec places[FRAMES_AT_ONCE];
        size_t count = 0, total = 0;
        for (struct outlet_frame *frame = outlet->first; frame && count < FRAMES_AT_ONCE;
             frame = frame->next) {
            if (count && frame->descriptor >= 0)
                break;
            places[count].iov_base = frame->bytes + frame->sent;
            places[count].iov_len = frame->length - frame->sent;
            total += places[count++].iov_len;
        }
        size_t sent = send_some(outlet, places, count, outlet->first->descriptor);
        if (outlet->error)
            return;
        account(outlet, sent);
        if (sent < total)
            return;
    }
}

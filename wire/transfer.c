#define _GNU_SOURCE

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/bulk.h"
#include "wire/compact.h"
#include "wire/frame.h"
#include "wire/transfer.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static_assert(offsetof(struct inlet, holder) == 0, "inlet_keep() finds the inlet by it");
static_assert(INLET_STRANGER_BYTES >= FRAME_HEADER_BYTES, "a header is read at once");
static_assert(HUGE_PAGE_BYTES % BULK_ALIGNMENT == 0, "huge pages are aligned as bulk is");

/* ---- receiving ---- */

/* What is to be received next, and into which place. */
static void receive(struct inlet *inlet, enum inlet_part part, uint8_t *place, size_t needed) {
    assert(inlet->got == inlet->needed && (place || !needed));
    inlet->part = part;
    inlet->place = place;
    inlet->needed = needed;
    inlet->got = 0;
}

/* Gives away the bulk of the message that was handed out: the message has none any more. */
static void inlet_keep(struct bulk_holder *holder, struct kept_bulk *kept) {
    struct inlet *inlet = (struct inlet *)holder; /* its first member */
    *kept = (struct kept_bulk){.data = inlet->current.data, .length = inlet->current.length};
    if (!inlet->current.length)
        return;
    if (inlet->mapping) {
        kept->mapping = shared_mapping_keep(inlet->mapping);
    } else {
        assert(inlet->current.data == inlet->bulk);
        kept->owned = inlet->bulk;
        inlet->bulk = NULL;
        inlet->bulk_capacity = 0;
    }
    inlet->current = (struct bulk){0};
}

void inlet_init(struct inlet *inlet, struct channel *channel, bool stranger) {
    *inlet = (struct inlet){.holder.keep = inlet_keep, .channel = channel, .stranger = stranger};
    receive(inlet, INLET_HEADER, inlet->raw_header, FRAME_HEADER_BYTES);
}

void inlet_trust(struct inlet *inlet) {
    inlet->stranger = false;
}

void inlet_release(struct inlet *inlet) {
    for (unsigned i = 0; i < inlet->descriptor_count; i++)
        close(inlet->descriptors[i]);
    for (unsigned i = 0; i < SEGMENT_PLACES; i++)
        shared_mapping_release(inlet->known[i]);
    free(inlet->buffer);
    free(inlet->body);
    free(inlet->bulk);
    free(inlet->packed);
    *inlet = (struct inlet){0};
}

static enum inlet_state bad(struct inlet *inlet, enum frame_error error, const char *why) {
    assert(error > FRAME_FINE && error < FRAME_ERRORS);
    frame_error_counts[error]++;
    inlet->why = why ? why : frame_error_text(error);
    return INLET_BAD;
}

/* Users meet this when they upgrade: both ends say it with both numbers. A worker logs the first,
 * since a coordinator comes again and again. */
static enum inlet_state bad_version(struct inlet *inlet) {
    snprintf(inlet->other_version, sizeof inlet->other_version,
             "it runs another version of dml (protocol %u, this is %d)",
             frame_header_version(inlet->raw_header), PROTOCOL_VERSION);
    if (inlet->stranger && !frame_error_counts[FRAME_BAD_VERSION])
        log_warning("dropped a connection: %s; more of this is only counted", inlet->other_version);
    return bad(inlet, FRAME_BAD_VERSION, inlet->other_version);
}

/* Strangers may send anything, as often as they like. No line is logged for them, or they could
 * fill the disk. */
static enum inlet_state bad_message(struct inlet *inlet, const char *why) {
    if (!inlet->stranger)
        log_warning("dropped a connection that sent %s: %s", message_name(inlet->header.type), why);
    return bad(inlet, FRAME_MALFORMED, why);
}

/* Makes room for `length` bytes in *buffer; its content is lost. Strangers may ask for no bulk; so
 * whoever asks for more than there is has proved who it is, and a want of memory ends the process,
 * as any other does: of a connection that is dropped the other end could not say why. */
static void make_room(uint8_t **buffer, size_t *capacity, size_t length) {
    if (*buffer && length <= *capacity)
        return;
    free(*buffer);
    size_t page = length < HUGE_PAGE_BYTES ? BULK_ALIGNMENT : HUGE_PAGE_BYTES;
    size_t bytes = (length + page) / page * page;
    *buffer = aligned_alloc(page, bytes);
    if (!*buffer)
        memory_exhausted(1, bytes);
    *capacity = length;
    if (page == HUGE_PAGE_BYTES)
        (void)madvise(*buffer, bytes, MADV_HUGEPAGE);
}

/* ---- segments ---- */

/* Keeps the descriptors that were received until their frames ask for them. False if there are too
 * many, or if a stranger sends any: those are closed, or a hostile peer could use up our
 * descriptors. */
static bool take_descriptors(struct inlet *inlet, struct msghdr *header) {
    bool fits = !(header->msg_flags & MSG_CTRUNC);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        assert(c->cmsg_len >= CMSG_LEN(0)); /* the kernel's */
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(c) + i * sizeof descriptor, sizeof descriptor);
            if (inlet->descriptor_count < INLET_DESCRIPTORS && !inlet->stranger) {
                inlet->descriptors[inlet->descriptor_count++] = descriptor;
            } else {
                close(descriptor);
                fits = false;
            }
        }
    }
    return fits;
}

/* Maps the segment whose descriptor came with the current frame. */
static enum frame_error map_segment(struct inlet *inlet) {
    if (!inlet->descriptor_count)
        return FRAME_BAD_DESCRIPTOR;
    assert(inlet->descriptor_count <= INLET_DESCRIPTORS && !inlet->stranger);
    int descriptor = inlet->descriptors[0];
    inlet->descriptor_count--;
    memmove(inlet->descriptors, inlet->descriptors + 1, inlet->descriptor_count * sizeof(int));
    struct shared_mapping *mapping = shared_mapping_new(descriptor, inlet->header.segment);
    close(descriptor);
    if (!mapping)
        return FRAME_BAD_SEGMENT;
    struct shared_mapping **known = &inlet->known[inlet->header.segment % SEGMENT_PLACES];
    shared_mapping_release(*known);
    *known = mapping;
    return FRAME_FINE;
}

static enum frame_error find_shared_bulk(struct inlet *inlet) {
    const struct frame_header *header = &inlet->header;
    assert(header->segment && header->bulk_length);
    if (header->flags & FRAME_DESCRIPTOR) {
        enum frame_error error = map_segment(inlet);
        if (error)
            return error;
    }
    struct shared_mapping *mapping = inlet->known[header->segment % SEGMENT_PLACES];
    if (!mapping || mapping->id != header->segment || header->bulk_place % BULK_ALIGNMENT ||
        header->bulk_place > mapping->length ||
        header->bulk_length > mapping->length - header->bulk_place)
        return FRAME_BAD_SEGMENT;
    inlet->mapping = mapping;
    inlet->current.data = mapping->start + header->bulk_place;
    return FRAME_FINE;
}

/* ---- the parts of a frame ---- */

static enum frame_error header_is_there(struct inlet *inlet) {
    enum frame_error error = frame_header_decode(inlet->raw_header, &inlet->header);
    if (error)
        return error;
    /* PING is allowed too: a coordinator sends it while it waits for WELCOME. */
    unsigned type = inlet->header.type;
    if (inlet->stranger && type != MESSAGE_HELLO && type != MESSAGE_GREET && type != MESSAGE_PING)
        return FRAME_STRANGER;
    make_room(&inlet->body, &inlet->body_capacity, inlet->header.body_length);
    assert(inlet->body_capacity >= inlet->header.body_length);
    receive(inlet, INLET_BODY, inlet->body, inlet->header.body_length);
    return FRAME_FINE;
}

static enum frame_error body_is_there(struct inlet *inlet) {
    const struct frame_header *header = &inlet->header;
    size_t bulk = (size_t)frame_stream_bulk(header);
    if (hash64(inlet->body, header->body_length) != header->body_hash)
        return FRAME_BAD_BODY;
    inlet->mapping = NULL;
    inlet->current = (struct bulk){.length = header->bulk_length};
    if (header->flags & FRAME_SHARED) {
        enum frame_error error = find_shared_bulk(inlet);
        if (error)
            return error;
    } else if (bulk) {
        size_t capacity = 0;
        assert(!inlet->packed);
        make_room(&inlet->bulk, &inlet->bulk_capacity, header->bulk_length);
        if (header->flags & FRAME_PACKED)
            make_room(&inlet->packed, &capacity, header->packed_length + COMPACT_PADDING);
        inlet->current.data = inlet->bulk;
    }
    assert(!bulk || inlet->bulk_capacity >= header->bulk_length);
    assert((uintptr_t)inlet->current.data % BULK_ALIGNMENT == 0);
    receive(inlet, INLET_BULK, inlet->packed ? inlet->packed : inlet->bulk, bulk);
    return FRAME_FINE;
}

/* Packed bulk is released at once: of many connections few bring any at a time. */
static enum frame_error take_bulk(struct inlet *inlet) {
    const struct frame_header *header = &inlet->header;
    size_t length = (size_t)frame_stream_bulk(header);
    enum frame_error error = FRAME_FINE;
    if (length && hash64(inlet->packed ? inlet->packed : inlet->bulk, length) != header->bulk_place)
        error = FRAME_BAD_BULK;
    else if (inlet->packed &&
             !compact_unpack(inlet->packed, length, inlet->bulk, header->bulk_length))
        error = FRAME_BAD_PACKED;
    free(inlet->packed);
    inlet->packed = NULL;
    return error;
}

static enum inlet_state bulk_is_there(struct inlet *inlet, struct message *message) {
    const struct frame_header *header = &inlet->header;
    const char *why;
    enum frame_error error = take_bulk(inlet);
    if (error)
        return bad(inlet, error, NULL);
    if (message_decode(header->type, inlet->body, header->body_length, message, &why))
        return bad_message(inlet, why);
    message->term = header->term;
    message->bulk = inlet->current;
    message->bulk.from = &inlet->holder;
    why = message_fault(message);
    if (why)
        return bad_message(inlet, why);
    receive(inlet, INLET_HEADER, inlet->raw_header, FRAME_HEADER_BYTES);
    return INLET_MESSAGE;
}

/* ---- bytes ---- */

static void take_buffered(struct inlet *inlet) {
    assert(inlet->buffer_at <= inlet->buffer_end && inlet->buffer_end <= inlet->buffer_bytes);
    assert(inlet->got <= inlet->needed);
    size_t have = inlet->buffer_end - inlet->buffer_at, lack = inlet->needed - inlet->got;
    size_t taken = have < lack ? have : lack;
    if (!taken)
        return;
    memcpy(inlet->place + inlet->got, inlet->buffer + inlet->buffer_at, taken);
    inlet->buffer_at += taken;
    inlet->got += taken;
}

static enum inlet_state end_of_stream(struct inlet *inlet, const char *why) {
    inlet->why = why;
    if (inlet->part == INLET_HEADER && !inlet->got)
        return INLET_CLOSED;
    return bad(inlet, FRAME_CUT_SHORT, NULL);
}

/* One system call reads the missing bytes into their place and whatever follows into the buffer,
 * which is empty. So many small messages come with one call, and bulk comes without a copy. */
static enum inlet_state read_more(struct inlet *inlet) {
    assert(inlet->buffer_at == inlet->buffer_end);
    make_room(&inlet->buffer, &inlet->buffer_bytes,
              inlet->stranger ? INLET_STRANGER_BYTES : INLET_BUFFER_BYTES);
    size_t lack = inlet->needed - inlet->got;
    struct iovec places[2] = {{inlet->place + inlet->got, lack},
                              {inlet->buffer, inlet->buffer_bytes}};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(INLET_DESCRIPTORS * sizeof(int))];
    struct msghdr header = {.msg_iov = places,
                            .msg_iovlen = 2,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    ssize_t length = channel_receive(inlet->channel, &header);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return INLET_WAIT;
    if (length < 0 && errno == EPROTO && channel_error(inlet->channel)) {
        /* A program with another key comes again and again: the first failure of each kind is
         * enough for whoever looks for the cause here. */
        enum frame_error error = channel_error(inlet->channel);
        const char *key = channel_other_key(inlet->channel);
        if (!frame_error_counts[error])
            log_warning("dropped a connection: %s%s%s%s; more of this is only counted",
                        frame_error_text(error), *key ? " (its key is " : "", key, *key ? ")" : "");
        return bad(inlet, error, NULL);
    }
    if (length < 0)
        return end_of_stream(inlet, strerror(errno));
    if (!length)
        return end_of_stream(inlet, FRAME_CLOSED);
    if (!take_descriptors(inlet, &header))
        return bad(inlet, FRAME_BAD_DESCRIPTOR, NULL);
    assert((size_t)length <= lack + inlet->buffer_bytes);
    size_t here = (size_t)length < lack ? (size_t)length : lack;
    inlet->received += (uint64_t)length;
    inlet->got += here;
    inlet->buffer_at = 0;
    inlet->buffer_end = (size_t)length - here;
    inlet->drained = (size_t)length < lack + inlet->buffer_bytes;
    return INLET_MESSAGE;
}

enum inlet_state inlet_next(struct inlet *inlet, struct message *message) {
    for (;;) {
        take_buffered(inlet);
        if (inlet->got < inlet->needed) {
            enum inlet_state state = inlet->drained ? INLET_WAIT : read_more(inlet);
            inlet->drained = inlet->drained && state == INLET_MESSAGE;
            if (state == INLET_MESSAGE)
                continue;
            /* While nothing comes there is none: few of many connections bring anything. */
            assert(inlet->buffer_at == inlet->buffer_end);
            free(inlet->buffer);
            inlet->buffer = NULL;
            inlet->buffer_at = inlet->buffer_end = inlet->buffer_bytes = 0;
            return state;
        }
        if (inlet->part == INLET_BULK)
            return bulk_is_there(inlet, message);
        enum frame_error error =
            inlet->part == INLET_HEADER ? header_is_there(inlet) : body_is_there(inlet);
        if (error)
            return error == FRAME_BAD_VERSION ? bad_version(inlet) : bad(inlet, error, NULL);
    }
}

bool inlet_pending(const struct inlet *inlet) {
    return inlet->buffer_at < inlet->buffer_end || channel_pending(inlet->channel);
}

bool inlet_within_frame(const struct inlet *inlet) {
    return inlet->part != INLET_HEADER || inlet->got;
}

/* ---- sending ---- */

/* The bytes of a frame that the socket has not taken at once. */
struct outlet_frame {
    struct outlet_frame *next;
    int descriptor; /* to send with the first byte; owned; −1 for none */
    size_t length, sent, room;
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

static struct outlet_frame *new_frame(size_t room) {
    size_t bytes = sizeof(struct outlet_frame) + room;
    struct outlet_frame *frame = is_mapped(room) ? memory_map(bytes) : memory_new(1, bytes);
    frame->descriptor = -1;
    frame->room = room;
    return frame;
}

static void free_frame(struct outlet_frame *frame) {
    if (is_mapped(frame->room))
        memory_unmap(frame, sizeof *frame + frame->room);
    else
        free(frame);
}

static void drop_first(struct outlet *outlet) {
    struct outlet_frame *frame = outlet->first;
    outlet->first = frame->next;
    if (!outlet->first)
        outlet->end = &outlet->first;
    assert(frame->sent <= frame->length && frame->length - frame->sent <= outlet->queued);
    outlet->queued -= frame->length - frame->sent;
    if (frame->descriptor >= 0)
        close(frame->descriptor);
    free_frame(frame);
}

void outlet_release(struct outlet *outlet) {
    while (outlet->first)
        drop_first(outlet);
    assert(!outlet->queued);
}

static void fail(struct outlet *outlet, int error) {
    assert(error);
    outlet->error = error;
    outlet_release(outlet);
}

/* Returns how many bytes the system took; 0 if it takes none now, or after a failure, which is
 * recorded. ENOBUFS and ETOOMANYREFS (too many descriptors under way) pass, as EAGAIN does. */
static size_t send_some(struct outlet *outlet, struct iovec *places, size_t count, int descriptor) {
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct msghdr header = {.msg_iov = places, .msg_iovlen = count};
    assert(count && !outlet->error);
    if (descriptor >= 0) {
        assert(channel_is_local(outlet->channel));
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

static void append_frame(struct outlet *outlet, struct outlet_frame *frame) {
    assert(frame->length <= frame->room && !*outlet->end);
    *outlet->end = frame;
    outlet->end = &frame->next;
    outlet->queued += frame->length;
}

/* Queues the bytes that were not sent. If none was sent, the descriptor was not sent either: a
 * duplicate waits with the frame, since the segment may be freed before. */
static void queue(struct outlet *outlet, const struct iovec *places, size_t count, size_t sent,
                  int descriptor) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += places[i].iov_len;
    assert(sent < length);
    length -= sent;
    struct outlet_frame *frame = new_frame(length);
    frame->descriptor = sent || descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (!sent && descriptor >= 0 && frame->descriptor < 0) {
        int error = errno;
        free_frame(frame);
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
    assert(frame->length == length);
    append_frame(outlet, frame);
}

/* Describes the bulk in the header. Returns the descriptor to send along, or −1. */
static int describe_bulk(struct outlet *outlet, const struct bulk *bulk,
                         struct frame_header *header) {
    const struct segment *segment =
        bulk->length && channel_is_local(outlet->channel) ? bulk->segment : NULL;
    size_t offset =
        segment ? (size_t)((const uint8_t *)bulk->data - (const uint8_t *)segment->start) : 0;
    assert(!segment || (offset <= segment->length && bulk->length <= segment->length - offset));
    header->bulk_length = bulk->length;
    if (!segment || offset % BULK_ALIGNMENT) { /* it cannot be handed over */
        header->bulk_place = bulk->length ? hash64(bulk->data, bulk->length) : 0;
        return -1;
    }
    uint32_t *known = &outlet->known[segment->id % SEGMENT_PLACES];
    header->flags = FRAME_SHARED;
    header->segment = segment->id;
    header->bulk_place = offset;
    if (*known == segment->id)
        return -1;
    *known = segment->id;
    header->flags |= FRAME_DESCRIPTOR;
    return segment->descriptor;
}

/* Queues a frame with packed bulk. False if that would not be shorter. */
static bool queue_packed(struct outlet *outlet, const struct frame_header *plain, const void *body,
                         const struct bulk *bulk) {
    if (channel_is_local(outlet->channel) || bulk->length < COMPACT_LENGTH_MIN)
        return false;
    size_t head = FRAME_HEADER_BYTES + plain->body_length;
    struct outlet_frame *frame = new_frame(head + compact_room(bulk->length));
    struct frame_header header = *plain;
    header.flags = FRAME_PACKED;
    header.bulk_length = bulk->length;
    header.packed_length = compact_pack(bulk->data, bulk->length, frame->bytes + head);
    if (!header.packed_length) {
        free_frame(frame);
        return false;
    }
    header.bulk_place = hash64(frame->bytes + head, header.packed_length);
    assert(frame_header_check(&header) == FRAME_FINE);
    frame_header_encode(&header, frame->bytes);
    memcpy(frame->bytes + FRAME_HEADER_BYTES, body, header.body_length);
    frame->length = head + header.packed_length;
    append_frame(outlet, frame);
    return true;
}

void outlet_send(struct outlet *outlet, enum message_type type, uint64_t term, const void *body,
                 size_t body_length, const struct bulk *bulk) {
    if (outlet->error)
        return;
    bool waits = outlet->first || outlet->held;
    struct frame_header header = {.type = (uint16_t)type,
                                  .term = term,
                                  .body_length = (uint32_t)body_length,
                                  .body_hash = hash64(body, body_length)};
    if (queue_packed(outlet, &header, body, bulk)) {
        if (!waits)
            outlet_flush(outlet);
        return;
    }
    int descriptor = describe_bulk(outlet, bulk, &header);
    assert(frame_header_check(&header) == FRAME_FINE);
    uint8_t raw[FRAME_HEADER_BYTES];
    frame_header_encode(&header, raw);
    /* sendmsg() only reads, though its type does not say so. */
    struct iovec places[3] = {{raw, sizeof raw},
                              {(void *)(uintptr_t)body, body_length},
                              {(void *)(uintptr_t)bulk->data, frame_stream_bulk(&header)}};
    size_t total = sizeof raw + body_length + places[2].iov_len;
    size_t sent = waits ? 0 : send_some(outlet, places, 3, descriptor);
    if (sent < total && !outlet->error)
        queue(outlet, places, 3, sent, descriptor);
}

/* The socket has taken the first `sent` bytes of what is queued. */
static void account(struct outlet *outlet, size_t sent) {
    while (sent) {
        struct outlet_frame *frame = outlet->first;
        assert(frame);
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
    assert(!outlet->first == !outlet->queued);
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

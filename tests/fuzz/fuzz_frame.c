/* Feeds bytes to the code that receives messages. It must accept or refuse them without harm.
 *
 * The first byte of an input says what the rest is: a stream, the body of one message, or a recipe
 * for frames with correct checksums, so that the code behind the checksums is reached; the stream
 * and the recipe also through TLS. Or it is a conversation in TLS that is changed on the way.
 *
 * With files as arguments: feeds those. Without: feeds the corpus beside the source, and frames
 * that are damaged in seeded ways. libFuzzer's program is made by `make fuzz`. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "wire/compact.h"
#include "wire/transfer.h"
#include "wire/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

enum kind {
    KIND_STREAM,
    KIND_STRANGER,
    KIND_BODY,
    KIND_FRAMES,
    KIND_FRAMES_OF_STRANGER,
    KIND_STREAM_IN_TLS,
    KIND_FRAMES_IN_TLS,
    KIND_CHANGED_TLS,
    KINDS
};

enum way { PLAIN, PLAIN_STRANGER, IN_TLS };

static uint16_t type_of(uint8_t number) {
    size_t count;
    const uint16_t *types = message_types(&count);
    return types[number % count];
}

/* ---- messages ---- */

static void encode(const struct message *message, struct bytes *body) {
    bytes_init(body);
    message_encode(message, body);
}

/* Reads a program as a shard does. */
static void read_program(struct blob program) {
    struct cursor cursor = cursor_over(program.data, program.length);
    struct operation operation;
    while (program_next(&cursor, &operation))
        assert(operation_scalars(&operation) <= SCALARS_MAX);
}

/* A decoded message must stay the same when it is encoded and decoded again. */
static void use(const struct message *message) {
    struct bytes once, twice;
    struct message again;
    const char *why;
    if (message->type == MESSAGE_PROGRAM)
        read_program(message->program.operations);
    encode(message, &once);
    assert(once.length <= message_body_max(message->type));
    assert(!message_decode(message->type, once.data, once.length, &again, &why));
    encode(&again, &twice);
    assert(once.length == twice.length && !memcmp(once.data, twice.data, once.length));
    bytes_release(&once);
    bytes_release(&twice);
}

static void feed_body(const uint8_t *data, size_t length) {
    struct message message;
    const char *why = NULL;
    if (!length || length - 1 > message_body_max(type_of(*data)))
        return;
    uint8_t *body = memory_new(length, 1); /* of its size, so that reading beyond it is seen */
    memcpy(body, data + 1, length - 1);
    if (!message_decode(type_of(*data), body, length - 1, &message, &why))
        use(&message);
    else
        assert(why);
    free(body);
}

/* ---- streams ---- */

static const struct tls *the_tls(void) {
    static struct tls *tls;
    const struct key key = {.secret = "a key", .name = "0123456789abcdef"};
    if (!tls && tls_new(&key, &tls))
        abort();
    return tls;
}

static ssize_t say(struct channel *channel, const void *data, size_t length) {
    struct iovec place = {(void *)(uintptr_t)data, length};
    ssize_t sent = channel_send(channel, &(struct msghdr){.msg_iov = &place, .msg_iovlen = 1});
    (void)channel_flush(channel);
    return sent;
}

static void feed_stream(const uint8_t *data, size_t length, enum way way) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
        return;
    struct inlet inlet;
    struct message message;
    enum inlet_state state = INLET_WAIT;
    bool secure = way == IN_TLS;
    struct channel *channel =
        secure ? channel_new_tls(ends[0], the_tls(), false) : channel_new(ends[0]);
    struct channel *other =
        secure ? channel_new_tls(ends[1], the_tls(), true) : channel_new(ends[1]);
    while (channel_handshake(other) == 0)
        (void)channel_handshake(channel);
    inlet_init(&inlet, channel, way == PLAIN_STRANGER);
    size_t sent = 0;
    while (sent < length && (state == INLET_WAIT || state == INLET_MESSAGE)) {
        ssize_t part = say(other, data + sent, length - sent);
        if (part > 0)
            sent += (size_t)part;
        while ((state = inlet_next(&inlet, &message)) == INLET_MESSAGE) {
            use(&message);
            inlet_trust(&inlet);
        }
    }
    channel_free(other);
    while (state == INLET_WAIT || state == INLET_MESSAGE)
        state = inlet_next(&inlet, &message);
    assert(inlet.why);
    inlet_release(&inlet);
    channel_free(channel);
}

/* ---- TLS that is changed on the way ---- */

/* One byte of what the client sends, and which bits of it are turned. */
struct change {
    uint32_t place;
    uint8_t bits;
};

/* Hands on what is there, `passed` bytes after the beginning of the stream. */
static void relay(int from, int to, const struct change *change, size_t *passed) {
    uint8_t data[8192];
    ssize_t length;
    while ((length = recv(from, data, sizeof data, MSG_DONTWAIT)) > 0) {
        if (change && change->place >= *passed && change->place - *passed < (size_t)length)
            data[change->place - *passed] ^= change->bits;
        *passed += (size_t)length;
        if (send(to, data, (size_t)length, MSG_NOSIGNAL) < 0)
            break;
    }
}

/* Whatever is changed, what arrives is what was sent, or its beginning. */
static void feed_changed(const uint8_t *data, size_t length) {
    struct change change;
    int left[2], right[2];
    uint8_t heard[4096];
    size_t there = 0, back = 0;
    if (length < sizeof change || length - sizeof change > sizeof heard ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, left))
        return;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, right))
        abort();
    memcpy(&change, data, sizeof change);
    data += sizeof change;
    length -= sizeof change;
    struct channel *client = channel_new_tls(left[0], the_tls(), true);
    struct channel *server = channel_new_tls(right[0], the_tls(), false);
    for (unsigned turn = 0; turn < 4; turn++) {
        if (channel_handshake(client) == 1 && turn == 2)
            (void)say(client, data, length);
        relay(left[1], right[1], &change, &there);
        (void)channel_handshake(server);
        relay(right[1], left[1], NULL, &back);
    }
    struct iovec place = {heard, sizeof heard};
    ssize_t got = channel_receive(server, &(struct msghdr){.msg_iov = &place, .msg_iovlen = 1});
    assert(got <= (ssize_t)length && (got <= 0 || !memcmp(heard, data, (size_t)got)));
    assert(got == (ssize_t)length || !length || (change.bits && change.place < there));
    channel_free(client);
    channel_free(server);
    close(left[1]);
    close(right[1]);
}

/* ---- recipes ---- */

/* A step of a recipe, and behind it the bytes of body and bulk. */
struct step {
    uint8_t type, flags, segment, bulk_shift;
    uint16_t body_length, bulk_length;
};

/* Appends a frame that is correct except for what is wrong in the step. Returns the bytes of `data`
 * that it used. */
static size_t append_frame(struct bytes *stream, const uint8_t *data, size_t length) {
    struct step step;
    uint8_t raw[FRAME_HEADER_BYTES];
    memcpy(&step, data, sizeof step);
    size_t left = length - sizeof step;
    size_t body = step.body_length < left ? step.body_length : left;
    size_t bulk = step.bulk_length < left - body ? step.bulk_length : left - body;
    data += sizeof step;
    struct frame_header header = {.type = type_of(step.type),
                                  .flags = step.flags & FRAME_FLAGS_KNOWN,
                                  .segment = step.segment,
                                  .body_length = (uint32_t)body,
                                  .bulk_length = (uint64_t)bulk << step.bulk_shift % 32,
                                  .packed_length = step.flags & FRAME_PACKED ? bulk : 0,
                                  .body_hash = hash64(data, body),
                                  .bulk_place = bulk ? hash64(data + body, bulk) : 0};
    frame_header_encode(&header, raw);
    bytes_append(stream, raw, sizeof raw);
    bytes_append(stream, data, body + bulk);
    return sizeof step + body + bulk;
}

static void feed_frames(const uint8_t *data, size_t length, enum way way) {
    struct bytes stream;
    bytes_init(&stream);
    while (length >= sizeof(struct step)) {
        size_t taken = append_frame(&stream, data, length);
        data += taken;
        length -= taken;
    }
    feed_stream(stream.data, stream.length, way);
    bytes_release(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    log_level_now = LOG_ERROR; /* connections are dropped all the time here */
    if (!length)
        return 0;
    enum kind kind = (enum kind)(*data++ % KINDS);
    length--;
    static const enum way ways[KINDS] = {[KIND_STRANGER] = PLAIN_STRANGER,
                                         [KIND_FRAMES_OF_STRANGER] = PLAIN_STRANGER,
                                         [KIND_STREAM_IN_TLS] = IN_TLS,
                                         [KIND_FRAMES_IN_TLS] = IN_TLS};
    if (kind == KIND_BODY)
        feed_body(data, length);
    else if (kind == KIND_CHANGED_TLS)
        feed_changed(data, length);
    else if (kind == KIND_STREAM || kind == KIND_STRANGER || kind == KIND_STREAM_IN_TLS)
        feed_stream(data, length, ways[kind]);
    else
        feed_frames(data, length, ways[kind]);
    return 0;
}

#ifdef LIBFUZZER

/* A header may announce more bulk than a fuzzer has room for, which is then refused. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

#else
#include "tests/fuzz/corpus.h"

enum { ROUNDS = 400, TLS_EACH = 32 /* handshakes take long */ };

/* One frame in a recipe, of every type in turn, or one body; some damaged. */
static void damage_messages(void) {
    struct random random;
    random_init(&random, 1);
    size_t count;
    (void)message_types(&count);
    for (size_t i = 0; i < ROUNDS * count; i++) {
        uint8_t input[1 + sizeof(struct step) + 256 + 512] = {0};
        struct step step = {.type = (uint8_t)(i % count),
                            .body_length = (uint16_t)random_below(&random, 257)};
        step.bulk_length = message_has_bulk(type_of(step.type)) ? 512 : 0;
        if (!random_below(&random, 4))
            step.flags = (uint8_t)random_below(&random, FRAME_FLAGS_KNOWN + 1);
        step.bulk_shift = step.flags & FRAME_PACKED ? (uint8_t)random_below(&random, 6) : 0;
        if (!random_below(&random, 4))
            step.segment = (uint8_t)random_next(&random);
        bool whole = random_below(&random, 2);
        size_t length = 1 + (whole ? sizeof step : 1) + step.body_length;
        for (size_t j = 1; j < length; j++)
            input[j] = (uint8_t)(random_below(&random, 3) ? 0 : random_next(&random));
        input[0] = whole ? KIND_FRAMES : KIND_BODY;
        memcpy(input + 1, &step, whole ? sizeof step : 1);
        LLVMFuzzerTestOneInput(input, length + (whole ? step.bulk_length : 0));
    }
}

/* What is packed comes back as it was; with bits turned, or an end cut off, it is refused or
 * something else. */
static void damage_packed(void) {
    enum { WORDS = 200 };
    struct random random;
    random_init(&random, 4);
    for (size_t i = 0; i < 20 * ROUNDS; i++) {
        uint64_t words[WORDS] = {0}, back[WORDS];
        size_t length = random_below(&random, sizeof words + 1);
        unsigned shift = (unsigned)random_below(&random, 64);
        for (size_t j = 0; j < WORDS; j++)
            words[j] = random_below(&random, 3) ? random_next(&random) >> shift : words[j / 2];
        uint8_t *room = memory_new(compact_room(length), 1);
        size_t packed = compact_pack(words, length, room);
        bool whole = compact_unpack(room, packed, back, length);
        assert(!packed || (whole && !memcmp(words, back, length)));
        size_t kept = packed ? random_below(&random, packed + 1) : 0;
        uint8_t *damaged = memory_new(kept + COMPACT_PADDING, 1); /* of its size */
        memcpy(damaged, room, kept);
        for (uint64_t hits = kept ? random_below(&random, 4) : 0; hits; hits--)
            damaged[random_below(&random, kept)] ^= (uint8_t)(1 << random_below(&random, 8));
        (void)compact_unpack(damaged, kept, back, length);
        free(damaged);
        free(room);
    }
}

/* Sound frames, with bits turned and ends cut off. */
static void damage_streams(void) {
    struct random random;
    random_init(&random, 2);
    for (size_t i = 0; i < 20 * ROUNDS; i++) {
        struct bytes stream;
        const struct step step = {.type = (uint8_t)random_next(&random), .body_length = 64};
        uint8_t recipe[sizeof step + 64] = {0};
        memcpy(recipe, &step, sizeof step);
        bytes_init(&stream);
        append_frame(&stream, recipe, sizeof recipe);
        for (uint64_t hits = random_below(&random, 3); hits; hits--)
            ((uint8_t *)stream.data)[random_below(&random, stream.length)] ^=
                (uint8_t)(1 << random_below(&random, 8));
        size_t length =
            random_below(&random, 4) ? stream.length : random_below(&random, stream.length + 1);
        feed_stream(stream.data, length, i % TLS_EACH ? i % 2 ? PLAIN_STRANGER : PLAIN : IN_TLS);
        bytes_release(&stream);
    }
}

/* Every byte of a conversation, and some beyond its end. */
static void change_tls(void) {
    struct random random;
    random_init(&random, 3);
    for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
        uint8_t input[sizeof(struct change) + 32] = {0};
        const struct change change = {.place = i, .bits = (uint8_t)(1 << random_below(&random, 8))};
        memcpy(input, &change, sizeof change);
        memset(input + sizeof change, 'x', 32);
        feed_changed(input, sizeof input);
    }
}

int main(int argc, char **argv) {
    int status;
    if (feed_named(argc, argv, &status))
        return status;
    printf("1..5\n");
    damage_messages();
    printf("ok 1 - damaged messages are taken or refused without harm\n");
    damage_streams();
    printf("ok 2 - damaged streams are taken or refused without harm\n");
    change_tls();
    printf("ok 3 - TLS that was changed on the way brings nothing that was not sent\n");
    damage_packed();
    printf("ok 4 - packed bulk that was damaged is taken or refused without harm\n");
    unsigned files = feed_corpus("corpus-frame");
    printf("%s 5 - the corpus is taken or refused without harm # %u files\n",
           files ? "ok" : "not ok", files);
    return files ? 0 : 1;
}

#endif

/* Feeds bytes to the code that receives messages. It must accept or refuse them without harm.
 *
 * The first byte of an input says what the rest is: a stream, the body of one message, or a recipe
 * for frames with correct checksums, so that the code behind the checksums is reached.
 *
 * With files as arguments: feeds those. Without: feeds the corpus beside the source, and frames
 * that are damaged in seeded ways. For libFuzzer, with
 * ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=256: clang -DLIBFUZZER
 * -fsanitize=fuzzer,address,undefined with the sources of wire/ and base/. */
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
#include "wire/inlet.h"
#include "wire/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

enum kind { KIND_STREAM, KIND_STRANGER, KIND_BODY, KIND_FRAMES, KIND_FRAMES_OF_STRANGER, KINDS };

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
        assert(operation_scalars(&operation) <= 4 * SLOTS_MAX);
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

static void feed_stream(const uint8_t *data, size_t length, bool stranger) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
        return;
    struct inlet inlet;
    struct message message;
    enum inlet_state state = INLET_WAIT;
    struct channel *channel = channel_new(ends[0]);
    inlet_init(&inlet, channel, stranger);
    size_t sent = 0;
    while (sent < length && (state == INLET_WAIT || state == INLET_MESSAGE)) {
        ssize_t part = send(ends[1], data + sent, length - sent, MSG_NOSIGNAL);
        if (part > 0)
            sent += (size_t)part;
        while ((state = inlet_next(&inlet, &message)) == INLET_MESSAGE) {
            use(&message);
            inlet_trust(&inlet);
        }
    }
    close(ends[1]);
    while (state == INLET_WAIT || state == INLET_MESSAGE)
        state = inlet_next(&inlet, &message);
    assert(inlet.why);
    inlet_release(&inlet);
    channel_free(channel);
}

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
                                  .flags = step.flags & 3u,
                                  .segment = step.segment,
                                  .body_length = (uint32_t)body,
                                  .bulk_length = (uint64_t)bulk << step.bulk_shift % 32,
                                  .body_hash = hash64(data, body),
                                  .bulk_place = bulk ? hash64(data + body, bulk) : 0};
    frame_header_encode(&header, raw);
    bytes_append(stream, raw, sizeof raw);
    bytes_append(stream, data, body + bulk);
    return sizeof step + body + bulk;
}

static void feed_frames(const uint8_t *data, size_t length, bool stranger) {
    struct bytes stream;
    bytes_init(&stream);
    while (length >= sizeof(struct step)) {
        size_t taken = append_frame(&stream, data, length);
        data += taken;
        length -= taken;
    }
    feed_stream(stream.data, stream.length, stranger);
    bytes_release(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    log_level_now = LOG_ERROR; /* connections are dropped all the time here */
    if (!length)
        return 0;
    enum kind kind = (enum kind)(*data++ % KINDS);
    length--;
    if (kind == KIND_BODY)
        feed_body(data, length);
    else if (kind == KIND_STREAM || kind == KIND_STRANGER)
        feed_stream(data, length, kind == KIND_STRANGER);
    else
        feed_frames(data, length, kind == KIND_FRAMES_OF_STRANGER);
    return 0;
}

#ifndef LIBFUZZER
#include "tests/fuzz/corpus.h"

enum { ROUNDS = 400 };

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
            step.flags = (uint8_t)random_below(&random, 4);
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
        feed_stream(stream.data, length, i % 2);
        bytes_release(&stream);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (feed_file(argv[i]))
            return 1;
    if (argc > 1)
        return 0;
    printf("1..3\n");
    damage_messages();
    printf("ok 1 - damaged messages are taken or refused without harm\n");
    damage_streams();
    printf("ok 2 - damaged streams are taken or refused without harm\n");
    unsigned files = feed_corpus("corpus-frame");
    printf("%s 3 - the corpus is taken or refused without harm # %u files\n",
           files ? "ok" : "not ok", files);
    return files ? 0 : 1;
}

#endif

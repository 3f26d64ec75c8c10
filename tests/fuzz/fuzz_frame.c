/* Feeds bytes to the receiving half of a connection, which must take or refuse them without harm.
 *
 * Without arguments: damages frames of every message in seeded ways. With files: feeds those.
 * For libFuzzer: clang -DLIBFUZZER -fsanitize=fuzzer,address with the sources of wire/ and base/.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "wire/inlet.h"
#include "wire/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* A program inside a message is read as a shard would. */
static void use(const struct message *message) {
    if (message->type == MESSAGE_PROGRAM)
        (void)program_scalars(message->program.operations.data, message->program.operations.length);
    struct bytes body;
    bytes_init(&body);
    message_encode(message, &body);
    bytes_release(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
        return 0;
    struct inlet inlet;
    struct message message;
    enum inlet_state state = INLET_WAIT;
    inlet_init(&inlet, ends[0], false);
    size_t sent = 0;
    while (sent < length) {
        ssize_t part = send(ends[1], data + sent, length - sent, MSG_NOSIGNAL);
        if (part > 0)
            sent += (size_t)part;
        while ((state = inlet_next(&inlet, &message)) == INLET_MESSAGE)
            use(&message);
        if (state != INLET_WAIT)
            break;
    }
    close(ends[1]);
    while (state == INLET_WAIT || state == INLET_MESSAGE)
        state = inlet_next(&inlet, &message);
    assert(inlet.why);
    inlet_release(&inlet);
    close(ends[0]);
    return 0;
}

#ifndef LIBFUZZER

enum { ROUNDS = 400, FRAME_BYTES = 4096 };

/* A frame of `type` with a random body, sound but for what the body says. */
static size_t make_frame(struct random *random, uint16_t type, uint8_t out[FRAME_BYTES]) {
    size_t body = message_body_max(type) < 256 ? message_body_max(type) : 256;
    size_t bulk = message_has_bulk(type) ? 512 : 0;
    struct frame_header header = {.type = type, .bulk_length = bulk};
    header.body_length = (uint32_t)random_below(random, body + 1);
    for (size_t i = 0; i < header.body_length + bulk; i++)
        out[FRAME_HEADER_BYTES + i] = (uint8_t)(random_below(random, 3) ? 0 : random_next(random));
    header.body_hash = hash64(out + FRAME_HEADER_BYTES, header.body_length);
    header.bulk_place = bulk ? hash64(out + FRAME_HEADER_BYTES + header.body_length, bulk) : 0;
    if (!random_below(random, 4))
        header.flags = (uint32_t)random_below(random, 5);
    if (!random_below(random, 4))
        header.segment = (uint32_t)random_below(random, 1000);
    frame_header_encode(&header, out);
    return FRAME_HEADER_BYTES + header.body_length + bulk;
}

static void damage_frames(void) {
    struct random random;
    random_init(&random, 1);
    size_t count;
    const uint16_t *types = message_types(&count);
    for (size_t i = 0; i < ROUNDS * count; i++) {
        uint8_t frame[FRAME_BYTES];
        size_t length = make_frame(&random, types[i % count], frame);
        for (uint64_t hits = random_below(&random, 3); hits; hits--)
            frame[random_below(&random, length)] ^= (uint8_t)(1 << random_below(&random, 8));
        if (!random_below(&random, 4))
            length = random_below(&random, length + 1);
        LLVMFuzzerTestOneInput(frame, length);
    }
}

static int feed_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return 1;
    uint8_t *data = memory_new(1 << 20, 1);
    size_t length = fread(data, 1, 1 << 20, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, length);
    free(data);
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (feed_file(argv[i]))
            return 1;
    if (argc == 1) {
        damage_frames();
        printf("1..1\nok 1 - damaged frames are taken or refused without harm\n");
    }
    return 0;
}

#endif

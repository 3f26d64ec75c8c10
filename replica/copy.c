/* A set that comes by messages, for a replica whose host does not see the coordinator's files:
 * doc/PROTOCOL.md, "Rows by message". */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replica/state.h"

#define WINDOW_BYTES (UINT64_C(4) * SET_PIECE_BYTES_MAX) /* asked for and not here yet, at most */
#define ANSWER_NS (20 * NS_PER_S) /* after so long without an answer all is asked for again */
enum { WRONG_MAX = 8 };           /* times in a row that a place may come with a wrong checksum */

#ifdef MUTANTS
#define PIECE_BYTES 16 /* the simulator's places are small */
#else
#define PIECE_BYTES SET_PIECE_BYTES_MAX
#endif

void replica_copy_begin(struct replica *replica) {
    assert(!replica->opened && !replica->copy.places);
    replica_act(replica, &(struct action){.kind = ACTION_COPY_SET, .setup = replica->setup});
}

void replica_copy_release(struct set_copy *copy) {
    free(copy->places);
    *copy = (struct set_copy){0};
}

static struct copy_place *place_numbered(struct set_copy *copy, uint32_t number) {
    assert(number == PLACE_HEAD || number < copy->count);
    return number == PLACE_HEAD ? &copy->head : &copy->places[number];
}

static void look(struct replica *replica, uint32_t number) {
    place_numbered(&replica->copy, number)->state = PLACE_LOOKING;
    replica_act(replica, &(struct action){.kind = ACTION_LOOK, .place = number});
}

/* ---- asking ---- */

void replica_copy_forget_requests(struct replica *replica) {
    struct set_copy *copy = &replica->copy;
    for (uint32_t i = 0; i < copy->request_count; i++) {
        struct copy_place *place = place_numbered(copy, copy->requests[i].place);
        if (!mutant(SET_NOT_ASKED_AGAIN))
            place->asked = place->received;
    }
    copy->request_count = 0;
}

static uint64_t bytes_under_way(const struct set_copy *copy) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < copy->request_count; i++)
        bytes += copy->requests[i].range.bytes;
    return bytes;
}

/* Asks for what a place lacks, as far as the window has room; false if it has none left. */
static bool ask(struct replica *replica, uint32_t number, struct outbox *out) {
    struct set_copy *copy = &replica->copy;
    struct copy_place *place = place_numbered(copy, number);
    assert(place->state == PLACE_MISSING && place->received <= place->asked);
    while (place->asked < place->range.bytes) {
        uint64_t left = place->range.bytes - place->asked;
        const struct set_range range = {place->range.offset + place->asked,
                                        left < PIECE_BYTES ? left : PIECE_BYTES};
        if (copy->request_count == SET_REQUESTS_MAX ||
            bytes_under_way(copy) + range.bytes > WINDOW_BYTES)
            return false;
        if (!copy->request_count)
            copy->waits_ns = replica->now_ns;
        copy->requests[copy->request_count++] = (struct set_request){number, range};
        place->asked += range.bytes;
        replica_send(replica, replica->coordinator,
                     &(struct message){.type = MESSAGE_READ_SET,
                                       .read_set = {.fingerprint = replica->setup.fingerprint,
                                                    .offset = range.offset,
                                                    .bytes = range.bytes}},
                     out);
    }
    return true;
}

/* ---- what portions need ---- */

uint32_t replica_tiles_below(const struct replica *replica, const struct portion *portion) {
    return replica_is_upper(replica, portion)
               ? replica_strip_of(replica, portion) * replica_tiles_of_strip(replica)
               : 0;
}

/* A tile needs the head of its chunk as well; those of a chunk and of all its tiles are one. Calls
 * `take` until it answers false. Numbers beyond the set's are for whoever computes to refuse. */
static bool each_place(const struct replica *replica, const struct portion *portion,
                       bool (*take)(void *context, uint32_t number), void *context) {
    const struct set_copy *copy = &replica->copy;
    uint64_t first = portion->chunks.first - replica_tiles_below(replica, portion);
    bool more = true;
    for (uint64_t i = first; i < first + portion->chunks.count && more; i++) {
        if (copy->heads)
            more = take(context, (uint32_t)(i % copy->heads));
        if (more && copy->heads + i < copy->count)
            more = take(context, (uint32_t)(copy->heads + i));
    }
    return more;
}

static bool is_here(void *context, uint32_t number) {
    const struct set_copy *copy = context;
    return copy->places[number].state == PLACE_HERE;
}

bool replica_copy_has(const struct replica *replica, const struct portion *portion) {
    if (!replica->setup.copied || mutant(CHUNK_NOT_AWAITED))
        return true;
    return each_place(replica, portion, is_here, (void *)(uintptr_t)&replica->copy);
}

struct gathering {
    struct replica *replica;
    struct outbox *out;
};

static bool gather_place(void *context, uint32_t number) {
    const struct gathering *gathering = context;
    const struct copy_place *place = &gathering->replica->copy.places[number];
    if (place->state == PLACE_UNKNOWN)
        look(gathering->replica, number);
    return place->state != PLACE_MISSING || ask(gathering->replica, number, gathering->out);
}

/* The portion in work has all that it needs. Those ahead come in the order of their turns, while it
 * is computed. A replica that another coordinator has greeted has lost its portions. */
void replica_copy_advance(struct replica *replica, struct outbox *out) {
    const struct evaluation *evaluation = &replica->evaluation;
    struct gathering gathering = {replica, out};
    if (!replica->setup.copied || replica->error || !replica->coordinator)
        return;
    if (!replica->opened) {
        if (replica->copy.head.state == PLACE_MISSING)
            ask(replica, PLACE_HEAD, out);
        return;
    }
    for (uint32_t i = 0; i < evaluation->portion_count; i++)
        if (!each_place(replica, &evaluation->portions[i], gather_place, &gathering))
            return;
}

/* ---- what comes ---- */

/* The coordinator answers in the order of the requests; what does not answer the first of them was
 * asked for twice, as its answer was late. */
void replica_on_set_bytes(struct replica *replica, const struct message *message, int64_t now_ns,
                          struct outbox *out) {
    const struct message_set_bytes *taken = &message->set_bytes;
    struct set_copy *copy = &replica->copy;
    if (!replica->setup.copied || !copy->request_count ||
        strcmp(taken->fingerprint, replica->setup.fingerprint) != 0) {
        replica->counters.stale++;
        return;
    }
    if (*taken->reason) {
        replica_fail(replica, ERROR_UNAVAILABLE, taken->reason, out);
        return;
    }
    const struct set_request first = copy->requests[0];
    if ((taken->offset != first.range.offset || message->bulk.length != first.range.bytes) &&
        !mutant(SET_ANSWER_OF_ANOTHER)) {
        replica->counters.stale++;
        return;
    }
    struct copy_place *place = place_numbered(copy, first.place);
    assert(place->state == PLACE_MISSING);
    assert(message->bulk.length <= place->range.bytes - place->received);
    memmove(copy->requests, copy->requests + 1, --copy->request_count * sizeof *copy->requests);
    copy->waits_ns = now_ns;
    replica_act(replica, &(struct action){.kind = ACTION_KEEP,
                                          .place = first.place,
                                          .at = place->received,
                                          .bytes = message->bulk.data,
                                          .byte_count = message->bulk.length});
    place->received += message->bulk.length;
    replica->counters.set_bytes += message->bulk.length;
    if (place->received == place->range.bytes)
        look(replica, first.place);
    if (mutant(CHUNK_NOT_VERIFIED) && place->state == PLACE_LOOKING && first.place != PLACE_HEAD)
        place->state = PLACE_HERE;
    replica_copy_advance(replica, out);
}

/* What came is not what the set has. The message itself was whole: so the file or the memory of the
 * coordinator's host is at fault, perhaps only for a moment. False: it is not asked for again. */
static bool came_wrong(struct replica *replica, struct copy_place *place, const char *what,
                       struct outbox *out) {
    if (++place->tries < WRONG_MAX)
        return true;
    char *text = memory_format("%s came %d times with a wrong checksum: the set is damaged where "
                               "the coordinator runs; give the same command again: it makes the "
                               "file again",
                               what, place->tries);
    replica_fail(replica, ERROR_DATA, text, out);
    free(text);
    return false;
}

void replica_looked(struct replica *replica, uint32_t number, bool here, int error,
                    const char *reason, int64_t now_ns, struct outbox *out) {
    struct copy_place *place = place_numbered(&replica->copy, number);
    if (mutant(CHUNK_NOT_VERIFIED) && place->state == PLACE_HERE) {
        replica_advance(replica, now_ns, out);
        return;
    }
    assert(place->state == PLACE_LOOKING && replica->opened);
    if (error) {
        replica_fail(replica, error, reason, out);
        return;
    }
    const bool came = place->received == place->range.bytes;
    if (!here && came && mutant(WRONG_CHUNK_AWAITED))
        return;
    place->state = here ? PLACE_HERE : PLACE_MISSING;
    place->asked = place->received = 0;
    if (here)
        place->tries = 0;
    else if (came && !came_wrong(replica, place, "a chunk", out))
        return;
    replica_copy_advance(replica, out);
    replica_advance(replica, now_ns, out);
}

void replica_head_lacks(struct replica *replica, struct set_range range, int error,
                        const char *reason, struct outbox *out) {
    struct copy_place *head = &replica->copy.head;
    assert(replica->setup.copied && !replica->opened && !replica->copy.request_count);
    if (error) {
        replica_fail(replica, error, reason, out);
        return;
    }
    const bool again = head->received && head->range.offset == range.offset;
    const uint8_t tries = again ? head->tries : 0;
    *head = (struct copy_place){.range = range, .state = PLACE_MISSING, .tries = tries};
    if (!range.bytes)
        replica_act(replica, &(struct action){.kind = ACTION_OPEN_SET, .setup = replica->setup});
    else if (!again || came_wrong(replica, head, "what describes the set", out))
        replica_copy_advance(replica, out);
}

void replica_set_is_copied(struct replica *replica, const struct set_range *places, uint32_t count,
                           uint32_t heads) {
    struct set_copy *copy = &replica->copy;
    assert(replica->setup.copied && !replica->opened && !copy->places && heads <= count);
    copy->places = memory_new(count, sizeof *copy->places);
    copy->count = count;
    copy->heads = heads;
    for (uint32_t i = 0; i < count; i++)
        copy->places[i].range = places[i];
}

/* ---- time ---- */

int64_t replica_copy_deadline_ns(const struct replica *replica) {
    bool waits = replica->copy.request_count && replica->coordinator && !replica->error;
    return waits && !mutant(SET_ANSWER_AWAITED) ? replica->copy.waits_ns + ANSWER_NS : INT64_MAX;
}

void replica_copy_timer(struct replica *replica, struct outbox *out) {
    if (replica->now_ns < replica_copy_deadline_ns(replica))
        return;
    replica_copy_forget_requests(replica);
    replica_copy_advance(replica, out);
}

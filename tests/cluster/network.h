/* The network: connections that deliver in order and in full while they stand.
 *
 * Messages on different connections overtake one another. A connection breaks at any moment: of
 * what is under way each end gets a part, from the front, and is told some time later, one end
 * earlier than the other. What an end sends after the break is lost. A partition holds everything
 * back between two sets of processes; if it lasts, the connections across it break. */
#ifndef DML_TESTS_CLUSTER_NETWORK_H
#define DML_TESTS_CLUSTER_NETWORK_H

#include "tests/cluster/parcel.h"
#include "tests/cluster/world.h"

struct network; /* opaque */

struct network *network_new(struct world *world);
void network_free(struct network *network);

/* How this network is: the usual delay of a message, and whether bulk is handed over in place. */
void network_set(struct network *network, int64_t delay_ns, bool shared_memory);

/* In place of the usual delay: when the first byte of what leaves at `at_ns` reaches the other end,
 * and when, now that it has, the last one does. Messages of a connection may then overtake one
 * another. */
struct pace {
    double (*sent)(const struct process *from, const struct process *to,
                   const struct parcel *parcel, double at_ns);
    double (*received)(const struct process *from, const struct process *to,
                       const struct parcel *parcel);
};
void network_pace(struct network *network, const struct pace *pace);

/* Connects; false if nobody answers. `*link` is the number of the new link at `from`; the other
 * end numbers its own. */
bool network_connect(struct process *from, struct process *to, uint32_t *link);

/* As network_connect(), within a host: no partition comes between, and bulk is handed over in
 * place.
 */
bool network_connect_local(struct process *from, struct process *to, uint32_t *link);

/* The process at the other end. */
struct process *network_peer(const struct process *process, uint32_t link);

/* The process lets go of a link, and is not told. */
void network_close(struct process *process, uint32_t link);

void network_send(struct process *process, uint32_t link, const struct outbox *outbox,
                  const struct envelope *envelope);

/* How many connections there were so far. network_break() breaks one of them, if it stands. */
uint32_t network_connections(const struct network *network);
bool network_break(struct network *network, uint32_t number);

/* The connections of `a` with `b` break; with anybody, if `b` is NULL. */
void network_separate(struct process *a, struct process *b);

/* Until `until_ns` nothing passes between the processes in `set` (a bit a number) and the others.
 */
void network_part(struct network *network, uint64_t set, int64_t until_ns);
bool network_parted(const struct network *network, const struct process *a,
                    const struct process *b);

/* ---- for the world ---- */

/* When to come again with what was posted: it waits for the end of a partition, or not all of it is
 * there. 0: it is to be delivered, or lost. */
double network_due(void *delivery);
void network_deliver(void *delivery);
enum message_type network_type(const void *delivery);
void network_lose(void *delivery);
void network_ended(struct process *process, bool orderly);

#endif

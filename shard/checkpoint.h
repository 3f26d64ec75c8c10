/* Checkpoints as bytes: what a shard must have again to go on from a step.
 *
 * A file `step-STEP` holds x, g, the best point if that is another one, Adagrad's sums (or the
 * diagonal that they became) if they are in use, the preconditioner if there is one, the margins of
 * the shard's rows if they are asked for, and those pairs and directions of the window that no
 * earlier file of the shard holds, and lists all in use with the file that holds each.
 * doc/FORMATS.md shows the layout.
 *
 * The life of a checkpoint, from the coordinator's decision to the disk:
 * coordinator/machine/recovery.c (CHECKPOINT), shard/saving.c (what is written), here (bytes),
 * shard/writer.c (the thread), base/disk.c (a file of a folder), base/file.c (whole or not at
 * all).
 */
#ifndef DML_SHARD_CHECKPOINT_H
#define DML_SHARD_CHECKPOINT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"
#include "shard/registers.h"

/* Raised whenever this program would misread a file of the former version. Files of another version
 * are refused: a run ends with the program that began it. */
#define CHECKPOINT_VERSION 1

#define CHECKPOINT_RUN_BYTES 64

/* The vectors of a file, in their order, as bits of `points`. X and G are always there. */
enum checkpoint_point {
    CHECKPOINT_X,
    CHECKPOINT_G,
    CHECKPOINT_BEST,
    CHECKPOINT_SUMS,
    CHECKPOINT_POINTS,
};

/* The register of each. */
extern const uint8_t checkpoint_registers[CHECKPOINT_POINTS];

/* The beginning of a file, byte for byte. The entries follow, one a pair and then one a direction
 * of the window, and zeros up to `header_bytes`, a multiple of 64; then, without gaps, the vectors
 * of `points`, the factor if it has a serial number (as shard/factor.h lays it out), the margins,
 * and the two vectors of each entry that this file holds: s and q of a pair, a direction and its
 * margins. */
struct checkpoint_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t checksum; /* of header_bytes bytes, with 0 in this place */
    uint64_t file_bytes;
    char run[CHECKPOINT_RUN_BYTES]; /* as HELLO named it, to "~", padded with zeros */
    uint32_t shard;
    uint32_t attempt;
    uint64_t step;
    uint64_t first, count; /* the range */
    uint32_t history_type; /* enum history_type */
    uint32_t pairs;
    uint32_t points;                       /* bit set of enum checkpoint_point */
    uint32_t factor_order;                 /* rows of the factor; 0 without one */
    uint64_t checksums[CHECKPOINT_POINTS]; /* of each of them; 0 of what is not there */
    uint64_t factor;                       /* serial number of the preconditioner; 0: none */
    uint64_t factor_checksum;              /* 0 if it has no bytes */
    uint64_t numbers;                      /* in a vector of this shard's rows (shard/rows.h) */
    uint64_t margins_checksum;             /* of the margins at x; 0 if they are not there */
    uint32_t margins;                      /* 1 if they are there, else 0 */
    uint32_t window;                       /* directions */
};

/* A pair, or a direction of the window. */
struct checkpoint_pair {
    uint32_t slot;
    uint32_t zero;
    uint64_t serial;       /* the step that formed it */
    uint64_t file;         /* the step of the file that holds it */
    uint64_t checksums[2]; /* of s and of q; of a direction and of its margins */
};

_Static_assert(sizeof(struct checkpoint_header) == 216, "the header is laid out without gaps");
_Static_assert(sizeof(struct checkpoint_pair) == 40, "pairs are laid out without gaps");

/* The header and the list of pairs of a file. */
struct checkpoint {
    struct checkpoint_header header;
    struct checkpoint_pair *pairs; /* [header.pairs], oldest first, then [header.window]; owned */
    uint64_t digest;               /* over all header_bytes, the checksum included */
};

/* Pairs and directions. Entry number `entry` is a direction from header.pairs on. */
static inline uint32_t checkpoint_entries(const struct checkpoint_header *header) {
    return header->pairs + header->window;
}

void checkpoint_release(struct checkpoint *checkpoint);

/* Names run, shard, range and history of a checkpoint of `step`, with x and g alone. */
void checkpoint_header_init(struct checkpoint_header *header, const char *run, uint32_t shard,
                            const struct registers *registers, uint64_t step);

/* ---- writing ---- */

/* The registers as they were when the job was made. */
struct checkpoint_job {
    char *folder;                      /* owned */
    struct checkpoint checkpoint;      /* writing it fills in checksums, lengths and digest */
    double *points[CHECKPOINT_POINTS]; /* copies, NULL of what is not to be there; owned */
    size_t bytes;                      /* of each of them */
    struct factor *factor;             /* held, as it never changes; or NULL */
    double *margins;                   /* a copy, or NULL; owned */
    size_t margins_bytes;
    const void *(*vectors)[2]; /* those of each entry that is to be written; NULL, NULL for one
                                  that an earlier file holds. The list is owned; the vectors are the
                                  registers', which must not change them before `taken` */
    atomic_bool taken;         /* the registers have been read */
    void (*on_taken)(void *context); /* called then, by the thread that writes; or NULL */
    void *on_taken_context;
};

/* The header says which points are to be in it, whether the factor and the margins are, and how
 * many entries there are. `with` names the pairs in use, slot and serial, oldest first, and then
 * the directions in the same way; those that `earlier` (or NULL) lists are left where they are. */
struct checkpoint_job *checkpoint_job_new(const char *folder,
                                          const struct checkpoint_header *header,
                                          const struct registers *registers,
                                          const struct checkpoint_pair *with,
                                          const struct checkpoint *earlier);
void checkpoint_job_free(struct checkpoint_job *job);

/* Writes the file. Any thread may do it, as it uses nothing but the job. */
int checkpoint_write(struct checkpoint_job *job, const struct disk *disk);

/* ---- reading ---- */

/* Loads a checkpoint into the registers. It must be the one that `expected` names and have this
 * digest, and neither it nor the earlier files that it needs may be damaged. `loaded` receives its
 * header and pairs. After a failure the contents of the registers are undefined, and the text names
 * the file, what is wrong with it and what to do: ERROR_UNAVAILABLE if it is whole but of another
 * version, ERROR_DATA if it is missing or not what it should be, ERROR_IO if it cannot be read. */
int checkpoint_load(const struct disk *disk, const char *folder,
                    const struct checkpoint_header *expected, uint64_t digest,
                    struct registers *registers, struct checkpoint *loaded);

/* Whether the folder lacks a file that checkpoint_load() would read, or has the checkpoint
 * otherwise. Then *step is the step of that file. Sections are not looked at. */
bool checkpoint_lacks(const struct disk *disk, const char *folder,
                      const struct checkpoint_header *expected, uint64_t digest, uint64_t *step);

#endif

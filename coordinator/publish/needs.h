/* Which runs of a state folder something still needs: see coordinator/publish/prune.h. */
#ifndef DML_COORDINATOR_PUBLISH_NEEDS_H
#define DML_COORDINATOR_PUBLISH_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct need;      /* of one run; opaque */
struct need_pack; /* of one source of one run; opaque */

struct needs {
    struct need *runs; /* oldest first */
    size_t count;
    struct need_pack *packs;
    size_t pack_count;
    bool unfinished;      /* some run or sweep can go on */
    int64_t decided;      /* the run that was decided about last */
    int64_t live, before; /* as the decisions have them; 0: none */
    uint32_t keep_models; /* of the newest run */
};

/* Release the needs also after a failure. */
int needs_read(struct store *store, struct needs *needs);
void needs_release(struct needs *needs);

bool needs_run(const struct needs *needs, int64_t run);             /* its checkpoints */
bool needs_failed(const struct needs *needs, int64_t run);          /* a model read back wrongly */
bool needs_model(const struct needs *needs, int64_t run);           /* besides versions */
bool needs_set(const struct needs *needs, const char *fingerprint); /* of that data */

/* What is known of the pack with this file name. Runs record the files that they were trained on,
 * and not those of a holdout or of test data. */
enum need_for_pack { PACK_UNKNOWN, PACK_NEEDED, PACK_NOT_NEEDED };
enum need_for_pack needs_pack(const struct needs *needs, const char *name);

#endif

/* Opens sets, and finds the one of some packs. */
#define _GNU_SOURCE
#include "data/set/set.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/resources.h"
#include "data/set/set_file.h"
#include "data/pack/pack_file.h"

const struct container_kind set_kind = {"DMLSET\n\n", SET_VERSION, "set"};

struct set {
    struct container container;
    const struct set_facts *facts;
    const struct set_chunk *chunk;
    const struct set_tile *tile;          /* of a set in tiles; else NULL */
    const struct set_weights *weights;    /* or NULL */
    const double *class_weight;           /* or NULL */
    const struct offset_summary *offsets; /* or NULL */
    struct set_info info;
    const char **class_name, **name;
    const char *first_pack;
    struct table *table;
    struct label_lists lists;
    atomic_uchar *verified;   /* of each chunk, and each tile after them: enum verified */
    int descriptor;           /* of the file, to see whether it changes */
    _Atomic uint64_t stamp;   /* of the file as `verified` was found; 0: none yet */
    bool looked;              /* set_look() is called before rows are used */
    atomic_bool changed;      /* rows may have been used of which another content was verified */
    struct chunk_cache *file; /* of a partial set: what is mapped; else NULL */
    uint32_t used_first, used_end;       /* of a partial set: as set_look() was called last */
    _Atomic(struct chunk_cache *) cache; /* a copy, or, of a partial set, what its file has no room
                                            for; or NULL */
    double *squares;                     /* see set_squares() */
};

/* Where a chunk was found sound. */
enum verified { VERIFIED_NOT, VERIFIED_SET, VERIFIED_COPY };

/* The section is there if rows have weights. */
static int map_weights(struct set *set) {
    size_t length;
    set->class_weight = container_get(&set->container, SET_OF_CLASS, &length);
    if (set->class_weight && length != set->facts->classes * sizeof *set->class_weight)
        return container_damaged(&set->container, "the weights of classes are damaged");
    set->weights = container_get(&set->container, SET_WEIGHTS, &length);
    if (!set->weights || (length == sizeof *set->weights && set->weights->sum > 0))
        return 0;
    return container_damaged(&set->container, "the sums of weights are damaged");
}

/* Offsets are there if rows have some. */
static int map_facts(struct set *set) {
    size_t length;
    const struct set_facts_stored *stored = container_get(&set->container, SET_FACTS, &length);
    if (!stored || (length != sizeof stored->facts && length != sizeof *stored))
        return container_damaged(&set->container, "its facts have another length");
    set->facts = &stored->facts;
    set->offsets = length == sizeof *stored ? &stored->offsets : NULL;
    if (set->offsets && !(set->offsets->least <= set->offsets->most))
        return container_damaged(&set->container, "the summary of offsets is damaged");
    return 0;
}

/* The classes of lists. Which list a row has is in its chunk, which has a checksum. */
static int map_lists(struct set *set) {
    size_t length, listed;
    struct label_lists *lists = &set->lists;
    lists->start = container_get(&set->container, SET_LISTS, &length);
    lists->class = container_get(&set->container, SET_LISTED, &listed);
    bool sound = lists->start && length >= 2 * sizeof(uint32_t) && !(length % sizeof(uint32_t));
    lists->count = sound ? (uint32_t)(length / sizeof(uint32_t)) - 1 : 0;
    sound = sound && !lists->start[0] && lists->start[lists->count] * sizeof(uint32_t) == listed;
    for (uint32_t i = 0; i < lists->count && sound; i++)
        sound = lists->start[i] <= lists->start[i + 1];
    for (uint32_t i = 0; sound && i < lists->start[lists->count]; i++)
        sound = lists->class[i] < set->facts->classes;
    set->info.lists = lists;
    return sound ? 0 : container_damaged(&set->container, "its lists of labels are damaged");
}

/* How many tiles it has; false if it cannot have them. */
static bool count_tiles(const struct set_facts *facts, uint64_t *tiles) {
    uint32_t wide = facts->strip_columns;
    uint64_t features = facts->features, strips = wide ? strips_of(features, wide) : 0;
    if (!wide)
        return *tiles = 0, features <= FEATURES_MAX;
    *tiles = strips <= TILES_MAX ? strips * facts->chunks : UINT64_MAX;
    return features > wide && features <= COLUMNS_MAX && wide <= FEATURES_MAX &&
           *tiles <= TILES_MAX && !facts->dense && !facts->block_rows &&
           facts->labels != LABEL_LISTS;
}

static int map_arrays(struct set *set) {
    const struct container *container = &set->container;
    const void *chunk = NULL, *tile = NULL, *id = NULL, *order = NULL, *exponent = NULL;
    const void *targets = NULL;
    int code = map_facts(set);
    if (code)
        return code;
    uint64_t features = set->facts->features, tiles;
    if (!count_tiles(set->facts, &tiles))
        return container_damaged(container, "it cannot be in such tiles");
    const struct container_wanted wanted[] = {
        {SET_CHUNKS, set->facts->chunks, sizeof *set->chunk, &chunk},
        {SET_TILES, tiles, sizeof *set->tile, &tile},
        {SET_IDS, features, sizeof(uint64_t), &id},
        {SET_ORDER, features, column_number_bytes(features), &order},
        {SET_EXPONENTS, features + 1, sizeof(int16_t), &exponent},
        {SET_TARGETS, 1, sizeof *set->info.targets, &targets},
    };
    code = container_arrays(container, wanted, set->facts->labels == LABEL_TARGET ? 6 : 5);
    if (!code)
        code = map_weights(set);
    if (!code && set->facts->labels == LABEL_LISTS)
        code = map_lists(set);
    set->chunk = chunk;
    set->tile = tile;
    set->info.targets = targets;
    set->info.feature_id = id;
    set->info.original_order = column_order_of(order, features);
    set->info.exponent = exponent;
    return code;
}

static int map_texts(struct set *set) {
    const struct container *container = &set->container;
    const struct set_facts *facts = set->facts;
    const char **source = NULL;
    int code = container_strings(container, SET_CLASSES, facts->classes, &set->class_name);
    if (!code && facts->named)
        code = container_strings(container, SET_NAMES, facts->features, &set->name);
    if (!code)
        code = container_strings(container, SET_SOURCES, 2 * (uint64_t)facts->sources, &source);
    if (code)
        return code;
    set->first_pack = facts->sources ? source[1] : "";
    free(source);
    return container_table(container, SET_TABLE, &set->table);
}

/* How many values the text had of each column, what the words of a table weigh, if they do, and the
 * centres of columns, if there are any. */
static int map_counts(struct set *set) {
    const void *counts = NULL;
    size_t length;
    bool weighs = set->table && table_has_texts(set->table) && table_weighs_words(set->table);
    uint64_t features = set->facts->features;
    uint64_t lists = weighs ? 2 : 1, all = lists * features * sizeof(uint64_t);
    container_get(&set->container, SET_COUNTS, &length);
    bool centred = length > all;
    int code = container_array(&set->container, SET_COUNTS, (lists + centred) * features,
                               sizeof(uint64_t), &counts);
    set->info.counts = counts;
    set->info.idf = code || !weighs ? NULL : (const double *)counts + features;
    const double *centre = code || !centred ? NULL : (const double *)counts + lists * features;
    set->info.centre = centre;
    for (uint64_t j = 0; centre && j < features; j++)
        if (!isfinite(centre[j]))
            return container_damaged(&set->container, "the centres of columns are damaged");
    return code;
}

static void fill_info(struct set *set) {
    const struct set_facts *facts = set->facts;
    struct set_info *info = &set->info;
    info->rows = facts->rows;
    info->values = facts->values;
    info->features = facts->features;
    info->chunks = facts->chunks;
    info->block_rows = facts->block_rows;
    info->strip_columns = facts->strip_columns;
    info->dense = facts->dense;
    info->type = facts->type;
    info->labels = facts->labels;
    info->classes = facts->classes;
    info->class_names = set->class_name;
    info->label_max_abs = facts->label_max_abs;
    info->feature_names = set->name;
    info->table = set->table;
    info->uniform = facts->uniform;
    info->uniform_exponent = facts->uniform_exponent;
    info->fingerprint = facts->fingerprint;
    info->rejected = facts->rejected;
    info->fold = facts->fold;
    info->holdout = facts->holdout;
    info->has_offsets = set->offsets != NULL;
    if (set->offsets)
        info->offsets = *set->offsets;
    info->weighted = set->weights != NULL;
    info->class_weight = set->class_weight;
    info->weight_exponent = info->weighted ? set->weights->exponent : 0;
    info->weight_sum = info->weighted ? set->weights->sum : (double)facts->rows;
    info->holdout_weight_sum =
        info->weighted ? set->weights->holdout_sum : (double)facts->holdout_rows;
    info->weight_total = ldexp(info->weight_sum, -info->weight_exponent);
    info->rows_held_out = facts->rows_held_out;
    info->holdout_chunks = facts->holdout_chunks;
    info->holdout_rows = facts->holdout_rows;
    info->holdout_unseen = facts->holdout_unseen;
}

/* Chunks have the rows of training, and then those of the holdout, one after the other. */
static bool rows_follow(const struct set_facts *facts, const struct set_chunk *chunk) {
    const uint32_t training = facts->chunks - facts->holdout_chunks;
    uint64_t row = 0;
    bool follow = true;
    for (uint32_t i = 0; i < facts->chunks && follow; i++) {
        if (i == training && row != facts->rows)
            return false;
        row = i == training ? 0 : row;
        follow = chunk[i].first_row == row;
        row += chunk[i].rows;
    }
    return follow && row == (facts->holdout_chunks ? facts->holdout_rows : facts->rows);
}

static bool within(const struct set *set, uint64_t offset, uint64_t bytes) {
    return offset <= set->container.length && bytes <= set->container.length - offset;
}

static int check_tiles(const struct set *set) {
    for (uint32_t chunk = 0; chunk < set->facts->chunks; chunk++) {
        uint64_t left = set->chunk[chunk].values;
        for (uint32_t i = chunk; i < set_tiles(&set->info); i += set->facts->chunks) {
            const struct set_tile *tile = &set->tile[i];
            if (tile->values > left || !within(set, tile->offset, tile->bytes) ||
                set_tile_layout(&set->chunk[chunk], tile->values).bytes != tile->bytes)
                return container_damaged(&set->container, "a tile is out of bounds");
            left -= tile->values;
        }
        if (left)
            return container_damaged(&set->container, "tiles lack values of their chunk");
    }
    return 0;
}

static int check_bounds(const struct set *set) {
    const struct set_facts *facts = set->facts;
    uint32_t each = facts->block_rows;
    if (facts->holdout_chunks > facts->chunks)
        return container_damaged(&set->container, "it has more chunks of the holdout than chunks");
    if (facts->block_rows > SET_BLOCK_ROWS)
        return container_damaged(&set->container, "its chunks have another number of rows");
    if (!rows_follow(facts, set->chunk))
        return container_damaged(&set->container, "its chunks have other rows than it counts");
    for (uint32_t i = 0; i < facts->chunks; i++) {
        const struct set_chunk *chunk = &set->chunk[i];
        /* Where a chunk of training of a shuffled set begins and ends. */
        uint64_t first = (uint64_t)i * each, left = facts->rows - first;
        bool is_block = first < facts->rows && chunk->first_row == first &&
                        chunk->rows == (left < each ? left : each);
        if (each && i < facts->chunks - facts->holdout_chunks && !is_block)
            return container_damaged(&set->container, "a chunk has other rows than its own");
        uint64_t bytes =
            set->tile ? set_head_layout(chunk).bytes : set_chunk_layout(chunk, facts->dense).bytes;
        if (!within(set, chunk->offset, chunk->bytes) || chunk->type > VALUE_DOUBLE ||
            chunk->weighted != (set->weights != NULL) || chunk->shifted != (set->offsets != NULL) ||
            chunk->clustered != set->chunk[0].clustered || bytes != chunk->bytes)
            return container_damaged(&set->container, "a chunk is out of bounds");
    }
    return set->tile ? check_tiles(set) : 0;
}

/* `code` is what opening the container came to. Frees the set after an error. */
static int finish_opening(struct set *set, int code, struct set **opened) {
    if (!code)
        code = map_arrays(set);
    if (!code)
        code = map_texts(set);
    if (!code)
        code = map_counts(set);
    if (!code) {
        fill_info(set);
        code = check_bounds(set);
    }
    if (code) {
        set_close(set);
        return code;
    }
    set->verified =
        memory_new((size_t)set->facts->chunks + set_tiles(&set->info), sizeof *set->verified);
    *opened = set;
    return 0;
}

int set_open(const char *path, struct set **opened) {
    struct set *set = memory_new(1, sizeof *set);
    set->descriptor = -1;
    int code = container_open(&set->container, &set_kind, path);
    if (!code && (set->descriptor = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        code = error_set_errno(ERROR_IO, "cannot open %s", path);
    return finish_opening(set, code, opened);
}

int set_open_partial(struct chunk_cache *file, uint64_t bytes, struct set **opened) {
    struct set *set = memory_new(1, sizeof *set);
    set->file = file;
    set->descriptor = dup(chunk_cache_descriptor(file));
    int code = set->descriptor < 0
                   ? error_set_errno(ERROR_IO, "cannot open %s twice", chunk_cache_path(file))
                   : 0;
    if (!code)
        code = container_over(&set->container, &set_kind, chunk_cache_path(file),
                              chunk_cache_at(file, 0), bytes);
    return finish_opening(set, code, opened);
}

void set_remove_copy(struct set *set) {
    assert(set->file);
    chunk_cache_remove(set->file);
}

void set_close(struct set *set) {
    if (!set)
        return;
    free(set->class_name);
    free(set->name);
    table_free(set->table);
    free(set->verified);
    set_forget_squares(set);
    chunk_cache_close(set->cache);
    if (set->descriptor >= 0)
        close(set->descriptor);
    container_close(&set->container);
    chunk_cache_close(set->file);
    free(set);
}

int set_copy_to(struct set *set, const char *folder) {
    assert(!set->cache && !set->file); /* before the first chunk is read */
    struct chunk_cache *cache = NULL;
    int code = chunk_cache_open(folder, set->info.fingerprint, set->container.length, &cache);
    set->cache = cache;
    return code;
}

const char *set_first_pack(const struct set *set) {
    return set->first_pack;
}

const char *set_path(const struct set *set) {
    return set->container.path;
}

uint32_t *set_ranks(const struct set_info *info) {
    const uint32_t *column = info->original_order.narrow;
    uint32_t *rank = memory_new(info->features, sizeof *rank);
    bool same = true;
    assert(!info->strip_columns && info->features <= FEATURES_MAX);
    for (uint32_t i = 0; i < info->features; i++) {
        rank[column[i]] = i;
        same &= column[i] == i;
    }
    if (same)
        free(rank);
    return same ? NULL : rank;
}

const struct set_info *set_info(const struct set *set) {
    return &set->info;
}

double **set_squares(struct set *set) {
    return &set->squares;
}

void set_forget_squares(struct set *set) {
    memory_unmap(set->squares, set->info.features * sizeof *set->squares);
    set->squares = NULL;
}

/* What is verified in one go: a chunk, the head of one, or a tile. */
struct piece {
    uint64_t offset, bytes, checksum;
    size_t number; /* in `verified` */
};

/* ---- whether what was verified is still so ----
 *
 * The bytes of a mapped file can become others: somebody writes to the file, or its pages leave
 * memory and are read from the disk again, which may have decayed. The first shows in what the
 * system says about the file; pages that are read again were not in memory before. Either costs one
 * call of the system a chunk, where a checksum of a chunk costs as much as a tenth of its use. */

#define PAGES_AT_ONCE 1024

/* A hash over all that changes when a file does; 0 if it was changed so lately that another change
 * would have the same time. Files take their times from a clock that the system moves on tick by
 * tick: once it has moved beyond the last change, a later change has another time. The clock is
 * read first, so a change after that counts as later. ERROR_IO if the file is shorter than it was.
 */
static int read_stamp(const struct set *set, uint64_t *stamp) {
    const int64_t least_tick_ns = NS_PER_MS;
    struct stat status;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (fstat(set->descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot look at %s", set->container.path);
    if ((uint64_t)status.st_size < set->container.length)
        return error_set(
            ERROR_IO,
            "%s was cut short while it was used: it has %lld of %zu bytes; give the same "
            "command again: it makes the file again",
            set->container.path, (long long)status.st_size, set->container.length);
    const int64_t facts[] = {(int64_t)status.st_ino,         (int64_t)status.st_size,
                             (int64_t)status.st_mtim.tv_sec, (int64_t)status.st_mtim.tv_nsec,
                             (int64_t)status.st_ctim.tv_sec, (int64_t)status.st_ctim.tv_nsec};
    const int64_t changed_ns = (int64_t)status.st_ctim.tv_sec * NS_PER_S + status.st_ctim.tv_nsec;
    const int64_t age_ns = (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec - changed_ns;
    *stamp = age_ns >= 0 && age_ns < least_tick_ns ? 0 : hash64(facts, sizeof facts) | 1;
    return 0;
}

static void forget_verified(struct set *set) {
    const size_t pieces = (size_t)set->info.chunks + set_tiles(&set->info);
    for (size_t i = 0; i < pieces; i++)
        atomic_store_explicit(&set->verified[i], VERIFIED_NOT, memory_order_relaxed);
}

/* Forgets what was verified if the file has changed since, or may have. To be called before
 * anything of the mapping is touched, the facts of the set included. */
static int look_at_file(struct set *set) {
    uint64_t now = 0, before = atomic_load(&set->stamp);
    int code = read_stamp(set, &now);
    if (code || (now && now == before))
        return code;
    forget_verified(set);
    if (before)
        atomic_store(&set->changed, true);
    atomic_store(&set->stamp, now);
    return 0;
}

/* Where the system does not say, for files of others, all counts as being there. */
static bool is_in_memory(const uint8_t *at, uint64_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at / page * page;
    const size_t pages = ((uintptr_t)at + bytes - first + page - 1) / page;
    unsigned char there[PAGES_AT_ONCE];
    for (size_t done = 0; done < pages; done += PAGES_AT_ONCE) {
        size_t count = pages - done < PAGES_AT_ONCE ? pages - done : PAGES_AT_ONCE;
        if (mincore((void *)(first + done * page), count * page, there))
            return true;
        for (size_t i = 0; i < count; i++)
            if (!(there[i] & 1))
                return false;
    }
    return true;
}

static bool piece_is_valid(const struct piece *piece, const uint8_t *at) {
    return hash64(at, piece->bytes) == piece->checksum;
}

/* What was never put into a file is not read: its blocks would be made. */
static bool partial_has(const struct chunk_cache *cache, const struct piece *piece) {
    return cache && !chunk_cache_is_hole(cache, piece->offset, piece->bytes) &&
           piece_is_valid(piece, chunk_cache_at(cache, piece->offset));
}

static enum verified find_piece(struct set *set, const struct piece *piece) {
    if (set->file)
        return partial_has(set->file, piece)    ? VERIFIED_SET
               : partial_has(set->cache, piece) ? VERIFIED_COPY
                                                : VERIFIED_NOT;
    const uint8_t *own = set->container.data + piece->offset;
    if (set->cache && piece_is_valid(piece, chunk_cache_at(set->cache, piece->offset)))
        return VERIFIED_COPY;
    if (!piece_is_valid(piece, own))
        return VERIFIED_NOT;
    if (!set->cache)
        return VERIFIED_SET;
    chunk_cache_put(set->cache, piece->offset, own, piece->bytes);
    bool copied = piece_is_valid(piece, chunk_cache_at(set->cache, piece->offset));
    return copied ? VERIFIED_COPY : VERIFIED_SET;
}

static const uint8_t *piece_at(const struct set *set, const struct piece *piece,
                               unsigned verified) {
    return verified == VERIFIED_COPY ? chunk_cache_at(set->cache, piece->offset)
                                     : set->container.data + piece->offset;
}

/* Where the piece is; NULL if it is damaged. Two threads may verify the same piece at once: the
 * bytes do not change, so each finds what will do. The flag passes on no other memory, so relaxed
 * order is enough. */
static const uint8_t *verify_piece(struct set *set, const struct piece *piece) {
    assert(piece->number < (size_t)set->info.chunks + set_tiles(&set->info));
    atomic_uchar *flag = &set->verified[piece->number];
    unsigned verified = atomic_load_explicit(flag, memory_order_relaxed);
    bool known =
        verified && (set->looked || is_in_memory(piece_at(set, piece, verified), piece->bytes));
    if (!known) {
        verified = find_piece(set, piece);
        atomic_store_explicit(flag, (unsigned char)verified, memory_order_relaxed);
    }
    return verified ? piece_at(set, piece, verified) : NULL;
}

/* A chunk, or its head. */
static struct piece chunk_piece(const struct set *set, uint32_t number) {
    assert(number < set->facts->chunks);
    const struct set_chunk *chunk = &set->chunk[number];
    return (struct piece){chunk->offset, chunk->bytes, chunk->checksum, number};
}

static struct piece tile_piece(const struct set *set, uint32_t number) {
    assert(set->tile && number < set_tiles(&set->info));
    const struct set_tile *tile = &set->tile[number];
    return (struct piece){tile->offset, tile->bytes, tile->checksum,
                          (size_t)set->facts->chunks + number};
}

/* NULL after an error. */
static const uint8_t *verify(struct set *set, struct piece piece, const char *what,
                             uint32_t number) {
    const uint8_t *data = verify_piece(set, &piece);
    if (!data && set->file)
        error_set(ERROR_UNAVAILABLE, "%s: the copy of %s %u is damaged; it is fetched again",
                  set->container.path, what, number);
    else if (!data)
        error_set(ERROR_DATA,
                  "%s: the checksum of %s %u is wrong; give the same command again: it makes the "
                  "file again",
                  set->container.path, what, number);
    return data;
}

/* Whoever uses a partial set may get the piece again. */
static int damage_of(const struct set *set) {
    return set->file ? ERROR_UNAVAILABLE : ERROR_DATA;
}

int set_verify(struct set *set) {
    assert(!set->file);
    int code = look_at_file(set);
    if (code)
        return code;
    forget_verified(set);
    for (uint32_t i = 0; i < set->info.chunks; i++)
        if (!verify(set, chunk_piece(set, i), "chunk", i))
            return ERROR_DATA;
    for (uint32_t i = 0; i < set_tiles(&set->info); i++)
        if (!verify(set, tile_piece(set, i), "tile", i))
            return ERROR_DATA;
    return 0;
}

static struct piece piece_numbered(const struct set *set, uint32_t number) {
    return set->tile ? tile_piece(set, number) : chunk_piece(set, number);
}

static unsigned verified_of(const struct set *set, size_t piece) {
    return atomic_load_explicit(&set->verified[piece], memory_order_relaxed);
}

/* The end of the pieces from `first` on that lie one after the other, in the file or in the copy.
 */
static uint32_t find_run(const struct set *set, uint32_t first, uint32_t end, uint64_t *stop) {
    assert(first < end);
    const struct piece begin = piece_numbered(set, first);
    *stop = begin.offset + begin.bytes;
    for (uint32_t i = first + 1; i < end; i++) {
        const struct piece next = piece_numbered(set, i);
        if (next.offset < *stop || next.offset - *stop > CONTAINER_ALIGNMENT ||
            verified_of(set, next.number) != verified_of(set, begin.number))
            return i;
        *stop = next.offset + next.bytes;
    }
    return end;
}

static void forget_piece(struct set *set, size_t number) {
    atomic_store_explicit(&set->verified[number], VERIFIED_NOT, memory_order_relaxed);
}

/* Forgets the heads of tiles that are not in memory any more: they lie apart from the tiles. */
static void look_at_heads(struct set *set, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const uint32_t number = i % set->info.chunks;
        const struct piece head = chunk_piece(set, number);
        if (!is_in_memory(piece_at(set, &head, verified_of(set, number)), head.bytes))
            forget_piece(set, number);
    }
}

int set_look(struct set *set, uint32_t first, uint32_t count) {
    const uint32_t there = set->info.strip_columns ? set_tiles(&set->info) : set->info.chunks;
    int code = look_at_file(set);
    set->looked = !code; /* or the use of rows is to find what is wrong, before it touches them */
    if (code || first >= there)
        return code;
    const uint32_t end = count < there - first ? first + count : there;
    set->used_first = first;
    set->used_end = end;
    for (uint32_t i = first, next; i < end; i = next) {
        const struct piece begin = piece_numbered(set, i);
        uint64_t stop;
        next = find_run(set, i, end, &stop);
        const bool there_still = is_in_memory(piece_at(set, &begin, verified_of(set, begin.number)),
                                              stop - begin.offset);
        for (uint32_t k = i; !there_still && k < next; k++)
            forget_piece(set, piece_numbered(set, k).number);
    }
    if (set->tile)
        look_at_heads(set, first, end);
    return 0;
}

/* While a partial set grows its file changes all the time. Only what was used must be as it was. */
static int settle_partial(struct set *set) {
    const uint64_t before = atomic_load(&set->stamp);
    int code = look_at_file(set);
    if (code || (before && before == atomic_load(&set->stamp)))
        return code;
    for (uint32_t i = set->used_first; i < set->used_end; i++) {
        const uint32_t chunk = i % set->info.chunks;
        if (!verify(set, chunk_piece(set, chunk), "chunk", chunk) ||
            (set->tile && !verify(set, tile_piece(set, i), "tile", i)))
            return ERROR_UNAVAILABLE;
    }
    return 0;
}

int set_settle(struct set *set) {
    if (set->file)
        return settle_partial(set);
    int code = look_at_file(set);
    if (code || !atomic_exchange(&set->changed, false))
        return code;
    return set_verify(set);
}

int set_chunk(struct set *set, uint32_t number, struct rows *rows) {
    assert(number < set->info.chunks);
    const struct set_facts *facts = set->facts;
    int code = set->looked ? 0 : look_at_file(set);
    if (code)
        return code;
    if (number >= facts->chunks || set->tile)
        return error_set(ERROR_INTERNAL, "%s: there is no %schunk %u", set->container.path,
                         set->tile ? "whole " : "", number);
    const struct set_chunk *chunk = &set->chunk[number];
    const uint8_t *data = verify(set, chunk_piece(set, number), "chunk", number);
    if (!data)
        return damage_of(set);
    struct set_chunk_layout layout = set_chunk_layout(chunk, facts->dense);
    *rows = (struct rows){
        .count = chunk->rows,
        .features = (uint32_t)set->info.features,
        .values = chunk->values,
        .dense = facts->dense,
        .type = chunk->type,
        .start = facts->dense ? NULL : (const void *)(data + layout.start),
        .feature = facts->dense ? NULL : (const void *)(data + layout.feature),
        .value = chunk->type == VALUE_ONES ? NULL : data + layout.value,
        .label = (const void *)(data + layout.label),
        .lists = set->info.lists,
        .weight = chunk->weighted ? (const void *)(data + layout.weight) : NULL,
        .offset = chunk->shifted ? (const void *)(data + layout.offset) : NULL,
        .cluster = chunk->clustered ? (const void *)(data + layout.cluster) : NULL,
        .first = chunk->first_row + (number < set_training_chunks(&set->info) ? 0 : facts->rows),
    };
    return 0;
}

/* Those that are held out lie after all others. */
static uint64_t first_row_of(const struct set *set, uint32_t number) {
    bool held = number >= set_training_chunks(&set->info);
    return set->chunk[number].first_row + (held ? set->facts->rows : 0);
}

uint64_t *set_first_rows(const struct set *set) {
    uint32_t chunks = set->info.chunks;
    uint64_t *first = memory_new((size_t)chunks + 1, sizeof *first);
    for (uint32_t i = 0; i < chunks; i++) {
        first[i] = first_row_of(set, i);
        first[i + 1] = first[i] + set->chunk[i].rows;
    }
    assert(first[chunks] >= set->info.rows);
    return first;
}

struct rows_most set_rows_most(const struct set *set) {
    struct rows_most most = {.dense = set->info.dense};
    for (uint32_t i = 0; i < set->info.chunks; i++) {
        const struct set_chunk *chunk = &set->chunk[i];
        most.count = chunk->rows > most.count ? chunk->rows : most.count;
        most.types |= 1U << chunk->type;
        if (!set->tile && chunk->values > most.values)
            most.values = chunk->values;
    }
    for (uint32_t i = 0; i < set_tiles(&set->info); i++)
        most.values = set->tile[i].values > most.values ? set->tile[i].values : most.values;
    return most;
}

int set_tile(struct set *set, uint32_t number, struct rows *rows) {
    const struct set_facts *facts = set->facts;
    int code = set->looked ? 0 : look_at_file(set);
    if (code)
        return code;
    if (number >= set_tiles(&set->info))
        return error_set(ERROR_INTERNAL, "%s: there is no tile %u", set->container.path, number);
    const uint32_t wide = facts->strip_columns;
    const uint64_t behind = set->info.features - number / facts->chunks * (uint64_t)wide;
    const uint32_t of_chunk = number % facts->chunks;
    const struct set_chunk *chunk = &set->chunk[of_chunk];
    const struct set_tile *tile = &set->tile[number];
    const uint8_t *head = verify(set, chunk_piece(set, of_chunk), "chunk", of_chunk);
    if (!head)
        return damage_of(set);
    const uint8_t *data = verify(set, tile_piece(set, number), "tile", number);
    if (!data)
        return damage_of(set);
    struct set_head_layout besides = set_head_layout(chunk);
    struct set_tile_layout layout = set_tile_layout(chunk, tile->values);
    *rows = (struct rows){
        .count = chunk->rows,
        .features = behind < wide ? (uint32_t)behind : wide,
        .values = tile->values,
        .type = chunk->type,
        .start = (const void *)(data + layout.start),
        .feature = (const void *)(data + layout.feature),
        .value = chunk->type == VALUE_ONES ? NULL : data + layout.value,
        .label = (const void *)(head + besides.label),
        .lists = set->info.lists,
        .weight = chunk->weighted ? (const void *)(head + besides.weight) : NULL,
        .offset = chunk->shifted ? (const void *)(head + besides.offset) : NULL,
        .size = (const void *)(head + besides.size),
        .first = first_row_of(set, of_chunk),
    };
    return 0;
}

/* ---- for copies that come in pieces ---- */

const void *set_bytes(const struct set *set, uint64_t offset, uint64_t bytes) {
    return within(set, offset, bytes) ? set->container.data + offset : NULL;
}

uint64_t set_length(const struct set *set) {
    return set->container.length;
}

uint32_t set_places(const struct set *set) {
    return set->info.chunks + set_tiles(&set->info);
}

static struct piece place_piece(const struct set *set, uint32_t place) {
    assert(place < set_places(set));
    return place < set->info.chunks ? chunk_piece(set, place)
                                    : tile_piece(set, place - set->info.chunks);
}

uint64_t set_place(const struct set *set, uint32_t place, uint64_t *offset) {
    const struct piece piece = place_piece(set, place);
    *offset = piece.offset;
    return piece.bytes;
}

bool set_has(struct set *set, uint32_t place) {
    const struct piece piece = place_piece(set, place);
    return find_piece(set, &piece) != VERIFIED_NOT;
}

/* Memory takes what the disk does not, as long as it leaves most of what is free to others. */
static int put_into_memory(struct set *set, const struct piece *piece, const void *data) {
    enum { SHARE_OF_MEMORY = 4 };
    struct chunk_cache *cache = set->cache;
    int code = 0;
    if (memory_limit_of_all().bytes / SHARE_OF_MEMORY < (double)piece->bytes)
        return error_set(
            ERROR_UNAVAILABLE,
            "no room for a copy of the rows: the disk of %s is full, and little memory "
            "is free; start the worker with --folder on a disk that has %s",
            chunk_cache_path(set->file), memory_words((double)set->container.length));
    if (!cache)
        code = chunk_cache_open(NULL, "", set->container.length, &cache);
    if (!code && !chunk_cache_put(cache, piece->offset, data, piece->bytes))
        code = error_set(ERROR_UNAVAILABLE, "no memory for a copy of the rows");
    set->cache = cache;
    return code;
}

int set_put(struct set *set, uint32_t place, const void *data) {
    const struct piece piece = place_piece(set, place);
    assert(set->file);
    if (!piece_is_valid(&piece, data) ||
        chunk_cache_put(set->file, piece.offset, data, piece.bytes))
        return 0;
    return put_into_memory(set, &piece, data);
}

static void hash_packs(struct hash_stream *stream, struct pack *const *packs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        hash_stream_add(stream, pack_fingerprint(packs[i]), HASH128_TEXT);
}

static bool has_crosses(const struct set_options *options) {
    return options->cross && *options->cross;
}

/* The name of the set that these packs give. */
static char *make_path(const char *sets, struct pack *const *packs, uint32_t count,
                       const struct set_options *options) {
    struct hash_stream *stream = hash_stream_new();
    uint64_t numbers[] = {SET_VERSION,
                          options->labels,
                          options->positive != NULL,
                          options->keep_holdout + 2 * (uint64_t)options->shuffled +
                              4 * (uint64_t)options->centred,
                          options->category_least,
                          options->bins + ((uint64_t)options->text_values << 32),
                          count,
                          options->holdout_count};
    hash_stream_add(stream, numbers, sizeof numbers);
    hash_stream_add(stream, &options->holdout, sizeof options->holdout);
    if (options->fold.folds) {
        uint64_t fold[] = {options->fold.folds, options->fold.fold, options->fold.seed};
        hash_stream_add(stream, fold, sizeof fold);
    }
    if (options->shuffled) {
        uint64_t order[] = {options->shuffle_seed, options->block_rows, options->chunks_least};
        hash_stream_add(stream, order, sizeof order);
    }
    if (options->monotone && *options->monotone)
        hash_stream_add(stream, "monotone", sizeof "monotone");
    for (const char *const *rule = options->monotone; rule && *rule; rule++)
        hash_stream_add(stream, *rule, strlen(*rule) + 1);
    if (has_crosses(options))
        hash_stream_add(stream, &options->cross_least, sizeof options->cross_least);
    for (const char *const *cross = options->cross; cross && *cross; cross++)
        hash_stream_add(stream, *cross, strlen(*cross) + 1);
    if (options->strip_columns) {
        uint64_t strips[] = {options->strip_columns, options->whole_columns};
        hash_stream_add(stream, strips, sizeof strips);
    }
    if (options->positive)
        hash_stream_add(stream, options->positive, strlen(options->positive) + 1);
    if (options->separator)
        hash_stream_add(stream, &options->separator, sizeof options->separator);
    for (const char *const *label = options->order; label && *label; label++)
        hash_stream_add(stream, *label, strlen(*label) + 1);
    for (const char *const *weight = options->class_weight; weight && *weight; weight++)
        hash_stream_add(stream, *weight, strlen(*weight) + 1);
    hash_packs(stream, packs, count);
    hash_packs(stream, options->holdout_packs, options->holdout_count);
    char key[HASH128_TEXT];
    hash_stream_text(stream, key);
    hash_stream_free(stream);
    return memory_format("%s/%s.set", sets, key);
}

static struct set *reuse_set(const char *path) {
    struct stat status;
    struct set *set = NULL;
    if (stat(path, &status) == 0 && set_open(path, &set)) {
        log_warning("%s; making it again now", error_text());
        error_clear();
    }
    return set;
}

/* Whether there can be more columns than sets have that are not in tiles: those of all packs, and
 * for each column of a table its bins and that it is missing, or rare. How many crosses there are
 * only a merge can tell. */
static bool may_be_wide(struct pack *const *packs, uint32_t count,
                        const struct set_options *options) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most += packs[i]->facts->features +
                (packs[i]->table ? packs[i]->table->columns * (options->bins + UINT64_C(3)) : 0);
    return has_crosses(options) || (most > options->strip_columns && most > options->whole_columns);
}

/* Clears options that make no difference, so that the same set is found again without them. */
static struct set_options simplify(const struct set_options *options, struct pack *const *packs,
                                   uint32_t count) {
    struct set_options simple = *options;
    if (simple.labels != LABEL_BINARY)
        simple.positive = NULL;
    if (simple.labels != LABEL_LISTS)
        simple.separator = 0;
    if (simple.labels != LABEL_ORDERED || !simple.order || !*simple.order)
        simple.order = NULL;
    if (simple.labels == LABEL_TARGET)
        simple.class_weight = NULL;
    if (!simple.keep_holdout)
        simple.holdout_count = 0;
    if (simple.holdout == 0 && !simple.holdout_count)
        simple.keep_holdout = false;
    if (simple.shuffled || simple.labels == LABEL_LISTS || !may_be_wide(packs, count, &simple))
        simple.strip_columns = 0;
    return simple;
}

int set_of_packs(const char *sets, struct pack *const *packs, uint32_t count,
                 const struct set_options *options, struct set **set, bool *made) {
    struct set_options simple = simplify(options, packs, count);
    int code = folder_make(sets, 0755);
    if (code)
        return code;
    char *path = make_path(sets, packs, count, &simple);
    *set = reuse_set(path);
    *made = !*set;
    if (*made)
        code = set_write(path, packs, count, &simple);
    if (*made && !code)
        code = set_open(path, set);
    free(path);
    assert(code || *set);
    return code;
}

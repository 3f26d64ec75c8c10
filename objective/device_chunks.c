#include "objective/device_chunks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "objective/device_arranged.h"

/* Chunks that stay lie in slabs: memory for one chunk at a time would take long to get. Each slab
 * is as large as all before it, within these bounds. */
#define SLAB_BYTES_MIN (UINT64_C(1) << 20)
#define SLAB_BYTES_MAX (UINT64_C(64) << 20)
#define ALIGNMENT BUNDLE_ALIGNMENT

/* The arrays of a chunk, one after the other. */
#define ARRAYS 7

struct image {
    struct {
        const void *from;
        uint64_t bytes, at;
    } array[ARRAYS];
    uint64_t bytes;
};

/* What is known of a chunk that was asked for before. */
struct seen {
    bool stays;
    bool dense;
    struct device_chunk chunk; /* if it stays */
};

/* Lists of classes, by where they are on the host: all chunks of a set share them. */
struct lists {
    const uint32_t *start, *class;
    void *start_there, *class_there;
};

struct device_chunks {
    struct device *device;
    struct device_chunks_settings settings;
    struct seen *seen; /* by number */
    uint32_t seen_count;
    void **slabs;
    size_t slab_count, slab_capacity;
    uint64_t slab_at, slab_bytes; /* of the last slab: up to where it is used, and its size */
    uint64_t left;                /* of settings.bytes */
    bool full;                    /* the device had no memory to spare for a slab */
    struct lists *lists;
    size_t list_count, list_capacity;
    struct device_columns *columns; /* NULL: chunks do not list theirs */
    bool arranges;                  /* sparse rows that stay; not once there was no room for some */
    struct device_room scratch;     /* for that */
    struct device_bundle bundle;    /* of arrays that are on their way */
    struct device_chunks_usage usage;
};

/* ---- memory ---- */

int device_room_reserve(struct device *device, struct device_room *room, uint64_t bytes) {
    if (room->memory && bytes <= room->bytes)
        return 0;
    device_room_release(device, room);
    int code = device_new(device, bytes, &room->memory);
    if (!code)
        room->bytes = bytes;
    return code;
}

void device_room_release(struct device *device, struct device_room *room) {
    device_delete(device, room->memory);
    *room = (struct device_room){0};
}

struct device_chunks *device_chunks_new(struct device *device,
                                        const struct device_chunks_settings *settings) {
    struct device_chunks *chunks = memory_new(1, sizeof *chunks);
    chunks->device = device;
    chunks->settings = *settings;
    chunks->left = settings->bytes;
    chunks->arranges = settings->arranged;
    device_bundle_init(&chunks->bundle, device, QUEUE_COPY);
    chunks->columns = settings->columns ? device_columns_new(settings->features) : NULL;
    return chunks;
}

void device_chunks_free(struct device_chunks *chunks) {
    if (!chunks)
        return;
    for (size_t i = 0; i < chunks->slab_count; i++)
        device_delete(chunks->device, chunks->slabs[i]);
    for (size_t i = 0; i < chunks->list_count; i++) {
        device_delete(chunks->device, chunks->lists[i].start_there);
        device_delete(chunks->device, chunks->lists[i].class_there);
    }
    device_room_release(chunks->device, &chunks->scratch);
    device_bundle_release(&chunks->bundle);
    device_columns_free(chunks->columns);
    free(chunks->slabs);
    free(chunks->lists);
    free(chunks->seen);
    free(chunks);
}

void device_group_release(struct device *device, struct device_group *group) {
    device_room_release(device, &group->table);
    device_room_release(device, &group->buffer);
    free(group->chunks);
    *group = (struct device_group){0};
}

/* Begins a slab if there is room for it: other users of the device may have taken memory since it
 * was shared out. It is no error if the device has no memory for it, as chunks need not stay. */
static int begin_slab(struct device_chunks *chunks, uint64_t bytes) {
    uint64_t slab = chunks->settings.bytes - chunks->left;
    slab = slab < SLAB_BYTES_MIN ? SLAB_BYTES_MIN : slab > SLAB_BYTES_MAX ? SLAB_BYTES_MAX : slab;
    slab = slab > chunks->left ? chunks->left : slab;
    slab = slab > bytes ? slab : bytes;
    if (chunks->full || slab > chunks->left)
        return 0;
    uint64_t room = device_room(chunks->device);
    chunks->full = room < slab || room - slab < chunks->settings.spare;
    if (chunks->full)
        return 0;
    int code = device_bundle_flush(&chunks->bundle);
    if (code)
        return code;
    MEMORY_ROOM(chunks->slabs, chunks->slab_count, chunks->slab_capacity);
    code = device_new(chunks->device, slab, &chunks->slabs[chunks->slab_count]);
    if (code && device_is_lost(chunks->device))
        return code;
    chunks->full = code != 0;
    if (chunks->full) {
        error_clear();
        return 0;
    }
    chunks->slab_count++;
    chunks->left -= slab;
    chunks->slab_at = 0;
    chunks->slab_bytes = slab;
    return 0;
}

/* Memory for a chunk that stays; NULL: there is no room. */
static int take_from_slab(struct device_chunks *chunks, uint64_t bytes, char **memory) {
    *memory = NULL;
    if (!chunks->slab_count || bytes > chunks->slab_bytes - chunks->slab_at) {
        int code = begin_slab(chunks, bytes);
        if (code || !chunks->slab_count || bytes > chunks->slab_bytes - chunks->slab_at)
            return code;
    }
    *memory = (char *)chunks->slabs[chunks->slab_count - 1] + chunks->slab_at;
    chunks->slab_at += bytes;
    assert(chunks->slab_at <= chunks->slab_bytes);
    return 0;
}

/* ---- a chunk ---- */

/* A chunk that is being loaded. */
struct coming {
    struct rows rows;
    uint32_t number;
    uint32_t columns; /* of networks */
    struct image
        image; /* where its arrays will be in `memory`, those after them that are arranged */
    bool arranged;
    struct device_arrangement arrangement;
    char *memory;
    bool stays;
};

static void find_image(struct device_chunks *chunks, struct coming *coming) {
    const struct rows *rows = &coming->rows;
    const uint64_t count = rows->count;
    const bool plain = !rows->dense && !coming->arranged;
    size_t list_bytes = 0;
    const void *list = NULL;
    coming->columns = 0;
    if (chunks->columns && !rows->dense)
        list = device_columns_list(chunks->columns, rows, &coming->columns, &list_bytes);
    coming->image = (struct image){
        .array = {{rows->start, plain ? (count + 1) * sizeof *rows->start : 0, 0},
                  {rows->feature, plain ? rows->values * sizeof *rows->feature : 0, 0},
                  {rows->value, coming->arranged ? 0 : rows->values * value_bytes(rows->type), 0},
                  {rows->label, count * sizeof *rows->label, 0},
                  {rows->weight, rows->weight ? count * sizeof *rows->weight : 0, 0},
                  {list, list_bytes, 0},
                  {rows->offset, rows->offset ? count * sizeof *rows->offset : 0, 0}}};
    for (size_t i = 0; i < ARRAYS; i++) {
        coming->image.array[i].at = coming->image.bytes;
        coming->image.bytes +=
            (coming->image.array[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
}

static bool weighs(const struct rows *rows) {
    bool any = !rows->weight && rows->count > 0;
    for (uint32_t i = 0; rows->weight && i < rows->count && !any; i++)
        any = rows->weight[i] != 0;
    return any;
}

static struct device_chunk chunk_at(const struct coming *coming) {
    const struct image *image = &coming->image;
    const struct rows *rows = &coming->rows;
    char *memory = coming->memory;
    return (struct device_chunk){
        .rows = rows->count,
        .number = coming->number,
        .values = rows->values,
        .type = rows->type,
        .start = rows->dense ? NULL : (const void *)(memory + image->array[0].at),
        .feature = rows->dense ? NULL : (const void *)(memory + image->array[1].at),
        .value = rows->type == VALUE_ONES ? NULL : memory + image->array[2].at,
        .label = (const void *)(memory + image->array[3].at),
        .weight = rows->weight ? (const void *)(memory + image->array[4].at) : NULL,
        .offset = rows->offset ? (const void *)(memory + image->array[6].at) : NULL,
        .weighs = weighs(rows),
        .columns = coming->columns,
        .columns_list = (const void *)(memory + image->array[5].at),
    };
}

/* What is arranged follows the image. */
static int put_image(struct device_chunks *chunks, const struct coming *coming,
                     struct device_chunk *chunk) {
    const struct image *image = &coming->image;
    int code = 0;
    for (size_t i = 0; i < ARRAYS && !code; i++)
        code = device_bundle_put(&chunks->bundle, coming->memory + image->array[i].at,
                                 image->array[i].from, image->array[i].bytes);
    if (code || !coming->arranged)
        return code;
    code = device_room_reserve(chunks->device, &chunks->scratch,
                               device_arrange_scratch(&coming->arrangement, &coming->rows));
    return code ? code
                : device_arrange(&chunks->bundle, &coming->rows, &coming->arrangement,
                                 chunks->scratch.memory, coming->memory + image->bytes, chunk);
}

static int put_words(struct device_chunks *chunks, const uint32_t *words, uint64_t count,
                     void **there) {
    uint64_t bytes = count * sizeof *words;
    int code = device_new(chunks->device, bytes, there);
    return code ? code : device_put(chunks->device, QUEUE_COPY, *there, words, bytes);
}

static int set_lists(struct device_chunks *chunks, const struct label_lists *from,
                     struct device_chunk *chunk) {
    size_t i = 0;
    int code = 0;
    if (!chunks->settings.lists)
        return 0;
    while (i < chunks->list_count &&
           (chunks->lists[i].start != from->start || chunks->lists[i].class != from->class))
        i++;
    if (i == chunks->list_count) {
        MEMORY_ROOM(chunks->lists, chunks->list_count, chunks->list_capacity);
        chunks->lists[chunks->list_count++] = (struct lists){from->start, from->class, NULL, NULL};
        code = put_words(chunks, from->start, (uint64_t)from->count + 1,
                         &chunks->lists[i].start_there);
        if (!code)
            code = put_words(chunks, from->class, from->start[from->count],
                             &chunks->lists[i].class_there);
    }
    chunk->list_start = chunks->lists[i].start_there;
    chunk->list_class = chunks->lists[i].class_there;
    return code;
}

/* ---- groups ---- */

static struct seen *seen_at(struct device_chunks *chunks, uint32_t number) {
    if (number >= chunks->seen_count) {
        uint32_t count = number < UINT32_MAX / 2 ? 2 * number + 8 : UINT32_MAX;
        chunks->seen = memory_resize(chunks->seen, count, sizeof *chunks->seen);
        memset(chunks->seen + chunks->seen_count, 0,
               (count - chunks->seen_count) * sizeof *chunks->seen);
        chunks->seen_count = count;
    }
    assert(number < chunks->seen_count);
    return &chunks->seen[number];
}

/* A group that is being loaded. */
struct loading {
    struct device_chunks *chunks;
    const struct device_group_limit *limit;
    struct device_group *group;
    uint64_t buffered; /* bytes of its buffer */
    bool ended;        /* the next chunk does not fit */
};

static bool has_room(const struct loading *loading, uint32_t rows, uint32_t columns, bool dense) {
    const struct device_group *group = loading->group;
    const struct device_group_limit *limit = loading->limit;
    uint64_t chunk = dense ? limit->dense_chunk : limit->sparse_chunk;
    uint64_t bytes = limit->row * (group->rows + rows) +
                     limit->column * (group->columns + columns) +
                     chunk * ((uint64_t)group->count + 1);
    return group->count == 0 || (dense == group->dense && bytes <= limit->most);
}

static void append(struct loading *loading, const struct device_chunk *chunk, bool dense) {
    struct device_group *group = loading->group;
    MEMORY_ROOM(group->chunks, group->count, group->capacity);
    group->chunks[group->count] = *chunk;
    group->chunks[group->count].first_column = group->columns;
    group->chunks[group->count++].first_row = group->rows;
    group->columns += chunk->columns;
    if (chunk->columns > group->columns_most)
        group->columns_most = chunk->columns;
    group->rows += chunk->rows;
    group->values += chunk->values;
    group->rows_most = chunk->rows > group->rows_most ? chunk->rows : group->rows_most;
    group->values_most = chunk->values > group->values_most ? chunk->values : group->values_most;
    group->by_column += chunk->column != NULL;
    group->dense = dense;
}

/* Memory for a chunk that does not stay, in the group's buffer; NULL: it is full. */
static int take_from_buffer(struct loading *loading, uint64_t bytes, char **memory) {
    struct device_room *room = &loading->group->buffer;
    uint64_t most = loading->chunks->settings.buffer;
    if (loading->buffered == 0) {
        int code = device_bundle_flush(&loading->chunks->bundle);
        if (code)
            return code;
        code = device_room_reserve(loading->chunks->device, room, bytes > most ? bytes : most);
        if (code)
            return code;
    }
    if (bytes > room->bytes - loading->buffered)
        return 0;
    *memory = (char *)room->memory + loading->buffered;
    loading->buffered += bytes;
    assert(loading->buffered <= room->bytes);
    return 0;
}

static int find_room_to_stay(struct device_chunks *chunks, struct coming *coming) {
    if (chunks->arranges && !coming->rows.dense) {
        /* Sparse rows of a chunk that may stay; by column, too, until half of all room is taken. */
        uint64_t free_bytes = chunks->left + chunks->slab_bytes - chunks->slab_at;
        bool half = free_bytes >= chunks->settings.bytes / 2;
        coming->arranged = true;
        device_arrangement_init(&coming->arrangement, &coming->rows,
                                half && device_arranged_by_column(&coming->rows));
        find_image(chunks, coming);
    }
    int code =
        take_from_slab(chunks, coming->image.bytes + coming->arrangement.bytes, &coming->memory);
    coming->stays = coming->memory != NULL;
    if (!coming->stays && coming->arranged) {
        chunks->arranges = coming->arranged = false;
        device_arrangement_release(&coming->arrangement);
        find_image(chunks, coming);
    }
    return code;
}

static int put_chunk(struct loading *loading, const struct coming *coming) {
    struct device_chunks *chunks = loading->chunks;
    const struct rows *rows = &coming->rows;
    struct device_chunk chunk = chunk_at(coming);
    int code = set_lists(chunks, rows->lists, &chunk);
    if (!code)
        code = put_image(chunks, coming, &chunk);
    if (code)
        return code;
    if (coming->stays)
        *seen_at(chunks, coming->number) = (struct seen){true, rows->dense, chunk};
    chunks->usage.resident += coming->stays;
    chunks->usage.bytes += coming->stays ? coming->image.bytes + coming->arrangement.bytes : 0;
    chunks->usage.streamed += !coming->stays;
    append(loading, &chunk, rows->dense);
    return 0;
}

/* A chunk that is not in the device's memory yet. */
static int load_rows(struct loading *loading, uint32_t number) {
    struct device_chunks *chunks = loading->chunks;
    struct coming coming = {.number = number};
    int code = chunks->settings.chunk(chunks->settings.context, number, &coming.rows);
    if (code)
        return code;
    find_image(chunks, &coming);
    loading->ended = !has_room(loading, coming.rows.count, coming.columns, coming.rows.dense);
    if (loading->ended)
        return 0;
    code = find_room_to_stay(loading->chunks, &coming);
    if (!code && !coming.stays)
        code = take_from_buffer(loading, coming.image.bytes, &coming.memory);
    loading->ended = !coming.memory;
    if (!code && !loading->ended)
        code = put_chunk(loading, &coming);
    device_arrangement_release(&coming.arrangement);
    return code;
}

int device_chunks_load(struct device_chunks *chunks, uint32_t first, uint32_t count,
                       const struct device_group_limit *limit, struct device_group *group) {
    struct loading loading = {.chunks = chunks, .limit = limit, .group = group};
    int code = 0;
    group->first = first;
    group->count = group->rows_most = group->by_column = 0;
    group->rows = group->values = group->values_most = group->columns = 0;
    group->columns_most = 0;
    for (uint32_t i = 0; i < count && !code && !loading.ended; i++) {
        const struct seen *seen = seen_at(chunks, first + i);
        if (!seen->stays) {
            code = load_rows(&loading, first + i);
            continue;
        }
        loading.ended = !has_room(&loading, seen->chunk.rows, seen->chunk.columns, seen->dense);
        if (!loading.ended)
            append(&loading, &seen->chunk, seen->dense);
    }
    if (!code)
        code = device_bundle_flush(&chunks->bundle);
    uint64_t bytes = group->count * sizeof *group->chunks;
    if (!code)
        code = device_room_reserve(chunks->device, &group->table, bytes);
    return code ? code
                : device_put(chunks->device, QUEUE_COPY, group->table.memory, group->chunks, bytes);
}

struct device_chunks_usage device_chunks_usage(const struct device_chunks *chunks) {
    return chunks->usage;
}

#include "tests/cluster/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"

struct virtual_file {
    char *path;
    uint8_t *data;
    size_t length;
    bool beside;   /* its place: it is still to be brought there */
    bool removed;  /* and may come back with a power cut */
    bool unsynced; /* and may be torn by one */
};

static struct virtual_file *find(struct virtual_disk *disk, const char *path, bool beside) {
    for (size_t i = 0; i < disk->count; i++)
        if (disk->files[i].beside == beside && !strcmp(disk->files[i].path, path))
            return &disk->files[i];
    return NULL;
}

static struct virtual_file *make(struct virtual_disk *disk, const char *path, bool beside) {
    struct virtual_file *file = find(disk, path, beside);
    if (file)
        return file;
    MEMORY_ROOM(disk->files, disk->count, disk->capacity);
    file = &disk->files[disk->count++];
    *file = (struct virtual_file){.path = memory_copy_string(path), .beside = beside};
    return file;
}

static int put(struct virtual_disk *disk, const char *path, const struct disk_piece *pieces,
               size_t count, bool beside) {
    if (disk->full)
        return error_set(ERROR_IO, "cannot write %s: the disk is full", path);
    struct virtual_file *file = make(disk, path, beside);
    size_t length = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        length += pieces[i].length;
    file->data = memory_resize(file->data, length, 1);
    file->length = length;
    file->removed = false;
    file->unsynced = mutant(COMMIT_BEFORE_SYNC);
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].length)
            memcpy(file->data + at, pieces[i].data, pieces[i].length);
        at += pieces[i].length;
    }
    return 0;
}

static int write_file(void *context, const char *path, const struct disk_piece *pieces,
                      size_t count, const struct disk_taken *taken) {
    int code = put(context, path, pieces, count, false);
    if (taken)
        taken->report(taken->context);
    return code;
}

static int write_beside(void *context, const char *path, const struct disk_piece *pieces,
                        size_t count, const struct disk_taken *taken) {
    int code = put(context, path, pieces, count, true);
    if (taken)
        taken->report(taken->context);
    return code;
}

static int put_piece(void *context, const char *path, uint64_t offset, const void *data,
                     size_t length) {
    struct virtual_disk *disk = context;
    if (disk->full)
        return error_set(ERROR_IO, "cannot write %s: the disk is full", path);
    struct virtual_file *file = make(disk, path, false);
    file->length = offset ? file->length : 0;
    if (file->length < offset)
        return error_set(ERROR_IO, "%s has a hole", path);
    file->data = memory_resize(file->data, offset + length, 1);
    memcpy(file->data + offset, data, length);
    file->length = offset + length;
    file->removed = false;
    file->unsynced = true;
    return 0;
}

static int publish_file(void *context, const char *from, const char *to) {
    struct virtual_disk *disk = context;
    struct virtual_file *file = find(disk, from, false);
    if (!file || file->removed)
        return error_set(ERROR_IO, "there is no %s", from);
    const struct disk_piece whole = {memory_new(file->length, 1), file->length};
    memcpy((void *)whole.data, file->data, file->length);
    file->removed = true;
    int code = put(disk, to, &whole, 1, false);
    free((void *)whole.data);
    return code;
}

int virtual_disk_publish(struct virtual_disk *disk, const char *path) {
    const struct virtual_file *file = find(disk, path, true);
    if (!file)
        return error_set(ERROR_IO, "nothing lies beside %s", path);
    const struct disk_piece whole = {file->data, file->length};
    return put(disk, path, &whole, 1, false);
}

static int open_file(void *context, const char *path, void **opened, uint64_t *length) {
    struct virtual_file *file = find(context, path, false);
    if (!file || file->removed)
        return error_set(ERROR_UNAVAILABLE, "there is no %s", path);
    *opened = file;
    *length = file->length;
    return 0;
}

static int read_file(void *context, void *opened, uint64_t offset, void *into, size_t length) {
    (void)context;
    const struct virtual_file *file = opened;
    if (offset > file->length || length > file->length - offset)
        return error_set(ERROR_IO, "%s became shorter while it was read", file->path);
    memcpy(into, file->data + offset, length);
    return 0;
}

static void close_file(void *context, void *opened) {
    (void)context, (void)opened;
}

static int list_folder(void *context, const char *folder,
                       void (*visit)(void *visitor, const char *name), void *visitor) {
    struct virtual_disk *disk = context;
    size_t length = strlen(folder);
    for (size_t i = 0; i < disk->count; i++) {
        const struct virtual_file *file = &disk->files[i];
        if (!file->removed && !file->beside && !strncmp(file->path, folder, length) &&
            file->path[length] == '/')
            visit(visitor, file->path + length + 1);
    }
    return 0;
}

static int remove_file(void *context, const char *path) {
    struct virtual_file *file = find(context, path, false);
    if (!file || file->removed)
        return error_set(ERROR_IO, "cannot remove %s: it is not there", path);
    file->removed = true;
    return 0;
}

void virtual_disk_init(struct virtual_disk *disk) {
    *disk = (struct virtual_disk){.disk = {.context = disk,
                                           .write = write_file,
                                           .put = put_piece,
                                           .publish = publish_file,
                                           .open = open_file,
                                           .read = read_file,
                                           .close = close_file,
                                           .list = list_folder,
                                           .remove = remove_file}};
    disk->slow = disk->disk;
    disk->slow.write = write_beside;
}

void virtual_disk_clear(struct virtual_disk *disk) {
    for (size_t i = 0; i < disk->count; i++) {
        free(disk->files[i].path);
        free(disk->files[i].data);
    }
    disk->count = 0;
}

void virtual_disk_release(struct virtual_disk *disk) {
    virtual_disk_clear(disk);
    free(disk->files);
}

void virtual_disk_litter(struct virtual_disk *disk, const char *path) {
    char *beside = memory_format("%s.tmp.123", path);
    const struct disk_piece piece = {"half", 4};
    put(disk, beside, &piece, 1, false);
    free(beside);
}

void virtual_disk_power_cut(struct virtual_disk *disk, struct random *random) {
    for (size_t i = 0; i < disk->count; i++) {
        struct virtual_file *file = &disk->files[i];
        file->removed &= random_below(random, 2) == 0;
        if (file->unsynced)
            file->length = random_below(random, file->length + 1);
        file->unsynced = false;
    }
}

bool virtual_disk_has_all(const struct virtual_disk *disk, const char *folder,
                          const struct virtual_disk *other) {
    for (size_t i = 0; i < other->count; i++) {
        const struct virtual_file *file = &other->files[i];
        char *path = memory_format("%s%s", folder, strrchr(file->path, '/'));
        bool there = file->removed || file->beside;
        for (size_t k = 0; k < disk->count; k++)
            there |= !disk->files[k].removed && !strcmp(disk->files[k].path, path);
        free(path);
        if (!there)
            return false;
    }
    return true;
}

bool virtual_disk_damage(struct virtual_disk *disk, const char *prefix, struct random *random) {
    for (size_t i = disk->count; i-- > 0;) {
        struct virtual_file *file = &disk->files[i];
        if (file->removed || file->beside || !file->length ||
            strncmp(file->path, prefix, strlen(prefix)))
            continue;
        file->data[random_below(random, file->length)] ^= (uint8_t)(1 << random_below(random, 8));
        return true;
    }
    return false;
}

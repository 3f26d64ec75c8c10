#include "shard/checkpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/step_files.h"
#include "shard/factor.h"

enum { ALIGNMENT = 64 };

static const char magic[8] = "DMLCKPT\n";

const uint8_t checkpoint_registers[CHECKPOINT_POINTS] = {
    [CHECKPOINT_X] = REGISTER_X,
    [CHECKPOINT_G] = REGISTER_G,
    [CHECKPOINT_BEST] = REGISTER_BEST,
    [CHECKPOINT_SUMS] = REGISTER_A,
};
enum { POINTS_LEAST = 1 << CHECKPOINT_X | 1 << CHECKPOINT_G };

/* What to do about a file that cannot be used. */
#define PUT_BACK "; put a good copy back, else the run goes back to an older step"

void checkpoint_release(struct checkpoint *checkpoint) {
    free(checkpoint->pairs);
    *checkpoint = (struct checkpoint){0};
}

void checkpoint_header_init(struct checkpoint_header *header, const char *run, uint32_t shard,
                            const struct registers *registers, uint64_t step) {
    *header = (struct checkpoint_header){.version = CHECKPOINT_VERSION,
                                         .shard = shard,
                                         .step = step,
                                         .first = registers->first,
                                         .count = registers->count,
                                         .history_type = registers->history_type,
                                         .numbers = rows_numbers(&registers->rows),
                                         .points = POINTS_LEAST};
    memcpy(header->magic, magic, sizeof magic);
    size_t length = strcspn(run, "~"); /* a copy of the state goes on from the same checkpoints */
    memcpy(header->run, run, length < sizeof header->run ? length : sizeof header->run);
}

/* ---- lengths ---- */

static size_t header_bytes(uint32_t entries) {
    size_t bytes = sizeof(struct checkpoint_header) + entries * sizeof(struct checkpoint_pair);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t register_bytes(const struct checkpoint_header *header) {
    return header->count * sizeof(double);
}

static bool has_point(const struct checkpoint_header *header, uint32_t point) {
    return header->points >> point & 1;
}

/* Where a point begins; after the last one, where they end. */
static uint64_t point_offset(const struct checkpoint_header *header, uint32_t point) {
    uint64_t offset = header->header_bytes;
    for (uint32_t i = 0; i < point; i++)
        offset += has_point(header, i) ? register_bytes(header) : 0;
    return offset;
}

/* The bytes of a vector of an entry: the second one of a direction is of rows. */
static size_t vector_bytes(const struct checkpoint_header *header, uint32_t entry, size_t part) {
    uint64_t elements = part && entry >= header->pairs ? header->numbers : header->count;
    return elements * history_size((enum history_type)header->history_type);
}

static size_t margins_bytes(const struct checkpoint_header *header) {
    return header->margins ? header->numbers * sizeof(double) : 0;
}

static size_t bytes_of_factor(const struct checkpoint_header *header) {
    return header->factor ? factor_bytes(header->factor_order) : 0;
}

static uint64_t factor_offset(const struct checkpoint_header *header) {
    return point_offset(header, CHECKPOINT_POINTS);
}

static uint64_t margins_offset(const struct checkpoint_header *header) {
    return factor_offset(header) + bytes_of_factor(header);
}

/* Where the vectors of an entry that lies in the file begin; behind the last one, where the file
 * ends. */
static uint64_t entry_offset(const struct checkpoint *checkpoint, uint32_t entry) {
    const struct checkpoint_header *header = &checkpoint->header;
    uint64_t offset = margins_offset(header) + margins_bytes(header);
    for (uint32_t i = 0; i < entry; i++)
        if (checkpoint->pairs[i].file == header->step)
            offset += vector_bytes(header, i, 0) + vector_bytes(header, i, 1);
    return offset;
}

/* The checksum of a header as it lies in memory. */
static uint64_t header_checksum(const void *bytes, size_t length) {
    uint8_t *copy = memory_new(length, 1);
    memcpy(copy, bytes, length);
    memset(copy + offsetof(struct checkpoint_header, checksum), 0, sizeof(uint64_t));
    uint64_t checksum = hash64(copy, length);
    free(copy);
    return checksum;
}

/* ---- writing ---- */

static double *copy_register(const struct registers *registers, uint8_t number) {
    size_t bytes = registers->count * sizeof(double);
    double *copy = memory_map(bytes);
    heartbeat_copy(copy, registers->vector[number].elements, bytes);
    return copy;
}

/* A pair or a direction in an earlier file; a file of the same step is about to be replaced. */
static const struct checkpoint_pair *find_earlier(const struct checkpoint *earlier, bool direction,
                                                  const struct checkpoint_pair *entry,
                                                  uint64_t step) {
    if (!earlier)
        return NULL;
    const struct checkpoint_header *header = &earlier->header;
    uint32_t end = direction ? checkpoint_entries(header) : header->pairs;
    for (uint32_t i = direction ? header->pairs : 0; i < end; i++)
        if (earlier->pairs[i].serial == entry->serial && earlier->pairs[i].file != step)
            return &earlier->pairs[i];
    return NULL;
}

/* The vectors of an entry, where they are to be read from or loaded into. */
static void find_vectors(const struct registers *registers, bool direction, uint32_t slot,
                         void *vectors[2]) {
    vectors[0] = direction ? registers_direction(registers, slot) : registers_s(registers, slot);
    vectors[1] = direction ? rows_product(&registers->rows, slot, 0) : registers_q(registers, slot);
}

static double *copy_margins(const struct checkpoint_header *header,
                            const struct registers *registers) {
    if (!header->margins)
        return NULL;
    double *copy = memory_map(margins_bytes(header));
    heartbeat_copy(copy, registers->rows.margins, margins_bytes(header));
    return copy;
}

struct checkpoint_job *checkpoint_job_new(const char *folder,
                                          const struct checkpoint_header *header,
                                          const struct registers *registers,
                                          const struct checkpoint_pair *with,
                                          const struct checkpoint *earlier) {
    uint32_t entries = checkpoint_entries(header);
    assert(header->pairs <= SLOTS_MAX && header->count == registers->count);
    struct checkpoint_job *job = memory_new(1, sizeof *job);
    job->folder = memory_copy_string(folder);
    job->checkpoint.header = *header;
    job->checkpoint.pairs = memory_new(entries, sizeof *job->checkpoint.pairs);
    job->vectors = memory_new(entries, sizeof *job->vectors);
    job->bytes = register_bytes(header);
    job->factor = header->factor ? factor_hold(registers->factor) : NULL;
    for (uint32_t i = 0; i < CHECKPOINT_POINTS; i++)
        job->points[i] =
            has_point(header, i) ? copy_register(registers, checkpoint_registers[i]) : NULL;
    job->margins = copy_margins(header, registers);
    job->margins_bytes = margins_bytes(header);
    for (uint32_t i = 0; i < entries; i++) {
        struct checkpoint_pair *entry = &job->checkpoint.pairs[i];
        bool direction = i >= header->pairs;
        const struct checkpoint_pair *there =
            find_earlier(earlier, direction, &with[i], header->step);
        void *vectors[2];
        *entry = there ? *there : with[i];
        entry->slot = with[i].slot;
        if (there)
            continue;
        entry->file = header->step;
        find_vectors(registers, direction, entry->slot, vectors);
        job->vectors[i][0] = vectors[0];
        job->vectors[i][1] = vectors[1];
    }
    return job;
}

void checkpoint_job_free(struct checkpoint_job *job) {
    if (!job)
        return;
    /* If the checkpoint was moved out (note_kept()), its header is zeroed here and does not tell
     * the number of points any more. Unmapping NULL does nothing. */
    for (uint32_t i = 0; i < CHECKPOINT_POINTS; i++)
        memory_unmap(job->points[i], job->bytes);
    memory_unmap(job->margins, job->margins_bytes);
    factor_drop(job->factor);
    free(job->vectors);
    free(job->folder);
    checkpoint_release(&job->checkpoint);
    free(job);
}

static struct disk_piece summed(const void *data, size_t length, uint64_t *checksum) {
    *checksum = hash64(data, length);
    return (struct disk_piece){data, length};
}

/* The sections of the file in their order, and their checksums into the header. */
static size_t gather_sections(struct checkpoint_job *job, struct disk_piece *pieces) {
    struct checkpoint_header *header = &job->checkpoint.header;
    size_t count = 0;
    for (uint32_t i = 0; i < CHECKPOINT_POINTS; i++)
        if (has_point(header, i))
            pieces[count++] = summed(job->points[i], register_bytes(header), &header->checksums[i]);
    if (bytes_of_factor(header))
        pieces[count++] =
            summed(job->factor->elements, bytes_of_factor(header), &header->factor_checksum);
    if (header->margins)
        pieces[count++] = summed(job->margins, margins_bytes(header), &header->margins_checksum);
    for (uint32_t i = 0; i < checkpoint_entries(header); i++)
        for (size_t part = 0; part < 2 && job->vectors[i][part]; part++)
            pieces[count++] = summed(job->vectors[i][part], vector_bytes(header, i, part),
                                     &job->checkpoint.pairs[i].checksums[part]);
    return count;
}

/* Fills in lengths, checksum and digest; answers the bytes of the header and its pairs, to be
 * freed. */
static struct disk_piece complete_header(struct checkpoint *checkpoint) {
    struct checkpoint_header *header = &checkpoint->header;
    const uint32_t entries = checkpoint_entries(header);
    header->header_bytes = (uint32_t)header_bytes(entries);
    header->file_bytes = entry_offset(checkpoint, entries);
    assert(header->header_bytes % ALIGNMENT == 0 && header->file_bytes >= header->header_bytes);
    uint8_t *bytes = memory_new(header->header_bytes, 1);
    memcpy(bytes, header, sizeof *header);
    memcpy(bytes + sizeof *header, checkpoint->pairs, entries * sizeof *checkpoint->pairs);
    header->checksum = header_checksum(bytes, header->header_bytes);
    memcpy(bytes, header, sizeof *header);
    checkpoint->digest = hash64(bytes, header->header_bytes);
    return (struct disk_piece){bytes, header->header_bytes};
}

/* Called between write() and fsync: writing is quick, fsync is not, and the registers may change
 * from here on. The store must come after the last read of the history: the shard's thread
 * overwrites a slot as soon as it sees `taken` (is_being_written()). */
static void report_taken(void *context) {
    struct checkpoint_job *job = context;
    assert(!atomic_load(&job->taken));
    atomic_store(&job->taken, true);
    if (job->on_taken)
        job->on_taken(job->on_taken_context);
}

int checkpoint_write(struct checkpoint_job *job, const struct disk *disk) {
    struct disk_piece pieces[1 + CHECKPOINT_POINTS + 2 + 2 * (SLOTS_MAX + WINDOW_MAX)];
    size_t sections = gather_sections(job, pieces + 1);
    assert(sections < sizeof pieces / sizeof *pieces);
    pieces[0] = complete_header(&job->checkpoint);
    char *path = step_path(job->folder, job->checkpoint.header.step);
    const struct disk_taken taken = {report_taken, job};
    int code = disk->write(disk->context, path, pieces, 1 + sections, &taken);
    free(path);
    free((void *)pieces[0].data);
    return code;
}

/* ---- reading a header ---- */

struct checkpoint_reader {
    const struct disk *disk;
    char *path; /* owned; NULL: not open */
    void *file;
    uint64_t length;
    struct checkpoint checkpoint;
};

static void reader_close(struct checkpoint_reader *reader) {
    if (reader->file)
        reader->disk->close(reader->disk->context, reader->file);
    free(reader->path);
    checkpoint_release(&reader->checkpoint);
    *reader = (struct checkpoint_reader){0};
}

static int read_bytes(const struct checkpoint_reader *reader, uint64_t offset, void *into,
                      size_t length) {
    return reader->disk->read(reader->disk->context, reader->file, offset, into, length);
}

static int check_length(const struct checkpoint_reader *reader, uint64_t wanted) {
    if (reader->length < wanted)
        return error_set(ERROR_DATA,
                         "%s is cut short: it has %" PRIu64 " of %" PRIu64 " bytes" PUT_BACK,
                         reader->path, reader->length, wanted);
    return 0;
}

#define HEADER_BYTES_MAX (UINT32_C(1) << 20) /* of any version */

static int check_header(const struct checkpoint_reader *reader, const uint8_t *bytes) {
    const struct checkpoint_header *header = &reader->checkpoint.header;
    bool whole = !memcmp(bytes, header, sizeof *header) &&
                 header_checksum(bytes, header->header_bytes) == header->checksum;
    if (whole && header->version != CHECKPOINT_VERSION)
        return error_set(ERROR_UNAVAILABLE,
                         "%s has version %" PRIu32 ", but this program reads version %d: end the "
                         "run with the program that began it, or begin another one with --fresh",
                         reader->path, header->version, CHECKPOINT_VERSION);
    if (!whole || header->pairs > SLOTS_MAX || header->window > WINDOW_MAX || header->margins > 1 ||
        header->header_bytes != header_bytes(checkpoint_entries(header)) ||
        (header->points & POINTS_LEAST) != POINTS_LEAST || header->points >> CHECKPOINT_POINTS)
        return error_set(ERROR_DATA, "%s: its header is damaged" PUT_BACK, reader->path);
    return 0;
}

/* Reads the whole header and verifies its checksum. */
static int read_header(struct checkpoint_reader *reader) {
    struct checkpoint *checkpoint = &reader->checkpoint;
    struct checkpoint_header *header = &checkpoint->header;
    int code = check_length(reader, sizeof *header);
    if (!code)
        code = read_bytes(reader, 0, header, sizeof *header);
    if (code)
        return code;
    /* The first 32 bytes are the same in all versions. */
    if (memcmp(header->magic, magic, sizeof magic))
        return error_set(ERROR_DATA, "%s is not a checkpoint" PUT_BACK, reader->path);
    if (header->header_bytes < sizeof *header || header->header_bytes > HEADER_BYTES_MAX)
        return error_set(ERROR_DATA, "%s: its header is damaged" PUT_BACK, reader->path);
    code = check_length(reader, header->header_bytes);
    if (code)
        return code;
    uint8_t *bytes = memory_new(header->header_bytes, 1);
    code = read_bytes(reader, 0, bytes, header->header_bytes);
    if (!code)
        code = check_header(reader, bytes);
    if (!code) {
        checkpoint->digest = hash64(bytes, header->header_bytes);
        const uint32_t entries = checkpoint_entries(header);
        checkpoint->pairs = memory_new(entries, sizeof *checkpoint->pairs);
        memcpy(checkpoint->pairs, bytes + sizeof *header, entries * sizeof *checkpoint->pairs);
    }
    free(bytes);
    return code;
}

static int check_owner(const struct checkpoint_reader *reader,
                       const struct checkpoint_header *expected) {
    const struct checkpoint_header *header = &reader->checkpoint.header;
    const char *path = reader->path;
    if (memcmp(header->run, expected->run, sizeof header->run))
        return error_set(ERROR_DATA,
                         "%s belongs to run %.64s, not to %.64s: give each run a state folder of "
                         "its own" PUT_BACK,
                         path, header->run, expected->run);
    if (header->shard != expected->shard)
        return error_set(ERROR_DATA,
                         "%s belongs to shard %" PRIu32 ", not to %" PRIu32 ": give each shard a "
                         "folder of its own" PUT_BACK,
                         path, header->shard, expected->shard);
    if (header->first != expected->first || header->count != expected->count)
        return error_set(ERROR_DATA,
                         "%s holds %" PRIu64 " elements from %" PRIu64 " on, not %" PRIu64
                         " from %" PRIu64 ": the number of shards must stay as the run began",
                         path, header->count, header->first, expected->count, expected->first);
    if (header->history_type != expected->history_type)
        return error_set(ERROR_DATA,
                         "%s holds a history of another type: the precision of the history must "
                         "stay as the run began",
                         path);
    if (header->numbers != expected->numbers)
        return error_set(ERROR_DATA,
                         "%s holds vectors of rows with %" PRIu64 " numbers, not %" PRIu64
                         ": the rows, and whether common directions are searched, must stay as the "
                         "run began",
                         path, header->numbers, expected->numbers);
    return 0;
}

struct newest_search {
    uint64_t step; /* 0: none is later */
};

static void note_newest(void *context, const char *name) {
    struct newest_search *search = context;
    uint64_t step;
    int end = 0;
    bool whole = sscanf(name, "step-%" SCNu64 "%n", &step, &end) == 1 && !name[end];
    if (whole && step > search->step)
        search->step = step;
}

/* A shard removes a file after the record of the run says that a later step is durable. So where
 * later files lie beside a missing one, it is the record that has lost its end. */
static int is_missing(const struct checkpoint_reader *reader, const char *folder, uint64_t step) {
    struct newest_search search = {.step = step};
    if (reader->disk->list(reader->disk->context, folder, note_newest, &search))
        error_clear();
    if (search.step == step)
        return error_set(ERROR_DATA, "%s is missing" PUT_BACK, reader->path);
    return error_set(
        ERROR_DATA,
        "%s is missing, and step %" PRIu64 " is there: the record of the run (dml.db and "
        "its journal dml.db-wal) is older than the checkpoints, as after a journal that "
        "was cut or removed; put the whole journal back",
        reader->path, search.step);
}

/* Opens the file of a step and checks all but its sections. */
static int reader_open(struct checkpoint_reader *reader, const struct disk *disk,
                       const char *folder, uint64_t step,
                       const struct checkpoint_header *expected) {
    *reader = (struct checkpoint_reader){.disk = disk, .path = step_path(folder, step)};
    int code = disk->open(disk->context, reader->path, &reader->file, &reader->length);
    if (code == ERROR_UNAVAILABLE) {
        error_clear();
        return is_missing(reader, folder, step);
    }
    const struct checkpoint_header *header = &reader->checkpoint.header;
    if (!code)
        code = read_header(reader);
    if (!code)
        code = check_owner(reader, expected);
    if (!code && header->step != step)
        code = error_set(ERROR_DATA,
                         "%s is the checkpoint of step %" PRIu64 ": it was renamed" PUT_BACK,
                         reader->path, header->step);
    if (!code)
        code = check_length(reader, header->file_bytes);
    if (!code &&
        (reader->length != header->file_bytes ||
         entry_offset(&reader->checkpoint, checkpoint_entries(header)) != header->file_bytes))
        code = error_set(ERROR_DATA, "%s is longer than it was written" PUT_BACK, reader->path);
    return code;
}

/* ---- reading sections ---- */

/* The checksum is taken of the memory that is used, not of the file: a second read could differ. */
static int load_section(const struct checkpoint_reader *reader, uint64_t offset, void *into,
                        size_t length, uint64_t checksum) {
    int code = read_bytes(reader, offset, into, length);
    if (!code && hash64(into, length) != checksum)
        code = error_set(ERROR_DATA, "%s: bytes %" PRIu64 " to %" PRIu64 " are damaged" PUT_BACK,
                         reader->path, offset, offset + length);
    return code;
}

static int load_points(const struct checkpoint_reader *reader, const struct registers *registers) {
    const struct checkpoint_header *header = &reader->checkpoint.header;
    size_t bytes = register_bytes(header);
    int code = 0;
    for (uint32_t i = 0; i < CHECKPOINT_POINTS && !code; i++) {
        if (!has_point(header, i) || (i == CHECKPOINT_BEST && mutant(BEST_NOT_RESTORED)) ||
            (i == CHECKPOINT_SUMS && mutant(ADAGRAD_NOT_RESTORED)))
            continue;
        if (!registers_have(registers, checkpoint_registers[i]))
            return error_set(ERROR_DATA, "%s holds %s, which this run has not", reader->path,
                             i == CHECKPOINT_BEST ? "the best point of early stopping"
                                                  : "the sums of downpour");
        code = load_section(reader, point_offset(header, i),
                            registers->vector[checkpoint_registers[i]].elements, bytes,
                            header->checksums[i]);
    }
    return code;
}

/* Drops the preconditioner of the registers, also if the file has none: the directions of a step
 * need the preconditioner of that step. */
static int load_factor(const struct checkpoint_reader *reader, struct registers *registers) {
    const struct checkpoint_header *header = &reader->checkpoint.header;
    size_t bytes = bytes_of_factor(header);
    if (header->factor && !registers_precondition(registers))
        return error_set(ERROR_DATA, "%s holds a preconditioner, which this run has not",
                         reader->path);
    if (header->factor && header->factor_order != registers_factor_order(registers))
        return error_set(ERROR_DATA,
                         "%s holds a preconditioner of %u rows, not the %zu of this run",
                         reader->path, header->factor_order, registers_factor_order(registers));
    if (mutant(FACTOR_KEPT))
        return 0;
    struct factor *factor =
        header->factor ? factor_new(header->factor, header->factor_order) : NULL;
    int code = bytes ? load_section(reader, factor_offset(header), factor->elements, bytes,
                                    header->factor_checksum)
                     : 0;
    if (code) {
        factor_drop(factor);
        factor = NULL;
    } else if (mutant(DIAGONAL_NOT_RESTORED) && factor) {
        factor->elements[0] = 1;
        factor->elements[1] = 0;
    }
    registers_set_factor(registers, factor);
    return code;
}

/* Finds the place of a pair or direction in the list of the file that holds it. */
static int find_entry(const struct checkpoint_reader *reader, bool direction,
                      const struct checkpoint_pair *wanted, uint32_t *place) {
    const struct checkpoint *checkpoint = &reader->checkpoint;
    const struct checkpoint_header *header = &checkpoint->header;
    uint32_t end = direction ? checkpoint_entries(header) : header->pairs;
    for (uint32_t i = direction ? header->pairs : 0; i < end; i++) {
        const struct checkpoint_pair *pair = &checkpoint->pairs[i];
        if (pair->serial == wanted->serial && pair->file == checkpoint->header.step) {
            *place = i;
            return 0;
        }
    }
    return error_set(ERROR_DATA,
                     "%s does not hold the %s of step %" PRIu64 " that a later checkpoint needs "
                     "of it" PUT_BACK,
                     reader->path, direction ? "direction" : "pair", wanted->serial);
}

static int load_entry(const struct checkpoint_reader *holder, bool direction,
                      const struct checkpoint_pair *entry, const struct registers *registers) {
    const struct checkpoint_header *header = &holder->checkpoint.header;
    uint32_t place = 0;
    void *vectors[2];
    int code = find_entry(holder, direction, entry, &place);
    if (code)
        return code;
    uint64_t offset = entry_offset(&holder->checkpoint, place);
    find_vectors(registers, direction, entry->slot, vectors);
    size_t parts = direction && mutant(PRODUCTS_NOT_RESTORED) ? 1 : 2;
    for (size_t part = 0; part < parts && !code; part++) {
        size_t bytes = vector_bytes(header, place, part);
        code = load_section(holder, offset, vectors[part], bytes, entry->checksums[part]);
        offset += bytes;
    }
    return code;
}

static int check_slot(const struct checkpoint_reader *reader, bool direction, uint32_t slot,
                      const struct registers *registers) {
    if (slot < (direction ? registers->rows.slots : registers->slots))
        return 0;
    return error_set(ERROR_DATA,
                     "%s has more %s than the run keeps: the length of the %s must stay as the run "
                     "began",
                     reader->path, direction ? "directions" : "pairs",
                     direction ? "window" : "history");
}

/* Pairs are listed oldest first, as directions are, so those of one earlier file are neighbours:
 * one open file at a time is enough. */
static int load_entries(const struct checkpoint_reader *reader, const char *folder,
                        const struct checkpoint_header *expected,
                        const struct registers *registers) {
    const struct checkpoint_header *header = &reader->checkpoint.header;
    struct checkpoint_reader earlier = {0};
    int code = 0;
    for (uint32_t i = 0; i < checkpoint_entries(header) && !code; i++) {
        const struct checkpoint_pair *entry = &reader->checkpoint.pairs[i];
        bool own = entry->file == header->step, direction = i >= header->pairs;
        code = check_slot(reader, direction, entry->slot, registers);
        if (!code && !own && (!earlier.path || earlier.checkpoint.header.step != entry->file)) {
            reader_close(&earlier);
            code = reader_open(&earlier, reader->disk, folder, entry->file, expected);
        }
        if (!code)
            code = load_entry(own ? reader : &earlier, direction, entry, registers);
    }
    reader_close(&earlier);
    return code;
}

int checkpoint_load(const struct disk *disk, const char *folder,
                    const struct checkpoint_header *expected, uint64_t digest,
                    struct registers *registers, struct checkpoint *loaded) {
    struct checkpoint_reader reader;
    int code = reader_open(&reader, disk, folder, expected->step, expected);
    if (!code && reader.checkpoint.digest != digest)
        code =
            error_set(ERROR_DATA, "%s is whole, but not the checkpoint that was committed" PUT_BACK,
                      reader.path);
    if (!code)
        code = load_points(&reader, registers);
    if (!code)
        code = load_factor(&reader, registers);
    const struct checkpoint_header *header = &reader.checkpoint.header;
    if (!code && header->margins && !mutant(MARGINS_NOT_RESTORED))
        code = load_section(&reader, margins_offset(header), registers->rows.margins,
                            margins_bytes(header), header->margins_checksum);
    if (!code)
        code = load_entries(&reader, folder, expected, registers);
    *loaded = (struct checkpoint){0};
    if (!code) {
        *loaded = reader.checkpoint;
        reader.checkpoint = (struct checkpoint){0};
    }
    reader_close(&reader);
    return code;
}

bool checkpoint_lacks(const struct disk *disk, const char *folder,
                      const struct checkpoint_header *expected, uint64_t digest, uint64_t *step) {
    struct checkpoint_reader reader;
    int code = reader_open(&reader, disk, folder, expected->step, expected);
    bool lacks = code || reader.checkpoint.digest != digest;
    *step = expected->step;
    const struct checkpoint *checkpoint = &reader.checkpoint;
    for (uint32_t i = 0; !lacks && i < checkpoint_entries(&checkpoint->header); i++) {
        if (mutant(EARLIER_FILES_NOT_BROUGHT))
            break;
        char *path = step_path(folder, checkpoint->pairs[i].file);
        void *file;
        uint64_t length;
        *step = checkpoint->pairs[i].file;
        lacks = disk->open(disk->context, path, &file, &length) != 0;
        if (!lacks)
            disk->close(disk->context, file);
        free(path);
    }
    reader_close(&reader);
    error_clear(); /* a file that cannot be read is brought like one that is not there */
    return lacks;
}

/* Which pages a block of rows needs, and the reading of them beside each other. */
#include "data/parquet/parquet_block.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* ---- memory for texts ---- */

#define ROOM_PART_BYTES (64u << 10)

char *text_room_take(struct text_room *room, size_t length) {
    if (room->left < length) {
        size_t bytes = length > ROOM_PART_BYTES ? length : ROOM_PART_BYTES;
        MEMORY_ROOM(room->part, room->parts, room->capacity);
        room->at = room->part[room->parts++] = memory_resize(NULL, bytes, 1);
        room->left = bytes;
    }
    assert(length <= room->left);
    char *text = room->at;
    room->at += length;
    room->left -= length;
    return text;
}

void text_room_clear(struct text_room *room) {
    while (room->parts)
        free(room->part[--room->parts]);
    room->left = 0;
}

void text_room_release(struct text_room *room) {
    text_room_clear(room);
    free(room->part);
    *room = (struct text_room){0};
}

void parquet_entries_release(struct parquet_entries *entries) {
    free(entries->number);
    free(entries->category);
    free(entries->text);
    *entries = (struct parquet_entries){0};
}

/* ---- who needs a page ---- */

static struct held_page *hold(struct parquet_reader *reader, struct held_page *page) {
    pthread_mutex_lock(&reader->mutex);
    page->holders++;
    pthread_mutex_unlock(&reader->mutex);
    return page;
}

static void let_go(struct parquet_reader *reader, struct held_page *page) {
    if (!page)
        return;
    pthread_mutex_lock(&reader->mutex);
    assert(page->holders);
    bool last = --page->holders == 0;
    pthread_mutex_unlock(&reader->mutex);
    if (!last)
        return;
    let_go(reader, page->dictionary);
    parquet_values_release(&page->values);
    parquet_entries_release(&page->entries);
    free(page->error);
    free(page);
}

/* A page with one holder. */
static struct held_page *new_page(const struct parquet_column *column,
                                  const struct parquet_page *page, enum parquet_codec codec) {
    struct held_page *held = memory_new(1, sizeof *held);
    held->column = column;
    held->page = *page;
    held->codec = codec;
    held->holders = 1;
    return held;
}

void parquet_first_keep(struct parquet_reader *reader, const struct parquet_block *block) {
    reader->first = memory_new(reader->file.columns, sizeof *reader->first);
    for (uint32_t i = 0; i < block->parts; i++)
        if (!block->part[i].at)
            reader->first[block->part[i].column] = hold(reader, block->part[i].page);
}

void parquet_first_forget(struct parquet_reader *reader) {
    for (uint32_t i = 0; reader->first && i < reader->file.columns; i++)
        let_go(reader, reader->first[i]);
    free(reader->first);
    reader->first = NULL;
}

/* A page with one more holder: one that was kept, or a new one. */
static struct held_page *find_page(struct parquet_reader *reader, uint32_t column,
                                   const struct parquet_page *page, enum parquet_codec codec) {
    struct held_page *kept = reader->first ? reader->first[column] : NULL;
    if (kept && kept->page.offset != page->offset)
        kept = kept->dictionary;
    return kept && kept->page.offset == page->offset
               ? hold(reader, kept)
               : new_page(&reader->file.column[column], page, codec);
}

/* ---- in the order of the file ---- */

static void forget_cursors(struct parquet_reader *reader) {
    for (uint32_t i = 0; i < reader->file.columns; i++) {
        struct column_cursor *cursor = &reader->cursor[i];
        let_go(reader, cursor->page);
        let_go(reader, cursor->dictionary);
        cursor->page = cursor->dictionary = NULL;
    }
}

void parquet_rewind(struct parquet_reader *reader) {
    forget_cursors(reader);
    reader->group = 0;
    reader->group_left = 0;
    reader->next_row = 1;
}

/* A row that no block has would be one that nobody misses. */
static int check_group_end(const struct parquet_reader *reader) {
    for (uint32_t i = 0; i < reader->file.columns; i++) {
        const struct column_cursor *cursor = &reader->cursor[i];
        if (cursor->page && cursor->first < cursor->page->page.rows)
            return parquet_damaged(&reader->file, &reader->file.column[i],
                                   "its pages have more rows than the file");
    }
    return 0;
}

/* Goes to the next group that has rows. */
static bool next_group(struct parquet_reader *reader) {
    struct parquet_file *file = &reader->file;
    while (reader->group < file->groups && !reader->group_left)
        reader->group_left = file->group[reader->group++].rows;
    forget_cursors(reader);
    if (!reader->group_left)
        return false;
    for (uint32_t i = 0; i < file->columns; i++) {
        const struct parquet_chunk *chunk = &file->group[reader->group - 1].chunk[i];
        reader->cursor[i].at = chunk->offset;
        reader->cursor[i].end = chunk->offset + chunk->length;
    }
    return true;
}

/* Finds the page that the next row of a column is in. */
static int next_page(struct parquet_reader *reader, uint32_t column) {
    struct column_cursor *cursor = &reader->cursor[column];
    const struct parquet_file *file = &reader->file;
    assert(reader->group > 0);
    const struct parquet_column *of = &file->column[column];
    enum parquet_codec codec = file->group[reader->group - 1].chunk[column].codec;
    struct parquet_page page;
    let_go(reader, cursor->page);
    cursor->page = NULL;
    cursor->first = 0;
    while (!cursor->page) {
        if (cursor->at == cursor->end)
            return parquet_damaged(file, of, "its pages have fewer rows than the file");
        int code = parquet_page_next(file, of, &cursor->at, cursor->end, &page);
        if (code)
            return code;
        bool data = page.kind == PARQUET_DATA || page.kind == PARQUET_DATA_2;
        if (page.kind == PARQUET_DICTIONARY && cursor->dictionary)
            return parquet_damaged(file, of, "it has two dictionaries");
        if (page.kind == PARQUET_DICTIONARY)
            cursor->dictionary = find_page(reader, column, &page, codec);
        if (data && page.rows)
            cursor->page = find_page(reader, column, &page, codec);
    }
    if (cursor->dictionary && !cursor->page->dictionary)
        cursor->page->dictionary = hold(reader, cursor->dictionary);
    return 0;
}

static int take_column(struct parquet_reader *reader, struct parquet_block *block,
                       uint32_t column) {
    struct column_cursor *cursor = &reader->cursor[column];
    for (uint32_t done = 0; done < block->rows;) {
        if (!cursor->page || cursor->first == cursor->page->page.rows) {
            int code = next_page(reader, column);
            if (code)
                return code;
        }
        uint32_t left = block->rows - done, here = cursor->page->page.rows - cursor->first;
        uint32_t count = here < left ? here : left;
        MEMORY_ROOM(block->part, block->parts, block->capacity);
        block->part[block->parts++] = (struct page_rows){.page = hold(reader, cursor->page),
                                                         .column = column,
                                                         .first = cursor->first,
                                                         .count = count,
                                                         .at = done};
        cursor->first += count;
        assert(cursor->first <= cursor->page->page.rows);
        done += count;
    }
    return 0;
}

/* A column that nobody reads may be of pages that are not read: then it is no part of the hashes of
 * this block and the next. */
static int take_unread(struct parquet_reader *reader, struct parquet_block *block,
                       uint32_t column) {
    const uint32_t parts = block->parts;
    int code = take_column(reader, block, column);
    if (code != ERROR_DATA)
        return code;
    error_clear();
    while (block->parts > parts)
        let_go(reader, block->part[--block->parts].page);
    reader->cursor[column].used = false;
    return 0;
}

int parquet_block_take(struct parquet_reader *reader, struct parquet_block *block, uint32_t rows) {
    parquet_block_clear(reader, block);
    int code = reader->group_left ? 0 : check_group_end(reader);
    if (code || (!reader->group_left && !next_group(reader)))
        return code;
    block->first_row = reader->next_row;
    block->rows = reader->group_left < rows ? (uint32_t)reader->group_left : rows;
    for (uint32_t i = 0; i < reader->file.columns && !code; i++)
        if (reader->cursor[i].used)
            code = reader->cursor[i].only_hashed ? take_unread(reader, block, i)
                                                 : take_column(reader, block, i);
    parquet_first_forget(reader);
    reader->next_row += block->rows;
    reader->group_left -= block->rows;
    return code;
}

void parquet_block_clear(struct parquet_reader *reader, struct parquet_block *block) {
    for (uint32_t i = 0; i < block->parts; i++)
        let_go(reader, block->part[i].page);
    block->parts = 0;
    block->rows = 0;
    text_room_clear(&block->room);
}

struct parquet_block *parquet_block_new(void) {
    return memory_new(1, sizeof(struct parquet_block));
}

void parquet_block_free(struct parquet_reader *reader, struct parquet_block *block) {
    if (!block)
        return;
    parquet_block_clear(reader, block);
    text_room_release(&block->room);
    free(block->part);
    free(block->number);
    free(block->hash);
    free(block->odd);
    free(block->other);
    free(block->category);
    free(block);
}

/* ---- beside each other ---- */

/* Whoever reads a page waits for its dictionary alone, and who reads that for nothing: so waits
 * end.
 */
static int read_page(struct parquet_reader *reader, struct held_page *page, bool wait) {
    /* Whether this thread is the one that reads the page; else waits until it is read, if it is to.
     */
    pthread_mutex_lock(&reader->mutex);
    while (page->state == PAGE_AT_WORK && wait)
        pthread_cond_wait(&reader->changed, &reader->mutex);
    bool mine = page->state == PAGE_WANTED;
    if (mine)
        page->state = PAGE_AT_WORK;
    pthread_mutex_unlock(&reader->mutex);
    if (!mine)
        return wait && page->code ? error_set(page->code, "%s", page->error) : 0;
    const struct parquet_values *dictionary = page->dictionary ? &page->dictionary->values : NULL;
    int code = dictionary ? read_page(reader, page->dictionary, true) : 0;
    if (!code)
        code = parquet_page_read(&reader->file, page->column, page->codec, &page->page, dictionary,
                                 &page->values);
    pthread_mutex_lock(&reader->mutex);
    page->code = code;
    page->error = code ? memory_copy_string(error_text()) : NULL;
    page->state = PAGE_READ;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
    return code;
}

/* First the pages that nobody is at, beginning where no other thread does; then those that others
 * are at must be there. */
int parquet_block_read(struct parquet_reader *reader, struct parquet_block *block) {
    uint32_t begin = block->parts ? (uint32_t)(block->first_row / block->rows % block->parts) : 0;
    int code = 0;
    for (uint32_t i = 0; i < block->parts && (!code || code == ERROR_DATA); i++) {
        error_clear();
        code = read_page(reader, block->part[(begin + i) % block->parts].page, false);
    }
    error_clear(); /* the first in the order of columns is told */
    for (uint32_t i = 0; i < block->parts; i++) {
        code = read_page(reader, block->part[i].page, true);
        if (code == ERROR_DATA && reader->cursor[block->part[i].column].only_hashed)
            error_clear();
        else if (code)
            return code;
    }
    return 0;
}

void parquet_entries_make(struct parquet_reader *reader, const struct format *format,
                          uint32_t column, struct held_page *page, make_entries *make) {
    pthread_mutex_lock(&reader->mutex);
    while (page->entries_state == ENTRIES_AT_WORK)
        pthread_cond_wait(&reader->changed, &reader->mutex);
    bool mine = page->entries_state == ENTRIES_WANTED;
    if (mine)
        page->entries_state = ENTRIES_AT_WORK;
    pthread_mutex_unlock(&reader->mutex);
    if (!mine)
        return;
    make(format, column, page);
    pthread_mutex_lock(&reader->mutex);
    page->entries_state = ENTRIES_MADE;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
}

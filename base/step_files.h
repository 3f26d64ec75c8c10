/* The files `step-STEP` of a folder: the checkpoints of a shard, or the coordinator's copies of
 * them. */
#ifndef DML_BASE_STEP_FILES_H
#define DML_BASE_STEP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"

/* How much of a file is sent in one message, at most. The simulator has smaller files. */
#ifdef MUTANTS
#define FILE_PIECE_BYTES UINT64_C(400)
#else
#define FILE_PIECE_BYTES (UINT64_C(1) << 20)
#endif

/* FOLDER/step-STEP; free the result. */
char *step_path(const char *folder, uint64_t step);

/* Removes the files of steps before `before` except those of `steps` [count], and temporary files
 * of such steps. Later steps stay, even if the run went back behind them: a process that was
 * replaced and does not know it yet must not remove what its successor wrote. Files with other
 * names stay. */
int step_files_keep(const struct disk *disk, const char *folder, const uint64_t *steps,
                    size_t count, uint64_t before);

/* Bytes of a file that are on their way between two hosts. */
struct file_piece {
    uint64_t step, offset;
    uint64_t file_length; /* of the whole file */
    void *data;           /* [length] bytes, from malloc(); NULL: none */
    size_t length;
};

/* Reads up to `bytes` from the piece's offset on. ERROR_DATA if there is no such file. */
int step_file_read(const struct disk *disk, const char *folder, uint64_t bytes,
                   struct file_piece *piece);

/* Writes a piece into FOLDER/step-STEP.tmp.NUMBER, and publishes that file as step-STEP if the
 * piece is its end. Pieces come in the order of the file. Two writers of one file have different
 * numbers. */
int step_file_put(const struct disk *disk, const char *folder, uint64_t number,
                  const struct file_piece *piece);

#endif

/* The columns of several files of data: together they are those of the job. */
#ifndef DML_COORDINATOR_RUN_DATASET_COLUMNS_H
#define DML_COORDINATOR_RUN_DATASET_COLUMNS_H

#include "coordinator/run/dataset.h"
#include "data/pack.h"

/* Decides whether columns of `files` files of data may be missing, and whether they add up. */
void dataset_choose_missing(struct source_options *options, unsigned files);

/* As much of options->table as reading a file needs: so its pack stays the same when later files
 * bring columns. NULL: all of it. */
struct table *dataset_table_for(const struct source_options *options, const char *path);

/* ERROR_DATA if the job lists a column that no file has. */
int dataset_check_lists(const struct job *job, const struct table *table);

/* Reads the beginnings of all files, but of pipes: ERROR_DATA if they do not have the columns that
 * the job names, or if one is no data. *table: the columns of CSV, without their kinds; or NULL. */
int dataset_check_columns(const struct job *job, const struct dataset_paths *paths,
                          struct table **table);

/* Says which files lack columns that others have. */
void dataset_warn_of_lacking(const struct table *table, struct pack *const *packs, uint32_t count);

#endif

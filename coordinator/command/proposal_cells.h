/* How the cells of a table are read for a proposal: only for the files that make one. */
#ifndef DML_COORDINATOR_COMMAND_PROPOSAL_CELLS_H
#define DML_COORDINATOR_COMMAND_PROPOSAL_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/profile.h"
#include "data/source/source.h"

/* A proposal while it is made, and as it was made. */
struct proposal {
    const char *data;              /* the file; borrowed */
    const char *only;              /* the file, if the job's data have others, too; else NULL */
    struct source_options reading; /* as the user says, and then as it can be read */
    struct profile profile;
    const char *const *settings; /* KEY=VALUE of --set, which `reading` has; borrowed */
    uint32_t settings_count;
    const char *objective;
    bool named_label; /* the user says which column is the label, or one has such a name */
    const char **own_missing, **own_categories, **own_amounts; /* that `reading` may have; owned */
    char *amounts;  /* remarks on columns that are read as amounts, a line each; or NULL; owned */
    char *strays;   /* texts that are proposed as missing, and where they are; or NULL; owned */
    bool *mixed;    /* of each column: taken for texts, as some cells are no numbers; or NULL */
    uint32_t dates; /* the bit of the format that most columns of dates have; 0: there is none */
};

/* Reads the file into the profile, without telling what is told of it to whoever runs a job. */
int proposal_look(struct proposal *proposal);

/* Sets the label, unless the user did, to a column that has such a name. */
int proposal_find_label(struct proposal *proposal);

/* Reads the file, some times, and settles how its cells and its first line are read. Errors of
 * source_read(), and ERROR_DATA that names the cells that people must decide on. */
int proposal_read_names(struct proposal *proposal);

/* Releases what was settled of the columns. */
void proposal_forget(struct proposal *proposal);

/* Whether column i holds numbers, and texts in some of its cells. */
bool proposal_is_mixed(const struct proposal *proposal, uint32_t i);

/* Whether numbers have a decimal comma. */
bool proposal_has_commas(const struct proposal *proposal);

#endif

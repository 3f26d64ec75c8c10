/* What the page shows of a model beside its figures. */
#ifndef DML_COORDINATOR_COMMAND_ABOUT_MODEL_H
#define DML_COORDINATOR_COMMAND_ABOUT_MODEL_H

#include <jansson.h>

/* Each is NULL where there is none: of networks, of a model that was removed or damaged; the last
 * also once the rows that it was trained on are gone. */
struct about_model {
    json_t *heaviest;   /* export_top_json() */
    json_t *summary;    /* summary_table(), as `summary` prints it without options */
    json_t *importance; /* importance_json() */
};

/* Reads them. `path` as of model_open(). Release in any case. */
void about_model_read(const char *path, struct about_model *about);
void about_model_release(struct about_model *about);

#endif

/* Plug-ins: objectives that users write against dml/objective.h.
 *
 * A library is never loaded into the processes of a run. It lives in a process of its own, which
 * dml-replica becomes with PLUGIN_OPTION, and is asked through a socket and shared memory. So a
 * crash, a loop, a write beyond an array or a changed rounding mode cannot harm anything but its
 * own answers; and whoever asked can say by name what the library did.
 *
 * A struct plugin is one such process. It is for one thread. An error of the library is
 * ERROR_PLUGIN, or ERROR_CONFIG if it cannot be loaded; the text names the library. After an error
 * every further question has the same answer. */
#ifndef DML_PLUGIN_PLUGIN_H
#define DML_PLUGIN_PLUGIN_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/layout.h"
#include "base/rows.h"
#include "base/hash.h"

/* The first argument of dml-replica as the process of a library: path, options and SHA-256 follow.
 */
#define PLUGIN_OPTION "--plugin-process"

#define PLUGIN_NAME_BYTES 64
#define PLUGIN_TEXT_MAX 4096 /* bytes of a path or of options, with the 0 at the end */

/* Which library, and how it is asked. */
struct plugin_source {
    const char *program; /* dml-replica */
    const char *library; /* an absolute path */
    const char *options;
    const char *sha256; /* that the file must have, in hexadecimal; "": any */
    double seconds;     /* that an answer may take */
};

/* A source as one blob, without the program: three texts, each with its 0, then seconds as f64.
 * Decoding checks it; the texts are then those of the blob. */
void plugin_source_encode(const struct plugin_source *source, struct bytes *blob);
bool plugin_source_decode(const void *blob, size_t length, struct plugin_source *source);

/* See enum dml_prediction. */
enum plugin_prediction { PLUGIN_VALUE, PLUGIN_SCORE, PLUGIN_MARGIN };

/* What a library says of itself. */
struct plugin_description {
    char name[PLUGIN_NAME_BYTES];
    char sha256[SHA256_TEXT]; /* of the file */
    enum label_kind labels;   /* LABEL_TARGET, LABEL_BINARY or LABEL_CLASSES */
    enum plugin_prediction prediction;
};

/* The columns of the data, and the numbers of a prediction. */
struct plugin_data {
    uint32_t features, outputs;
    const uint32_t *rank; /* of each column of the rows: which one it is for the library; NULL: the
                             same. A permutation */
};

struct plugin; /* opaque */

/* Starts a process with the library in it. The source's texts must outlive it. */
int plugin_start(const struct plugin_source *source, struct plugin **plugin);
void plugin_stop(struct plugin *plugin); /* NULL is harmless */

/* Makes sure, too, that it gives this layout for the data: ERROR_PLUGIN if it does not. */
int plugin_start_checked(const struct plugin_source *source, const struct plugin_data *data,
                         const struct layout *layout, struct plugin **plugin);

const struct plugin_description *plugin_description(const struct plugin *plugin);

/* The parameters of a model. */
struct plugin_tensors {
    struct layout layout;
    uint32_t by_feature; /* bit t: row j of tensor t belongs to feature j */
};

/* Asks for the parameters, with this seed of the start. */
int plugin_tensors(struct plugin *plugin, const struct plugin_data *data, uint64_t seed,
                   struct plugin_tensors *tensors);

/* Makes room in this process for questions about so many rows, and for a gradient of so many
 * elements. A question that it was not made for makes it; the memory that is shared with the
 * library's process grows with the questions. */
void plugin_expect(struct plugin *plugin, const struct rows_most *rows, uint64_t gradient);

/* What came out. It is valid until the next question. */
struct plugin_result {
    double loss;            /* Σ weight·loss, in the order of the rows */
    const double *gradient; /* of that, as many as there are parameters; NULL: not asked for, or the
                               loss is not finite */
};

/* Loss and, if asked for, gradient of a chunk's rows. ERROR_PLUGIN also if the loss is −infinity,
 * or the gradient not finite where the loss is. */
int plugin_chunk(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                 const double *parameters, uint64_t count, bool gradient,
                 struct plugin_result *result);

/* Predictions of all rows, count×outputs; and the loss of each, as if it weighed 1. A label that is
 * NaN counts as 0. Weights are not read. */
int plugin_predict(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                   const double *parameters, uint64_t count, double *predictions);
int plugin_losses(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                  const double *parameters, uint64_t count, double *losses);

/* How a gradient compares with central differences of the loss. */
struct plugin_gradient {
    uint64_t checked;         /* elements, of all tensors */
    uint64_t element;         /* the worst of these: */
    double given, difference; /* what the library says, and what differences of the loss do; */
    double error;             /* how far apart they are, as a share of what is allowed */
};

/* Compares some elements at a random point, which the layout's seed chooses, over these rows, which
 * get weights. ERROR_PLUGIN if one of them is wrong, or if it does not give the same twice. */
int plugin_check_gradient(struct plugin *plugin, const struct plugin_data *data,
                          const struct rows *rows, const struct layout *layout,
                          struct plugin_gradient *found);

/* The library's process: what dml-replica does with the arguments after PLUGIN_OPTION. Returns the
 * status to exit with. */
int plugin_process(int argc, char **argv);

#endif

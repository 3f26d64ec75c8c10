/* What the code below the library calls, and what stands here in place of what programs do. */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "library/calls.h"
#include "model/onnx_margins.h"
#include "plugin/plugin.h"

/* ---- a program would end ---- */

_Noreturn void memory_exhausted(size_t count, size_t size) {
    error_clear(); /* the first error would win */
    call_break(error_set(ERROR_UNAVAILABLE,
                         "out of memory: %zu elements of %zu bytes could not be had", count, size));
}

/* The C library's, for an assertion that does not hold. */
_Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line,
                             const char *function) {
    error_clear();
    call_break(error_set(ERROR_INTERNAL, "%s:%u: %s: not true: %s; please report this", file, line,
                         function, assertion));
}

/* ---- a program would write a line ---- */

enum log_level log_level_now = LOG_ERROR;

void log_line(enum log_level level, const char *format, ...) {
    (void)level, (void)format;
}

/* ---- a program would start the process of a plug-in ----
 *
 * A scorer refuses the models of plug-ins, so that none of these is called. */

static int no_plugins(void) {
    return error_set(ERROR_UNAVAILABLE, "the library has no plug-ins");
}

char *process_beside(const char *name) {
    return memory_copy_string(name);
}

int plugin_start_checked(const struct plugin_source *source, const struct plugin_data *data,
                         const struct layout *layout, struct plugin **plugin) {
    (void)source, (void)data, (void)layout, (void)plugin;
    return no_plugins();
}

void plugin_stop(struct plugin *plugin) {
    (void)plugin;
}

void plugin_expect(struct plugin *plugin, const struct rows_most *rows, uint64_t gradient) {
    (void)plugin, (void)rows, (void)gradient;
}

int plugin_chunk(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                 const double *parameters, uint64_t count, bool gradient,
                 struct plugin_result *result) {
    (void)plugin, (void)data, (void)rows, (void)parameters, (void)count, (void)gradient;
    (void)result;
    return no_plugins();
}

int plugin_predict(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                   const double *parameters, uint64_t count, double *predictions) {
    (void)plugin, (void)data, (void)rows, (void)parameters, (void)count, (void)predictions;
    return no_plugins();
}

int plugin_losses(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                  const double *parameters, uint64_t count, double *losses) {
    (void)plugin, (void)data, (void)rows, (void)parameters, (void)count, (void)losses;
    return no_plugins();
}

/* ---- a program would write a model for others ---- */

const char *onnx_linear_margins(struct onnx_graph *graph, const struct model *model,
                                const char *sums) {
    (void)graph, (void)model;
    return sums;
}

const char *onnx_network_margins(struct onnx_graph *graph, const struct model *model,
                                 const char *sums) {
    (void)graph, (void)model;
    return sums;
}

#include "model/explanation.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/cell.h"
#include "model/explain.h"

/* How many columns are written for each output. */
static uint32_t columns_of(const struct score_output *output) {
    const uint32_t all = explainer_columns(output->explainer);
    return output->explained && output->explained < all ? output->explained : all;
}

/* The class that the margin of an output belongs to; NULL: there is one margin for all. The margin
 * of ordered classes is that of being in this class or a higher one. */
static const char *class_of(const struct model_layout *layout, uint32_t output) {
    return layout->outputs > 1 ? layout->class_names[output + layout->shared] : NULL;
}

/* Writes "what:class:name" as a cell; the last two may be NULL. */
static void write_name(const char *what, const char *class, const char *name, FILE *file) {
    char *text = memory_format("%s%s%s%s%s", what, class ? ":" : "", class ? class : "",
                               name ? ":" : "", name ? name : "");
    putc(',', file);
    output_write_cell(text, file);
    free(text);
}

void explanation_write_header(const struct model_layout *layout,
                              const struct score_output *output) {
    FILE *file = output->file;
    const char *const *names = explainer_names(output->explainer);
    for (uint32_t k = 0; k < layout->outputs; k++) {
        const char *class = class_of(layout, k);
        write_name("base", class, NULL, file);
        for (uint32_t i = 0; i < columns_of(output); i++) {
            char what[32];
            if (!output->explained) {
                write_name("contribution", class, names[i], file);
                continue;
            }
            snprintf(what, sizeof what, "column_%u", i + 1);
            write_name(what, class, NULL, file);
            snprintf(what, sizeof what, "contribution_%u", i + 1);
            write_name(what, class, NULL, file);
        }
        if (output->explained)
            write_name("rest", class, NULL, file);
    }
}

/* What all columns but some contribute. */
static double rest_of(const struct score_output *output, const double *contributions,
                      const uint32_t *listed, uint32_t count) {
    const uint32_t columns = explainer_columns(output->explainer);
    bool *is_listed = memory_new(columns, sizeof *is_listed);
    double rest = 0;
    for (uint32_t i = 0; i < count; i++)
        is_listed[listed[i]] = true;
    for (uint32_t c = 0; c < columns; c++)
        rest += is_listed[c] ? 0 : contributions[c];
    free(is_listed);
    return rest;
}

/* Writes base and contributions of one output, whose columns are `listed`. */
static void write_cells(const struct score_output *output, double base, const double *contributions,
                        const uint32_t *listed) {
    const char *const *names = explainer_names(output->explainer);
    fprintf(output->file, ",%.17g", base);
    for (uint32_t i = 0; i < columns_of(output); i++) {
        if (output->explained) {
            putc(',', output->file);
            output_write_cell(names[listed[i]], output->file);
        }
        fprintf(output->file, ",%.17g", contributions[listed[i]]);
    }
    if (output->explained)
        fprintf(output->file, ",%.17g", rest_of(output, contributions, listed, columns_of(output)));
}

/* The members of an object. */
static void write_members(const struct score_output *output, double base,
                          const double *contributions, const uint32_t *listed) {
    const char *const *names = explainer_names(output->explainer);
    fprintf(output->file, "\"base\":%.17g,\"contributions\":[", base);
    for (uint32_t i = 0; i < columns_of(output); i++) {
        json_t *name = text_to_json(names[listed[i]]);
        fputs(i ? ",{\"column\":" : "{\"column\":", output->file);
        json_dumpf(name, output->file, JSON_ENCODE_ANY);
        fprintf(output->file, ",\"contribution\":%.17g}", contributions[listed[i]]);
        json_decref(name);
    }
    putc(']', output->file);
    if (output->explained)
        fprintf(output->file, ",\"rest\":%.17g",
                rest_of(output, contributions, listed, columns_of(output)));
}

/* Empty cells of a row, as many as others have. */
static void write_none(const struct model_layout *layout, const struct score_output *output) {
    const uint32_t cells = output->explained ? 2 * columns_of(output) + 2 : columns_of(output) + 1;
    for (uint64_t i = 0; i < (uint64_t)layout->outputs * cells; i++)
        putc(',', output->file);
}

void explanation_write(const struct model_layout *layout, const struct score_output *output,
                       const double *contributions) {
    assert(output->explainer);
    FILE *file = output->file;
    const bool lists = layout->outputs > 1;
    const double *base = explainer_base(output->explainer);
    if (!contributions) {
        if (output->json)
            fprintf(file, ",\"%s\":null", lists ? "explanations" : "contributions");
        else
            write_none(layout, output);
        return;
    }
    uint32_t *listed = memory_new(columns_of(output), sizeof *listed);
    fputs(!output->json ? "" : lists ? ",\"explanations\":[" : ",", file);
    for (uint32_t k = 0; k < layout->outputs; k++) {
        const double *these = contributions + (size_t)k * explainer_columns(output->explainer);
        if (output->json || output->explained)
            explainer_largest(output->explainer, these, columns_of(output), listed);
        else
            for (uint32_t c = 0; c < columns_of(output); c++)
                listed[c] = c;
        if (!output->json) {
            write_cells(output, base[k], these, listed);
            continue;
        }
        if (lists) {
            json_t *class = json_string(class_of(layout, k));
            fputs(k ? ",{\"class\":" : "{\"class\":", file);
            json_dumpf(class, file, JSON_ENCODE_ANY);
            putc(',', file);
            json_decref(class);
        }
        write_members(output, base[k], these, listed);
        if (lists)
            putc('}', file);
    }
    fputs(output->json && lists ? "]" : "", file);
    free(listed);
}

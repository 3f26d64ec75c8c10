/* Says what a pack or a set holds. One list of facts is printed in both forms. */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/memory.h"
#include "data/text/number.h"
#include "data/pack/pack_file.h"
#include "data/set/set_file.h"

#define LISTED_MAX 20 /* members of a list that are printed for people */

static json_t *integer(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *text_list(const char *const *string, uint64_t count, uint64_t step) {
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; i++)
        json_array_append_new(list, text_to_json(string[i * step]));
    return list;
}

static json_t *describe_pack(const struct pack *pack) {
    const struct pack_facts *facts = pack->facts;
    return json_pack(
        "{s:s, s:I, s:s, s:o, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:s, s:I, s:o*, s:o*, s:o*, "
        "s:o*, s:o*, s:o*, s:o*, s:I, s:o*}",
        "kind", "pack", "version", (json_int_t)PACK_VERSION, "fingerprint", facts->fingerprint,
        "source", text_to_json(pack->source), "source_hash", facts->source_hash, "source_bytes",
        (json_int_t)facts->source_bytes, "text_bytes", (json_int_t)facts->text_bytes, "bytes",
        (json_int_t)pack->container.length, "format", source_format_names[facts->format], "rows",
        (json_int_t)facts->rows, "features", (json_int_t)facts->features, "values",
        (json_int_t)facts->values, "value_type", value_type_name((enum value_type)facts->type),
        "blocks", (json_int_t)facts->blocks, "label_column",
        facts->label_column ? integer(facts->label_column) : NULL, "label_texts",
        facts->label_texts ? text_list(pack->label_text, facts->label_texts, 1) : NULL, "columns",
        pack->name ? text_list(pack->name, facts->features, 1) : NULL, "weighted",
        facts->weighted ? json_true() : NULL, "weights_hash",
        *facts->weights_hash ? json_string(facts->weights_hash) : NULL, "offsets",
        facts->offset ? json_true() : NULL, "labels_hash",
        *facts->labels_hash ? json_string(facts->labels_hash) : NULL, "rejected",
        (json_int_t)facts->rejected, "reasons",
        facts->reasons ? text_list(pack->reason, facts->reasons, 1) : NULL);
}

static int describe_sources(const struct container *container, const struct set_facts *facts,
                            json_t *object) {
    const char **source;
    int code = container_strings(container, SET_SOURCES, 2 * (uint64_t)facts->sources, &source);
    if (code)
        return code;
    json_object_set_new(object, "sources", text_list(source, facts->sources, 2));
    json_object_set_new(object, "packs", text_list(source + 1, facts->sources, 2));
    free(source);
    return 0;
}

static json_t *describe_set(const struct set_info *info, const struct set_facts *facts,
                            uint64_t bytes) {
    static const char *const labels[] = {"binary", "classes", "targets", "ordered", "lists"};
    const struct label_summary *targets = info->targets;
    json_t *columns = info->feature_names ? json_array() : NULL;
    for (uint64_t i = 0; columns && i < info->features; i++) /* in the order of the file */
        json_array_append_new(
            columns, text_to_json(info->feature_names[column_order_at(&info->original_order, i)]));
    json_t *object = json_pack(
        "{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:I, s:o*, s:o*, s:o*, s:s, s:o*}",
        "kind", "set", "version", (json_int_t)SET_VERSION, "fingerprint", info->fingerprint,
        "bytes", (json_int_t)bytes, "rows", (json_int_t)info->rows, "features",
        (json_int_t)info->features, "values", (json_int_t)info->values, "values_in_text",
        (json_int_t)facts->text_values, "storage", info->dense ? "dense" : "sparse", "value_type",
        value_type_name(info->type), "chunks", (json_int_t)info->chunks, "strips",
        info->strip_columns ? integer(set_strips(info)) : NULL, "columns_per_strip",
        info->strip_columns ? integer(info->strip_columns) : NULL, "shuffled_rows_per_chunk",
        info->block_rows ? integer(info->block_rows) : NULL, "labels", labels[info->labels],
        "classes", info->classes ? text_list(info->class_names, info->classes, 1) : NULL);
    if (!info->classes)
        json_object_update_new(
            object,
            json_pack("{s:o*, s:o*, s:o*, s:o*}", "label_max_abs", json_real(info->label_max_abs),
                      "label_least", json_real(targets->least), "label_mean",
                      json_real(targets->mean), "label_median",
                      info->has_offsets ? NULL
                                        : json_real(targets->quantile[LABEL_QUANTILES / 2])));
    if (columns)
        json_object_set_new(object, "columns", columns);
    if (info->uniform)
        json_object_set_new(object, "uniform_exponent", json_integer(info->uniform_exponent));
    if (info->weighted)
        json_object_set_new(object, "weight_sum", json_real(info->weight_total));
    if (info->has_offsets)
        json_object_set_new(object, "offsets",
                            json_pack("{s:f, s:f, s:f}", "least", info->offsets.least, "mean",
                                      info->offsets.mean, "most", info->offsets.most));
    json_object_set_new(object, "rejected", integer(info->rejected));
    if (info->holdout > 0)
        json_object_update_new(object, json_pack("{s:f, s:I}", "holdout", info->holdout,
                                                 "rows_held_out", (json_int_t)info->rows_held_out));
    if (info->holdout_chunks)
        json_object_update_new(object, json_pack("{s:I, s:I, s:I}", "holdout_chunks",
                                                 (json_int_t)info->holdout_chunks, "holdout_rows",
                                                 (json_int_t)info->holdout_rows, "holdout_unseen",
                                                 (json_int_t)info->holdout_unseen));
    return object;
}

/* Every chunk is verified on the way. */
static int load_set(const char *path, json_t **object) {
    struct set *set;
    int code = set_open(path, &set);
    if (code)
        return code;
    const struct set_info *info = set_info(set);
    struct rows rows;
    for (uint32_t i = 0; i < info->chunks && !info->strip_columns && !code; i++)
        code = set_chunk(set, i, &rows);
    for (uint32_t i = 0; i < set_tiles(info) && !code; i++)
        code = set_tile(set, i, &rows);
    struct container container;
    if (!code)
        code = container_open(&container, &set_kind, path);
    if (!code) {
        size_t length;
        const struct set_facts *facts = container_get(&container, SET_FACTS, &length);
        *object = describe_set(set_info(set), facts, container.length);
        code = describe_sources(&container, facts, *object);
        container_close(&container);
        if (code)
            json_decref(*object);
    }
    set_close(set);
    return code;
}

static void print_for_people(json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char label[32], number[NUMBER_TEXT];
        snprintf(label, sizeof label, "%s", key);
        for (char *p = label; *p; p++)
            if (*p == '_')
                *p = ' ';
        printf("%-18s", label);
        number_format(json_real_value(value), number);
        if (json_is_array(value)) {
            size_t count = json_array_size(value);
            for (size_t i = 0; i < count && i < LISTED_MAX; i++) {
                fputs(i ? ", " : "", stdout);
                escape_put(json_string_value(json_array_get(value, i)), stdout);
            }
            if (count > LISTED_MAX)
                printf(", … (%zu in all)", count);
        } else if (json_is_integer(value))
            printf("%lld", (long long)json_integer_value(value));
        else
            escape_put(json_is_string(value)    ? json_string_value(value)
                       : json_is_boolean(value) ? (json_is_true(value) ? "yes" : "no")
                                                : number,
                       stdout);
        putchar('\n');
    }
}

int inspect_print(const char *path, bool json) {
    char magic[8] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(ERROR_DATA, "cannot open %s", path);
    size_t got = fread(magic, 1, sizeof magic, file);
    fclose(file);
    json_t *object = NULL;
    struct pack *pack = NULL;
    int code;
    if (got == sizeof magic && !memcmp(magic, pack_kind.magic, sizeof magic))
        code = pack_open(path, &pack);
    else if (got == sizeof magic && !memcmp(magic, set_kind.magic, sizeof magic))
        code = load_set(path, &object);
    else
        code = error_set(ERROR_DATA, "%s is neither a pack nor a set", path);
    if (code)
        return code;
    object = pack ? describe_pack(pack) : object;
    pack_close(pack);
    if (json) {
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        print_for_people(object);
    }
    json_decref(object);
    return 0;
}

/* Says what a pack or a set holds. One list of facts is printed in both forms. */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/memory.h"
#include "data/number.h"
#include "data/pack_file.h"
#include "data/set_file.h"

#define LISTED_MAX 20 /* members of a list that are printed for people */

static const char *labels_name(uint32_t labels) {
    static const char *const name[] = {"binary", "classes", "targets", "ordered", "lists"};
    return name[labels];
}

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
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("pack"));
    json_object_set_new(object, "version", integer(PACK_VERSION));
    json_object_set_new(object, "fingerprint", json_string(facts->fingerprint));
    json_object_set_new(object, "source", text_to_json(pack->source));
    json_object_set_new(object, "source_hash", json_string(facts->source_hash));
    json_object_set_new(object, "source_bytes", integer(facts->source_bytes));
    json_object_set_new(object, "text_bytes", integer(facts->text_bytes));
    json_object_set_new(object, "bytes", integer(pack->container.length));
    json_object_set_new(object, "format", json_string(source_format_names[facts->format]));
    json_object_set_new(object, "rows", integer(facts->rows));
    json_object_set_new(object, "features", integer(facts->features));
    json_object_set_new(object, "values", integer(facts->values));
    json_object_set_new(object, "value_type",
                        json_string(value_type_name((enum value_type)facts->type)));
    json_object_set_new(object, "blocks", integer(facts->blocks));
    if (facts->label_column)
        json_object_set_new(object, "label_column", integer(facts->label_column));
    if (facts->label_texts)
        json_object_set_new(object, "label_texts",
                            text_list(pack->label_text, facts->label_texts, 1));
    if (pack->name)
        json_object_set_new(object, "columns", text_list(pack->name, facts->features, 1));
    if (facts->weighted)
        json_object_set_new(object, "weighted", json_true());
    if (*facts->weights_hash)
        json_object_set_new(object, "weights_hash", json_string(facts->weights_hash));
    if (*facts->labels_hash)
        json_object_set_new(object, "labels_hash", json_string(facts->labels_hash));
    json_object_set_new(object, "rejected", integer(facts->rejected));
    if (facts->reasons)
        json_object_set_new(object, "reasons", text_list(pack->reason, facts->reasons, 1));
    return object;
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

static void describe_holdout(const struct set_info *info, json_t *object) {
    if (info->holdout > 0) {
        json_object_set_new(object, "holdout", json_real(info->holdout));
        json_object_set_new(object, "rows_held_out", integer(info->rows_held_out));
    }
    if (info->holdout_chunks) {
        json_object_set_new(object, "holdout_chunks", integer(info->holdout_chunks));
        json_object_set_new(object, "holdout_rows", integer(info->holdout_rows));
        json_object_set_new(object, "holdout_unseen", integer(info->holdout_unseen));
    }
}

/* Names in the order of the file, which is not that of the set. */
static json_t *columns_in_order(const struct set_info *info) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < info->features; i++)
        json_array_append_new(list, text_to_json(info->feature_names[info->original_order[i]]));
    return list;
}

static void describe_targets(const struct set_info *info, json_t *object) {
    const struct label_summary *targets = info->targets;
    json_object_set_new(object, "label_max_abs", json_real(info->label_max_abs));
    json_object_set_new(object, "label_least", json_real(targets->least));
    json_object_set_new(object, "label_mean", json_real(targets->mean));
    json_object_set_new(object, "label_median", json_real(targets->quantile[LABEL_QUANTILES / 2]));
}

static json_t *describe_set(const struct set_info *info, const struct set_facts *facts,
                            uint64_t bytes) {
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("set"));
    json_object_set_new(object, "version", integer(SET_VERSION));
    json_object_set_new(object, "fingerprint", json_string(info->fingerprint));
    json_object_set_new(object, "bytes", integer(bytes));
    json_object_set_new(object, "rows", integer(info->rows));
    json_object_set_new(object, "features", integer(info->features));
    json_object_set_new(object, "values", integer(info->values));
    json_object_set_new(object, "values_in_text", integer(facts->text_values));
    json_object_set_new(object, "storage", json_string(info->dense ? "dense" : "sparse"));
    json_object_set_new(object, "value_type", json_string(value_type_name(info->type)));
    json_object_set_new(object, "chunks", integer(info->chunks));
    if (info->block_rows)
        json_object_set_new(object, "shuffled_rows_per_chunk", integer(info->block_rows));
    json_object_set_new(object, "labels", json_string(labels_name(info->labels)));
    if (info->classes)
        json_object_set_new(object, "classes", text_list(info->class_names, info->classes, 1));
    else
        describe_targets(info, object);
    if (info->feature_names)
        json_object_set_new(object, "columns", columns_in_order(info));
    if (info->uniform)
        json_object_set_new(object, "uniform_exponent", json_integer(info->uniform_exponent));
    if (info->weighted)
        json_object_set_new(object, "weight_sum", json_real(info->weight_total));
    json_object_set_new(object, "rejected", integer(info->rejected));
    describe_holdout(info, object);
    return object;
}

static int load_pack(const char *path, json_t **object) {
    struct pack *pack;
    int code = pack_open(path, &pack);
    if (code)
        return code;
    *object = describe_pack(pack);
    pack_close(pack);
    return 0;
}

/* Every chunk is verified on the way. */
static int load_set(const char *path, json_t **object) {
    struct set *set;
    int code = set_open(path, &set);
    if (code)
        return code;
    struct rows rows;
    for (uint32_t i = 0; i < set_info(set)->chunks && !code; i++)
        code = set_chunk(set, i, &rows);
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

static void print_list(const json_t *list) {
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < LISTED_MAX; i++) {
        fputs(i ? ", " : "", stdout);
        escape_put(json_string_value(json_array_get(list, i)), stdout);
    }
    if (count > LISTED_MAX)
        printf(", … (%zu in all)", count);
}

static void print_number(double value) {
    char text[NUMBER_TEXT];
    number_format(value, text);
    fputs(text, stdout);
}

static void print_for_people(json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char label[32];
        snprintf(label, sizeof label, "%s", key);
        for (char *p = label; *p; p++)
            if (*p == '_')
                *p = ' ';
        printf("%-18s", label);
        if (json_is_array(value))
            print_list(value);
        else if (json_is_string(value))
            escape_put(json_string_value(value), stdout);
        else if (json_is_integer(value))
            printf("%lld", (long long)json_integer_value(value));
        else if (json_is_boolean(value))
            fputs(json_is_true(value) ? "yes" : "no", stdout);
        else
            print_number(json_real_value(value));
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
    int code;
    if (got == sizeof magic && !memcmp(magic, pack_kind.magic, sizeof magic))
        code = load_pack(path, &object);
    else if (got == sizeof magic && !memcmp(magic, set_kind.magic, sizeof magic))
        code = load_set(path, &object);
    else
        code = error_set(ERROR_DATA, "%s is neither a pack nor a set", path);
    if (code)
        return code;
    if (json) {
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        print_for_people(object);
    }
    json_decref(object);
    return 0;
}

#include "model/onnx_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* The numbers of fields are those of onnx.proto3. */
#define IR_VERSION 8
#define OPSET 17
#define OPSET_ML 3
#define DOMAIN_ML "ai.onnx.ml"

struct onnx_graph {
    struct bytes nodes, tensors, inputs, outputs, metadata;
    char **name; /* owned */
    uint32_t names;
    size_t names_room;
    uint32_t values;    /* named by numbers so far */
    const char **given; /* the names of inputs, which `name` owns; owned */
    uint32_t given_count;
    size_t given_room;
};

struct onnx_graph *onnx_new(void) {
    struct onnx_graph *graph = memory_new(1, sizeof *graph);
    struct bytes *all[] = {&graph->nodes, &graph->tensors, &graph->inputs, &graph->outputs,
                           &graph->metadata};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        bytes_init(all[i]);
    return graph;
}

void onnx_free(struct onnx_graph *graph) {
    if (!graph)
        return;
    bytes_release(&graph->nodes);
    bytes_release(&graph->tensors);
    bytes_release(&graph->inputs);
    bytes_release(&graph->outputs);
    bytes_release(&graph->metadata);
    for (uint32_t i = 0; i < graph->names; i++)
        free(graph->name[i]);
    free(graph->name);
    free(graph->given);
    free(graph);
}

uint64_t onnx_bytes(const struct onnx_graph *graph) {
    return graph->nodes.length + graph->tensors.length + graph->inputs.length +
           graph->outputs.length + graph->metadata.length;
}

/* ---- the wire format ---- */

static void put_varint(struct bytes *bytes, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        bytes_put_u8(bytes, (uint8_t)(value | 0x80));
    bytes_put_u8(bytes, (uint8_t)value);
}

static void put_number(struct bytes *bytes, unsigned field, uint64_t value) {
    put_varint(bytes, (uint64_t)field << 3);
    put_varint(bytes, value);
}

static void put_head(struct bytes *bytes, unsigned field, size_t length) {
    put_varint(bytes, (uint64_t)field << 3 | 2);
    put_varint(bytes, length);
}

static void put_bytes(struct bytes *bytes, unsigned field, const void *data, size_t length) {
    put_head(bytes, field, length);
    if (length)
        bytes_append(bytes, data, length);
}

static void put_text(struct bytes *bytes, unsigned field, const char *text) {
    put_bytes(bytes, field, text, strlen(text));
}

/* Moves a message into another as one of its fields. */
static void put_message(struct bytes *bytes, unsigned field, struct bytes *message) {
    put_bytes(bytes, field, message->data, message->length);
    bytes_release(message);
}

static struct bytes begin_message(void) {
    struct bytes message;
    bytes_init(&message);
    return message;
}

/* ---- names ---- */

/* What lies between inputs and outputs is named so, and by a number. */
#define INSIDE '/'

static const char *keep(struct onnx_graph *graph, char *name) {
    MEMORY_ROOM(graph->name, graph->names, graph->names_room);
    return graph->name[graph->names++] = name;
}

static const char *new_name(struct onnx_graph *graph) {
    return keep(graph, memory_format("%c%u", INSIDE, graph->values++));
}

static bool is_taken(const struct onnx_graph *graph, const char *name) {
    static const char *const answers[] = {ONNX_LABEL, ONNX_LABELS, ONNX_MARGINS, ONNX_PROBABILITIES,
                                          ONNX_VALUE};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (strcmp(name, answers[i]) == 0)
            return true;
    uint32_t i = 0;
    while (i < graph->given_count && strcmp(graph->given[i], name) != 0)
        i++;
    return i < graph->given_count || *name == INSIDE || !*name;
}

/* ---- inputs and outputs ---- */

/* ValueInfoProto: name, and a tensor type of any number of rows. */
static void put_value_info(struct bytes *bytes, unsigned field, const char *name,
                           enum onnx_type type, uint64_t columns) {
    struct bytes rows = begin_message(), shape = begin_message(), tensor = begin_message(),
                 of_type = begin_message(), info = begin_message();
    put_text(&rows, 2, "rows");
    put_message(&shape, 1, &rows);
    if (columns) {
        struct bytes dimension = begin_message();
        put_number(&dimension, 1, columns);
        put_message(&shape, 1, &dimension);
    }
    put_number(&tensor, 1, type);
    put_message(&tensor, 2, &shape);
    put_message(&of_type, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &of_type);
    put_message(bytes, field, &info);
}

const char *onnx_input(struct onnx_graph *graph, const char *name, enum onnx_type type,
                       uint64_t columns) {
    assert(name && *name);
    char *unique = memory_copy_string(name);
    for (uint32_t i = 2; is_taken(graph, unique); i++) {
        free(unique);
        unique = memory_format("column %s %u", name, i);
    }
    MEMORY_ROOM(graph->given, graph->given_count, graph->given_room);
    graph->given[graph->given_count++] = keep(graph, unique);
    put_value_info(&graph->inputs, 11, unique, type, columns);
    return unique;
}

void onnx_describe(struct onnx_graph *graph, const char *key, const char *text) {
    assert(key && text);
    struct bytes entry = begin_message();
    put_text(&entry, 1, key);
    put_text(&entry, 2, text);
    put_message(&graph->metadata, 14, &entry);
}

/* ---- tensors ---- */

static void put_dimensions(struct bytes *tensor, uint64_t rows, uint64_t columns) {
    put_number(tensor, 1, rows);
    if (columns)
        put_number(tensor, 1, columns);
}

/* TensorProto, whose elements are raw_data, little-endian. */
static const char *add_raw(struct onnx_graph *graph, enum onnx_type type, const void *values,
                           uint64_t rows, uint64_t columns) {
    assert(rows > 0 && values);
    struct bytes tensor = begin_message();
    const char *name = new_name(graph);
    uint64_t count = rows * (columns ? columns : 1);
    put_dimensions(&tensor, rows, columns);
    put_number(&tensor, 2, type);
    put_text(&tensor, 8, name);
    put_head(&tensor, 9, count * 8);
    for (uint64_t i = 0; i < count; i++)
        if (type == ONNX_DOUBLE)
            bytes_put_f64(&tensor, ((const double *)values)[i]);
        else
            bytes_put_i64(&tensor, ((const int64_t *)values)[i]);
    put_message(&graph->tensors, 5, &tensor);
    return name;
}

const char *onnx_doubles(struct onnx_graph *graph, const double *values, uint64_t rows,
                         uint64_t columns) {
    return add_raw(graph, ONNX_DOUBLE, values, rows, columns);
}

const char *onnx_double(struct onnx_graph *graph, double value) {
    return add_raw(graph, ONNX_DOUBLE, &value, 1, 0);
}

const char *onnx_int64s(struct onnx_graph *graph, const int64_t *values, uint64_t rows) {
    return add_raw(graph, ONNX_INT64, values, rows, 0);
}

const char *onnx_int64(struct onnx_graph *graph, int64_t value) {
    return onnx_int64s(graph, &value, 1);
}

const char *onnx_strings(struct onnx_graph *graph, const char *const *texts, uint64_t rows) {
    struct bytes tensor = begin_message();
    const char *name = new_name(graph);
    put_dimensions(&tensor, rows, 0);
    put_number(&tensor, 2, ONNX_STRING);
    for (uint64_t i = 0; i < rows; i++)
        put_text(&tensor, 6, texts[i]);
    put_text(&tensor, 8, name);
    put_message(&graph->tensors, 5, &tensor);
    return name;
}

/* ---- nodes ---- */

/* As AttributeProto.AttributeType numbers them. */
enum attribute_type { ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7, ATTRIBUTE_STRINGS = 8 };

static void put_int_attribute(struct bytes *node, const char *name, int64_t value) {
    struct bytes attribute = begin_message();
    put_text(&attribute, 1, name);
    put_number(&attribute, 3, (uint64_t)value);
    put_number(&attribute, 20, ATTRIBUTE_INT);
    put_message(node, 5, &attribute);
}

/* Ends a NodeProto, whose inputs and attributes it has already. */
static const char *end_node(struct onnx_graph *graph, struct bytes *node, const char *op,
                            const char *domain, const char *name) {
    if (!name)
        name = new_name(graph);
    put_text(node, 2, name);
    put_text(node, 4, op);
    if (domain)
        put_text(node, 7, domain);
    put_message(&graph->nodes, 1, node);
    return name;
}

const char *onnx_node(struct onnx_graph *graph, const char *op, const char *a, const char *b,
                      const char *c) {
    struct bytes node = begin_message();
    put_text(&node, 1, a);
    if (b)
        put_text(&node, 1, b);
    if (c)
        put_text(&node, 1, c);
    return end_node(graph, &node, op, NULL, NULL);
}

const char *onnx_node_with(struct onnx_graph *graph, const char *op, const char *a,
                           const char *attribute, int64_t value) {
    struct bytes node = begin_message();
    put_text(&node, 1, a);
    put_int_attribute(&node, attribute, value);
    return end_node(graph, &node, op, NULL, NULL);
}

void onnx_output(struct onnx_graph *graph, const char *name, const char *value, enum onnx_type type,
                 uint64_t columns) {
    struct bytes node = begin_message();
    assert(is_taken(graph, name));
    put_text(&node, 1, value);
    end_node(graph, &node, "Identity", NULL, keep(graph, memory_copy_string(name)));
    put_value_info(&graph->outputs, 12, name, type, columns);
}

const char *onnx_cast(struct onnx_graph *graph, const char *value, enum onnx_type type) {
    return onnx_node_with(graph, "Cast", value, "to", type);
}

const char *onnx_concat(struct onnx_graph *graph, const char *const *values, uint32_t count) {
    struct bytes node = begin_message();
    for (uint32_t i = 0; i < count; i++)
        put_text(&node, 1, values[i]);
    put_int_attribute(&node, "axis", 1);
    return end_node(graph, &node, "Concat", NULL, NULL);
}

const char *onnx_as_column(struct onnx_graph *graph, const char *vector) {
    return onnx_node(graph, "Unsqueeze", vector, onnx_int64(graph, 1), NULL);
}

const char *onnx_column(struct onnx_graph *graph, const char *matrix, uint32_t number) {
    struct bytes node = begin_message();
    put_text(&node, 1, matrix);
    put_text(&node, 1, onnx_int64(graph, number));
    put_int_attribute(&node, "axis", 1);
    return end_node(graph, &node, "Gather", NULL, NULL);
}

const char *onnx_encode(struct onnx_graph *graph, const char *vector, const char *const *texts,
                        const int64_t *number, uint64_t count, int64_t otherwise) {
    struct bytes node = begin_message(), keys = begin_message(), values = begin_message();
    put_text(&keys, 1, "keys_strings");
    put_text(&values, 1, "values_int64s");
    for (uint64_t i = 0; i < count; i++) {
        put_text(&keys, 9, texts[i]);
        put_number(&values, 8, (uint64_t)number[i]);
    }
    put_number(&keys, 20, ATTRIBUTE_STRINGS);
    put_number(&values, 20, ATTRIBUTE_INTS);
    put_text(&node, 1, vector);
    put_message(&node, 5, &keys);
    put_message(&node, 5, &values);
    put_int_attribute(&node, "default_int64", otherwise);
    return end_node(graph, &node, "LabelEncoder", DOMAIN_ML, NULL);
}

/* ---- the file ---- */

static void put_opset(struct bytes *model, const char *domain, uint64_t version) {
    struct bytes opset = begin_message();
    if (*domain)
        put_text(&opset, 1, domain);
    put_number(&opset, 2, version);
    put_message(model, 8, &opset);
}

void onnx_write(struct onnx_graph *graph, const char *version, FILE *file) {
    struct bytes head = begin_message(), name = begin_message();
    put_number(&head, 1, IR_VERSION);
    put_text(&head, 2, "dml");
    put_text(&head, 3, version);
    put_opset(&head, "", OPSET);
    put_opset(&head, DOMAIN_ML, OPSET_ML);
    put_text(&name, 2, "dml");
    put_head(&head, 7,
             graph->nodes.length + name.length + graph->tensors.length + graph->inputs.length +
                 graph->outputs.length);
    const struct bytes *parts[] = {&head,           &graph->nodes,  &name,
                                   &graph->tensors, &graph->inputs, &graph->outputs,
                                   &graph->metadata};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i]->length)
            fwrite(parts[i]->data, 1, parts[i]->length, file);
    }
    bytes_release(&head);
    bytes_release(&name);
}

/* Inside plugin/ only: what a process and the library's process say to each other. Both are of the
 * same build, as the version of PLUGIN_TALK makes sure.
 *
 * Requests and answers are these structs, a packet each, over a socket. What is large lies in
 * memory that both share: the parent puts rows and parameters there, and finds losses, gradient or
 * predictions. Offsets are in bytes, multiples of 8. */
#ifndef DML_PLUGIN_TALK_H
#define DML_PLUGIN_TALK_H

#include <stdint.h>

#include "base/sha256.h"
#include "plugin/dml/objective.h"

/* Raised whenever these structs change. */
#define PLUGIN_TALK UINT32_C(0x706c0001)

/* The descriptors of the library's process. */
enum { PLUGIN_SOCKET = 3, PLUGIN_MEMORY = 4 };

enum plugin_operation { PLUGIN_TENSORS, PLUGIN_CHUNK, PLUGIN_PREDICT };

struct plugin_request {
    uint32_t operation;
    struct dml_data data;

    /* Of PLUGIN_CHUNK and PLUGIN_PREDICT. An offset of 0 is NULL: what is at the beginning of the
     * memory is never asked for by it. */
    uint32_t rows;
    uint64_t bytes; /* of the memory */
    uint64_t start, column, value, label, weight, parameters;
    uint64_t out;      /* losses, or predictions */
    uint64_t gradient; /* 0: not asked for; zero before */
};

/* The first one comes unasked, when the library is loaded. */
struct plugin_answer {
    uint32_t talk;
    int32_t code; /* 0, or an error code with its text */
    char text[1024];
    union {
        struct { /* of the first */
            char name[64];
            char sha256[SHA256_TEXT];
            struct dml_form form;
        };
        struct { /* of PLUGIN_TENSORS */
            uint32_t count;
            struct dml_tensor tensor[DML_TENSORS_MAX];
        };
    };
};

#endif

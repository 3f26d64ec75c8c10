/* Inside plugin/ only: what a process and the library's process say to each other. Both are of the
 * same build, as the version of PLUGIN_TALK makes sure.
 *
 * Requests and answers are these structs, a packet each, over a socket. What is large lies in
 * memories that both share: the parent puts rows and parameters into one, which the library's
 * process can only read, and finds losses or predictions, and the gradient, in two others. Offsets
 * are in bytes, multiples of 8.
 *
 * A library may do anything in its process. So an answer counts only if it has the number of its
 * request and comes from that process, and not from one that the library forked. */
#ifndef DML_PLUGIN_TALK_H
#define DML_PLUGIN_TALK_H

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "plugin/dml/objective.h"

/* Raised whenever these structs change; the upper half stays. */
#define PLUGIN_TALK UINT32_C(0x706c0002)
#define PLUGIN_TALK_KIND(talk) ((talk) >> 16)

/* The descriptor of the library's process. */
enum { PLUGIN_SOCKET = 3 };

/* The status of a library's process that finds its descriptor gone. */
enum { PLUGIN_LOST = 99 };

enum plugin_operation { PLUGIN_TENSORS, PLUGIN_CHUNK, PLUGIN_PREDICT };

enum plugin_shared { PLUGIN_INPUT, PLUGIN_OUT, PLUGIN_GRADIENT, PLUGIN_MEMORIES };

/* What users know it by. */
static inline const char *plugin_shared_name(enum plugin_shared which, const char *function) {
    return which == PLUGIN_GRADIENT             ? "gradient"
           : which == PLUGIN_INPUT              ? "rows"
           : strcmp(function, "predict()") == 0 ? "prediction"
                                                : "loss";
}

struct plugin_request {
    uint32_t operation;
    uint32_t rows;   /* of PLUGIN_CHUNK and PLUGIN_PREDICT, as all below */
    uint64_t number; /* 1 of the first */
    struct dml_data data;

    /* The bytes of each memory that is new; the descriptors of new memories come with the request,
     * in order. 0: the process has the memory already. */
    uint64_t bytes[PLUGIN_MEMORIES];

    /* An offset of 0 is NULL: what is at the beginning of a memory is never asked for by it. */
    uint64_t start, column, value, label, weight, parameters;
    uint64_t out;      /* losses, or predictions */
    uint64_t gradient; /* 0: not asked for; zero before */
};

/* The first one comes unasked, when the library is loaded. */
struct plugin_answer {
    uint32_t talk;
    int32_t code;    /* 0, or an error code with its text */
    uint64_t number; /* of the request; 0 of the first */
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

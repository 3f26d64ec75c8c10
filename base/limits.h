/* Every limit in one place, with its unit, and how limits relate. */
#ifndef DML_BASE_LIMITS_H
#define DML_BASE_LIMITS_H

#include <assert.h> /* static_assert also where it is C++ */
#include <stdint.h>

/* Assertions stop a process whose state is broken before it can write or send anything of it:
 * others take its work over. Without them a wrong model could come out. */
#ifdef NDEBUG
#error "assertions are part of the product: compile without NDEBUG"
#endif

/* Vectors. A block is the unit of the fixed summation order, and the least that a shard owns. */
#define BLOCK_ELEMENTS 4096
#ifdef MUTANTS
#define ROW_BLOCK 8 /* the simulator has few rows */
#else
#define ROW_BLOCK 256 /* the block of vectors of rows, in rows */
#endif

/* Parameters: see base/layout.h. */
#define TENSORS_MAX 32
#define TENSOR_NAME_BYTES 24                             /* with the 0 at its end */
#define PARAMETERS_MAX (UINT64_C(1) << 34)               /* elements of a vector */
#define NETWORK_LAYERS_MAX 15                            /* hidden ones */
#define PRECONDITION_PARAMETERS_MAX (2 * BLOCK_ELEMENTS) /* of a dense matrix: all on one shard */
#define PRECONDITION_BLOCK_MAX BLOCK_ELEMENTS /* that a job may ask for; a summary takes more */
#define FINER_MAX 62 /* bits that sums for errors of estimates may add to a base exponent */

/* Losses. */
#define LOSS_PARAMETERS_MAX 2 /* of one loss */

/* Data. */
#define FEATURE_ID_MAX UINT64_C(0xffffffffffff) /* 48 bits: the largest id in a LIBSVM file */
/* Distinct features of a run, whose numbers are local to a strip wherever rows are computed on; and
 * of what numbers them all in 32 bits: a file, a table, and a set that is not in tiles. */
#define COLUMNS_MAX (UINT64_C(1) << 33)
#define FEATURES_MAX UINT32_C(0x7fffffff)
#define CLASSES_MAX 65536          /* distinct labels of a classification */
#define ARRAY_WIDTH_MAX (1u << 24) /* numbers in a row of an array */
#define OFFSET_MAX 1e100           /* of a row's offset, either side of 0; and of its exposure */
#define WEIGHT_MAX 1e100           /* of a row, or of a class */
#define LINE_BYTES_MAX (64u << 20) /* one line of text */
#define CHUNK_BYTES_MIN (16u << 10)
#define CHUNK_BYTES_MAX (1u << 20)
#define CHUNKS_AIMED_AT 256            /* chunk bytes = packed bytes / this, clamped */
#define TILES_MAX (1u << 28)           /* of a set: chunks times strips */
#define SET_PIECE_BYTES_MAX (1u << 20) /* of a set's file, in one message */
#define SET_BLOCK_ROWS 64              /* of a chunk of a shuffled set, at most; below 256 */
#define SET_BLOCK_ROWS_MIN 8           /* and at least, but the last */

/* Optimizer. */
#define FOLDS_MAX 100   /* of a cross-validation */
#define HISTORY_MAX 200 /* curvature pairs */
#define HISTORY_AUTO_MAX 200
#define HISTORY_AUTO_MIN 10
#define SLOTS_MAX (HISTORY_MAX + 2)
#define DIRECTIONS_MAX 100 /* of the window of common directions */
#define WINDOW_MAX (DIRECTIONS_MAX + 2)
#define WORKING_SET_MAX 2048 /* parameters that are listed by their numbers: of a working set */
#define OPERATIONS_MAX 256   /* of a program */
/* That a program yields: products of a history, or a matrix of the window beside its slopes. */
#define SCALARS_MAX                                                                                \
    (4 * SLOTS_MAX + WINDOW_MAX * (WINDOW_MAX + 1) / 2 + WINDOW_MAX + 2 * TENSORS_MAX + 16)

/* Minibatches. */
#define DOWNPOUR_BATCH_MIN 8          /* rows of a minibatch, which has a multiple of them */
#define DOWNPOUR_BATCH 128            /* auto, but for fewer rows */
#define DOWNPOUR_STEPS_LEAST 300      /* of an epoch of a linear model, else auto is less */
#define DOWNPOUR_BATCH_MAX (1u << 30) /* rows of a minibatch, without the schedule */
#define DOWNPOUR_EPOCHS_MAX 1000000

/* Cluster. */
#define DESCRIPTORS_LEAST 32 /* files that a process must be allowed to have open */
#define SHARDS_MAX 256
#ifndef REPLICAS_MAX /* bench/efficiency looks further: see bench/local.mk */
#define REPLICAS_MAX 4096
#endif
#define FOLD_FLUSHES_MAX 256 /* that one FOLD lists, or one FOLDED */
#define THREADS_MAX 256
/* How long a worker may say nothing before it counts as lost. One that a former coordinator left at
 * work says nothing to the next one before that is done: the larger the model, the longer. */
#define SILENCE_MS 10000
#define SILENCE_NS_A_PARAMETER 500

/* Devices: how long one may be at work on what is waited for, before it counts as lost. While a
 * worker waits for its device, it answers nobody; a thread that drives one may wait longer. The
 * most that it is given in one go takes less than a minute, on a slow GPU that others use, too. */
#define DEVICE_ANSWER_MS 5000
#define DEVICE_WORK_MS 300000

/* Wire. */
#define FRAME_BODY_BYTES_MAX (16u << 20)
#define BULK_BYTES_MAX (UINT64_C(1) << 37)
#define ADDRESS_BYTES_MAX 1024
#define LOCAL_SECRET_DIGITS 32              /* see wire/address.h */
#define CONNECTIONS_MAX (REPLICAS_MAX + 64) /* of one worker */

static_assert(COLUMNS_MAX < PARAMETERS_MAX, "a weight a column and an intercept are a model");
static_assert(CHUNK_BYTES_MIN <= CHUNK_BYTES_MAX, "a chunk's least size is below its largest");
static_assert(BULK_BYTES_MAX / sizeof(double) == PARAMETERS_MAX, "a whole vector fits a bulk");
static_assert(2 * (NETWORK_LAYERS_MAX + 1) <= TENSORS_MAX, "a weight and a bias a layer");
static_assert(DEVICE_ANSWER_MS < SILENCE_MS, "a worker can say that its device hangs");
static_assert(8 * WORKING_SET_MAX + 512 <= 32768, "an EVALUATE can list a working set");
static_assert(PRECONDITION_PARAMETERS_MAX + 1 + 16384 <= 32768, "a set-up has a byte a parameter");
static_assert(WORKING_SET_MAX <= PRECONDITION_PARAMETERS_MAX && WORKING_SET_MAX <= SCALARS_MAX,
              "a step over a working set is made on one shard, and sent as scalars");
static_assert(HISTORY_AUTO_MAX <= HISTORY_MAX, "automatic history stays within the limit");

/* Files on a network file system up to this size are read, larger ones mapped. */
#define NETWORK_READ_BYTES_MAX (INT64_C(64) << 20)

#endif

/* Inside tests/ptx/ only: a kernel as it is interpreted. */
#ifndef DML_TESTS_PTX_MACHINE_H
#define DML_TESTS_PTX_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/ptx/ptx.h"

/* A register: 64 bits that each operation reads and writes as its type says. A predicate is 0 or 1
 * in u32. */
union word {
    uint64_t u64;
    int64_t s64;
    uint32_t u32;
    int32_t s32;
    uint16_t u16;
    int16_t s16;
    double f64;
    float f32;
};

enum space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM };

/* Shared and local memory and arguments lie at these generic addresses, above all of the host. */
#define GENERIC_BIT 60
#define GENERIC_OFFSET ((UINT64_C(1) << GENERIC_BIT) - 1)

/* Registers that every kernel has. */
enum { SLOT_TRUE, SLOT_TID, SLOT_NTID, SLOT_CTAID, SLOT_NCTAID, SLOTS_GIVEN };

#define OPERANDS_MAX 5

struct thread;
struct instruction;
typedef void step(struct thread *thread, const struct instruction *in);

/* Operands are numbers of registers: constants lie in registers of their own. */
struct instruction {
    step *step;
    uint32_t guard; /* it is done if this predicate is not `unless` */
    uint32_t unless;
    uint32_t to[4];
    uint32_t from[OPERANDS_MAX]; /* of memory, the first is the address */
    uint32_t target;             /* of a branch: number of an instruction */
    uint32_t line;               /* of the text */
    int64_t offset;              /* of the address */
    enum space space;
    uint32_t bytes; /* of an element */
    uint32_t count; /* of elements */
    bool is_signed, is_volatile;
    struct allocation *near; /* where it found global memory last; NULL: nowhere */
    uint64_t times;          /* that it was done */
};

struct program {
    char *name, *file;
    struct instruction *code;
    size_t length, capacity;
    union word *initial; /* of each register: constants */
    size_t registers, registers_capacity;
    size_t argument_bytes, shared_bytes, local_bytes;
};

struct block {
    struct program *program;
    uint32_t number;
    uint32_t phase; /* barriers that were met */
    unsigned char *arguments;
    unsigned char *shared;
    struct mark *marks; /* of the bytes of `shared` */
};

enum pause { PAUSE_NONE, PAUSE_BARRIER, PAUSE_END };

struct thread {
    union word *r;
    struct block *block;
    uint32_t number, at; /* `at`: the next instruction */
    enum pause pause;
    unsigned char *local, *local_written;
};

/* The operation of this name, dots and all; NULL: not known. */
step *step_named(const char *name);

/* Operations on memory, and those that the machine does itself. */
step step_load, step_store, step_add, step_max, step_or;

/* The thread that runs, for texts of errors; NULL: none. */
extern _Thread_local const struct thread *ptx_thread;

_Noreturn void ptx_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads all kernels of a text, and gives each to `add`. */
void ptx_parse(const char *file, char *text, void (*add)(struct program *program));

/* A launch begins: no access of it is a conflict with one of before. */
void memory_begin(void);

#endif

#include "device/find.h"

#include <inttypes.h>

#include "base/error.h"

#define GIB (UINT64_C(1) << 30)

static int no_device(const char *why) {
    return error_set(ERROR_UNAVAILABLE,
                     "device cuda: there is none here: %s; take `cpu`, or `auto`, which takes "
                     "a GPU only where there is one",
                     why);
}

static int no_such_device(int number, unsigned count) {
    return error_set(ERROR_UNAVAILABLE,
                     "device cuda:%d: this machine has %u GPU%s, numbered from cuda:0; "
                     "`dml-replica --devices` lists %s",
                     number, count, count == 1 ? "" : "s", count == 1 ? "it" : "them");
}

int device_find(const struct device_choice *choice, uint32_t index, struct device_found *found) {
    const char *why = "";
    *found = (struct device_found){0};
    if (choice->kind == CHOICE_CPU)
        return 0;
    if (choice->kind == CHOICE_EMULATED) {
        *found = (struct device_found){.any = true, .kind = DEVICE_EMULATED};
        return 0;
    }
    unsigned count = device_count(DEVICE_CUDA, &why);
    if (choice->kind == CHOICE_CUDA && !count)
        return no_device(why);
    if (choice->number >= 0 && (unsigned)choice->number >= count)
        return no_such_device(choice->number, count);
    if (count)
        *found = (struct device_found){
            true, DEVICE_CUDA, choice->number >= 0 ? (unsigned)choice->number : index % count};
    return 0;
}

void device_list(FILE *out) {
    const char *why = "";
    unsigned count = device_count(DEVICE_CUDA, &why);
    for (unsigned i = 0; i < count; i++) {
        uint64_t bytes;
        const char *name = device_describe(DEVICE_CUDA, i, &bytes);
        fprintf(out, "%s, %" PRIu64 " GiB\n", name, bytes / GIB);
    }
    if (!count)
        fprintf(out, "no GPU: %s\n", why);
}

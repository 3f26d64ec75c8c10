#include "shard/placing.h"

#include "base/device_choice.h"
#include "base/error.h"
#include "base/log.h"
#include "device/find.h"
#include "shard/backend.h"
#include "shard/proof.h"

void shard_placing_release(struct shard_placing *placing) {
    device_close(placing->device);
    placing->device = NULL;
}

static bool is_open(const struct shard_placing *placing, const struct device_found *found) {
    return placing->device && !device_is_lost(placing->device) && placing->kind == found->kind &&
           placing->number == found->number;
}

/* A device is used only if its kernels give the bits of the CPU. */
static int open_device(struct shard_placing *placing, const struct device_found *found) {
    if (is_open(placing, found))
        return 0;
    shard_placing_release(placing);
    int code = device_open(found->kind, found->number, &placing->device);
    if (!code)
        code = shard_proof_of_device(placing->device);
    if (code) {
        shard_placing_release(placing);
        return code;
    }
    placing->kind = found->kind;
    placing->number = found->number;
    log_info("computing on %s", device_name(placing->device));
    return 0;
}

int shard_placing_find(void *context, const struct message_shard_setup *setup, uint32_t index,
                       struct shard_place *place) {
    struct shard_placing *placing = context;
    struct device_choice choice = {.kind = CHOICE_AUTO};
    struct device_found found = {0};
    if (!device_choice_read(placing->own ? placing->own : setup->device, &choice))
        return error_set(ERROR_INTERNAL, "set-up: a device that this shard does not know");
    *place =
        (struct shard_place){.backend = &shard_on_host, .optional = choice.kind == CHOICE_AUTO};
    if (place->optional && setup->count < DEVICE_ELEMENTS_MIN)
        return 0;
    int code = device_find(&choice, index, &found);
    if (code || !found.any)
        return code ? ERROR_CONFIG : 0;
    code = open_device(placing, &found);
    if (code && place->optional) {
        log_warning("%s; computing on the CPU", error_text());
        error_clear();
        return 0;
    }
    if (code)
        return ERROR_CONFIG;
    place->backend = &shard_on_device;
    place->device = placing->device;
    place->name = device_name(placing->device);
    return 0;
}

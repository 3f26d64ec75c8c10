#include "shard/placing.h"

#include "device/choose.h"
#include "shard/backend.h"
#include "shard/proof.h"

void shard_placing_release(struct shard_placing *placing) {
    device_close(placing->device);
    placing->device = NULL;
}

int shard_placing_find(void *context, const struct message_shard_setup *setup,
                       struct shard_place *place) {
    struct shard_placing *placing = context;
    const struct device_wish wish = {
        .asked = setup->device,
        .own = placing->own,
        .index = setup->on_host,
        .pays = setup->count >= DEVICE_ELEMENTS_MIN,
        .prove = shard_proof_of_device,
    };
    *place =
        (struct shard_place){.backend = &shard_on_host, .optional = device_wish_is_free(&wish)};
    int code = device_choose(&wish, &placing->device);
    if (code || !placing->device)
        return code;
    place->backend = &shard_on_device;
    place->device = placing->device;
    place->name = device_name(placing->device);
    return 0;
}

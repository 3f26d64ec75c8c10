# A fragment a subject, so that each can be read beside what it tests.
include tests/unit/base.mk
include tests/unit/wire.mk
include tests/unit/numeric.mk
include tests/unit/data.mk
include tests/unit/objective.mk
include tests/unit/model.mk
include tests/unit/store.mk
include tests/unit/coordinator.mk
include tests/unit/shard.mk
include tests/unit/replica.mk
include tests/integration/local.mk

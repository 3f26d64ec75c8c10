# Fuzzers of the code that reads bytes from others. In `make check` two programs replay their
# corpora and damage inputs in seeded ways. DML_FUZZ=N DML_FUZZ_SEED=S tests/fuzz/fuzz_roles runs N
# courses, with the seeds from S on.
FUZZERS = tests/fuzz/fuzz_frame tests/fuzz/fuzz_roles
check_PROGRAMS += $(FUZZERS)
TESTS += $(FUZZERS)
EXTRA_DIST += tests/fuzz/corpus-frame tests/fuzz/corpus-roles

tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/corpus.h
tests_fuzz_fuzz_frame_LDADD = $(WIRE_LIBS) $(BASE_LIBS)

tests_fuzz_fuzz_roles_SOURCES = tests/fuzz/fuzz_roles.c tests/fuzz/corpus.h tests/fuzz/draw.h \
	tests/fuzz/odd_message.c tests/fuzz/odd_message.h \
	tests/fuzz/packets.c \
	tests/fuzz/small_cluster.c tests/fuzz/small_cluster.h \
	tests/fuzz/small_work.c tests/fuzz/small_work.h \
	tests/sim/disk.c tests/sim/disk.h tests/sim/store.c tests/sim/store.h
tests_fuzz_fuzz_roles_LDADD = $(COORDINATOR_LIBS) $(SHARD_LIBS) $(REPLICA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)

# `make fuzz` builds fuzzers with clang: ./fuzz_csv -max_total_time=60
EXTRA_DIST += tests/fuzz/fuzz_text.h tests/fuzz/fuzz_libsvm.c tests/fuzz/fuzz_csv.c \
	tests/fuzz/fuzz_array.c
TEXT_FUZZERS = fuzz_libsvm fuzz_csv fuzz_array
CLEANFILES += $(TEXT_FUZZERS) fuzz_roles
FUZZ_CC = clang -std=gnu17 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	-ffp-contract=off -DLIBFUZZER -I$(srcdir) -I.
WIRE_OF_CONNECTIONS = wire/address.c wire/channel.c wire/connecting.c wire/failpoints.c wire/frame.c wire/host.c \
	wire/inlet.c wire/key.c wire/options.c wire/outlet.c wire/peer.c wire/tls.c wire/tls_socket.c
.PHONY: fuzz
fuzz: $(TEXT_FUZZERS) fuzz_roles
$(TEXT_FUZZERS):
	$(FUZZ_CC) $(srcdir)/tests/fuzz/$@.c \
	    $(addprefix $(srcdir)/, $(filter %.c,$(filter data/array% data/batch.c data/blocks.c data/csv% \
	        data/format.c data/input.c data/libsvm.c data/list.c data/number.c data/source_paths.c \
	        data/table.c data/weights.c,$(libdata_a_SOURCES)) $(libbase_a_SOURCES))) \
	    $(XXHASH_LIBS) $(CRYPTO_LIBS) $(JANSSON_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS) -lm -o $@
fuzz_roles:
	cd $(srcdir) && $(FUZZ_CC) -I$(abs_builddir) \
	    $(filter %.c,$(tests_fuzz_fuzz_roles_SOURCES) $(libsimulated_a_SOURCES) \
	        $(libobjective_a_SOURCES) $(libnumeric_a_SOURCES)) \
	    $(filter-out %.h %.def $(WIRE_OF_CONNECTIONS),$(libwire_a_SOURCES)) \
	    $(filter-out %.h %.def base/log.c,$(libbase_a_SOURCES)) \
	    $(XXHASH_LIBS) $(CRYPTO_LIBS) $(JANSSON_LIBS) \
	    -lm -o $(abs_builddir)/$@

# Fuzzers of the code that reads bytes from others. In `make check` they run on their corpora and on
# inputs damaged or drawn in seeded ways. DML_FUZZ=N DML_FUZZ_SEED=S tests/fuzz/fuzz_roles runs N
# courses, with the seeds from S on, and so does fuzz_shard.
FUZZERS = tests/fuzz/fuzz_frame tests/fuzz/fuzz_roles tests/fuzz/fuzz_shard
check_PROGRAMS += $(FUZZERS)
TESTS += $(FUZZERS)
EXTRA_DIST += tests/fuzz/corpus-frame tests/fuzz/corpus-roles

tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/corpus.h
tests_fuzz_fuzz_frame_LDADD = $(WIRE_LIBS) $(BASE_LIBS)

tests_fuzz_fuzz_roles_SOURCES = tests/fuzz/fuzz_roles.c tests/fuzz/corpus.h tests/fuzz/draw.h \
	tests/fuzz/odd_message.c tests/fuzz/odd_message.h \
	tests/fuzz/small_cluster.c tests/fuzz/small_cluster.h \
	tests/fuzz/small_work.c tests/fuzz/small_work.h
tests_fuzz_fuzz_roles_LDADD = libcluster.a $(COORDINATOR_LIBS) $(SHARD_LIBS) $(REPLICA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)

tests_fuzz_fuzz_shard_SOURCES = tests/fuzz/fuzz_shard.c tests/fuzz/corpus.h tests/fuzz/draw.h
tests_fuzz_fuzz_shard_LDADD = $(SHARD_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)

# Programs of libFuzzer, of the same libraries: ./fuzz_csv -max_total_time=60. Any build with clang
# links them; what they cover they see in one with --enable-sanitizers=fuzzer-no-link,address,undefined.
if HAVE_FUZZER
LIBFUZZERS = fuzz_libsvm fuzz_csv fuzz_json fuzz_listing fuzz_date fuzz_words fuzz_array fuzz_sparse fuzz_parquet fuzz_frame fuzz_roles \
	fuzz_shard
EXTRA_PROGRAMS += $(LIBFUZZERS)
CLEANFILES += $(LIBFUZZERS)
in_libfuzzer = $(AM_CPPFLAGS) -DLIBFUZZER
by_libfuzzer = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_libsvm_SOURCES = tests/fuzz/fuzz_libsvm.c tests/fuzz/fuzz_text.h
fuzz_libsvm_CPPFLAGS = $(in_libfuzzer)
fuzz_libsvm_LDFLAGS = $(by_libfuzzer)
fuzz_libsvm_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_csv_SOURCES = tests/fuzz/fuzz_csv.c tests/fuzz/fuzz_text.h
fuzz_csv_CPPFLAGS = $(in_libfuzzer)
fuzz_csv_LDFLAGS = $(by_libfuzzer)
fuzz_csv_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_json_SOURCES = tests/fuzz/fuzz_json.c tests/fuzz/fuzz_text.h
fuzz_json_CPPFLAGS = $(in_libfuzzer)
fuzz_json_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
fuzz_json_LDFLAGS = $(by_libfuzzer)
fuzz_json_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_listing_SOURCES = tests/fuzz/fuzz_listing.c
fuzz_listing_CPPFLAGS = $(in_libfuzzer)
fuzz_listing_LDFLAGS = $(by_libfuzzer)
fuzz_listing_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_words_SOURCES = tests/fuzz/fuzz_words.c
fuzz_words_CPPFLAGS = $(in_libfuzzer)
fuzz_words_LDFLAGS = $(by_libfuzzer)
fuzz_words_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_date_SOURCES = tests/fuzz/fuzz_date.c
fuzz_date_CPPFLAGS = $(in_libfuzzer)
fuzz_date_LDFLAGS = $(by_libfuzzer)
fuzz_date_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_array_SOURCES = tests/fuzz/fuzz_array.c tests/fuzz/fuzz_text.h
fuzz_array_CPPFLAGS = $(in_libfuzzer)
fuzz_array_LDFLAGS = $(by_libfuzzer)
fuzz_array_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_sparse_SOURCES = tests/fuzz/fuzz_sparse.c tests/unit/npz.h
fuzz_sparse_CPPFLAGS = $(in_libfuzzer)
fuzz_sparse_LDFLAGS = $(by_libfuzzer)
fuzz_sparse_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_parquet_SOURCES = tests/fuzz/fuzz_parquet.c
fuzz_parquet_CPPFLAGS = $(in_libfuzzer)
fuzz_parquet_LDFLAGS = $(by_libfuzzer)
fuzz_parquet_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
fuzz_frame_SOURCES = $(tests_fuzz_fuzz_frame_SOURCES)
fuzz_frame_CPPFLAGS = $(in_libfuzzer)
fuzz_frame_LDFLAGS = $(by_libfuzzer)
fuzz_frame_LDADD = $(tests_fuzz_fuzz_frame_LDADD)
fuzz_roles_SOURCES = $(tests_fuzz_fuzz_roles_SOURCES)
fuzz_roles_CPPFLAGS = $(in_libfuzzer)
fuzz_roles_LDFLAGS = $(by_libfuzzer)
fuzz_roles_LDADD = $(tests_fuzz_fuzz_roles_LDADD)
fuzz_shard_SOURCES = $(tests_fuzz_fuzz_shard_SOURCES)
fuzz_shard_CPPFLAGS = $(in_libfuzzer)
fuzz_shard_LDFLAGS = $(by_libfuzzer)
fuzz_shard_LDADD = $(tests_fuzz_fuzz_shard_LDADD)
endif
fuzz: $(LIBFUZZERS)
	@case '$(PROJECT_CFLAGS)' in *fuzzer-no-link*) ;; *) \
		echo 'fuzz: configure with CC=clang --without-cuda' \
		    '--enable-sanitizers=fuzzer-no-link,address,undefined' >&2; \
		exit 1;; esac
.PHONY: fuzz

# bench
EXTRA_PROGRAMS =

# Products of rows beside OpenBLAS's.
EXTRA_PROGRAMS += bench/bench_products
bench_bench_products_CFLAGS = $(AM_CFLAGS) $(LAPACKE_CFLAGS)
bench_bench_products_LDADD = $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(LAPACKE_LIBS)
CLEANFILES += bench/bench_products

# How much of a GPU's memory throughput is used.
EXTRA_PROGRAMS += bench/bench_device
bench_bench_device_LDADD = $(SHARD_LIBS) $(WIRE_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
CLEANFILES += bench/bench_device

# Replicas that take modelled times, and a coordinator that packs data into small chunks.
EXTRA_PROGRAMS += bench/scale_replicas bench/scale_pack
bench_scale_replicas_LDADD = $(REPLICA_LIBS) $(WIRE_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(BASE_LIBS)
bench_scale_pack_SOURCES = bench/small_chunks.c coordinator/main.c
bench_scale_pack_LDADD = $(dml_coordinator_LDADD)
CLEANFILES += bench/scale_replicas bench/scale_pack

# The state machines under a virtual clock.
EXTRA_PROGRAMS += bench/efficiency
bench_efficiency_SOURCES = bench/efficiency.c bench/efficiency_model.c bench/efficiency_model.h \
	bench/tiny_data.c bench/tiny_data.h bench/small_ranges.c
bench_efficiency_LDADD = libcluster.a $(COORDINATOR_LIBS) $(SHARD_LIBS) $(REPLICA_LIBS) $(WIRE_LIBS) \
	$(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
CLEANFILES += bench/efficiency

# What a row costs by the library.
EXTRA_PROGRAMS += bench/bench_library
bench_bench_library_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/library
bench_bench_library_LDFLAGS = $(BESIDE_LIBDML)
bench_bench_library_LDADD = libdml.so.0
CLEANFILES += bench/bench_library

# Rows of exactly so many columns.
EXTRA_PROGRAMS += bench/wide_data
bench_wide_data_LDADD = -lm
CLEANFILES += bench/wide_data

EXTRA_PROGRAMS += bench/transport
bench_transport_LDADD = $(WIRE_LIBS) $(BASE_LIBS)
CLEANFILES += bench/transport

EXTRA_DIST += bench/RESULTS.md bench/NOTES.md
EXTRA_DIST += bench/optima.py bench/problems.py bench/hard.py bench/made_rows.py bench/wide_text.py
EXTRA_DIST += bench/peers.py bench/scorer.py bench/tables.py
EXTRA_DIST += bench/losses.py bench/newton.py bench/directions.py bench/certificate.py
EXTRA_DIST += bench/networks.py bench/scale.py bench/wide.py bench/hosts.py
EXTRA_DIST += bench/statsmodels_fits.py bench/onnx_check.py

BENCH_ENVIRONMENT = DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)'

# What one thread computes beside OpenBLAS.
bench: bench/bench_products
	bench/bench_products

# On a GPU alone.
bench-cuda: bench/bench_device
	bench/bench_device cuda

# The coordinator with up to a thousand replicas: minutes.
bench-scale: all-am bench/scale_replicas bench/scale_pack
	$(BENCH_ENVIRONMENT) $(PYTHON) $(srcdir)/bench/scale.py

# Tiles on processes that are held to little memory; needs root.
bench-wide: all-am bench/wide_data
	$(BENCH_ENVIRONMENT) $(PYTHON) $(srcdir)/bench/wide.py

# Shared memory, Unix sockets, TCP and TLS; then two hosts over TLS beside one, of a processor each.
bench-hosts: all-am bench/transport
	bench/transport
	$(BENCH_ENVIRONMENT) $(PYTHON) $(srcdir)/bench/hosts.py wide --copies 4

# The efficiency of clusters under a virtual clock: doc/SCALE.md says what the model is.
bench-efficiency: bench/efficiency
	for seconds in 1 10; do \
	    bench/efficiency 10 10 1e5 $$seconds; bench/efficiency 100 23 1e5 $$seconds; \
	    bench/efficiency 1000 23 1e5 $$seconds; \
	    bench/efficiency 10 10 1e7 $$seconds flush_ms=2240; \
	    bench/efficiency 100 100 1e7 $$seconds flush_ms=2240; \
	    bench/efficiency 1000 236 1e7 $$seconds flush_ms=9490; \
	done
	bench/efficiency 1000 64 1e7 1 share=.02 needs=.02 chunks=200 flush_ms=9490
	bench/efficiency 1000 128 1e7 1 strips=40 rows=1e6 chunks=200 flush_ms=9490 point_left=.42

# Runs that others have published, as many hosts and as large.
bench-efficiency-published: bench/efficiency
	bench/efficiency 2000 256 4.2e7 100 chunks=100 flush_ms=60000
	bench/efficiency 100 100 5e7 1 strips=25 rows=2.3e8 share=.06 needs=.06 chunks=200 flush_ms=9490 point_left=.42
	bench/efficiency 1000 256 1.6e7 6.3 flush_ms=9000
	bench/efficiency 800 200 2147483647 10 own_hosts=1 share=.01 needs=.01 chunks=100 flush_ms=20000

# Ten thousand hosts, in a build folder that was configured with CPPFLAGS=-DREPLICAS_MAX=16384.
bench-efficiency-far: bench/efficiency
	bench/efficiency 10000 64 1e8 10 share=.01 needs=.01 chunks=4 flush_ms=20000

# dml beside LIBLINEAR and scikit-learn: minutes, on a machine that is idle.
bench-peers: all
	$(BENCH_ENVIRONMENT) $(PYTHON) $(srcdir)/bench/peers.py
.PHONY: bench bench-cuda bench-scale bench-wide bench-hosts bench-efficiency bench-efficiency-published bench-efficiency-far bench-peers

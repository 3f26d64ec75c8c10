# What virtual clusters are made of: for the simulator, which compiles it with mutants, the fuzzer of
# roles, bench/efficiency and unit tests.
cluster_parts = \
	tests/cluster/decoded.c tests/cluster/decoded.h \
	tests/cluster/disk.c tests/cluster/disk.h \
	tests/cluster/host.c tests/cluster/host.h \
	tests/cluster/memory.c tests/cluster/memory.h \
	tests/cluster/network.c tests/cluster/network.h \
	tests/cluster/parcel.c tests/cluster/parcel.h \
	tests/cluster/store.c tests/cluster/store.h \
	tests/cluster/trace.c tests/cluster/trace.h \
	tests/cluster/world.c tests/cluster/world.h
check_LIBRARIES += libcluster.a
libcluster_a_SOURCES = $(cluster_parts)

# bench
EXTRA_PROGRAMS =
EXTRA_PROGRAMS += bench/bench_kernels
bench_bench_kernels_LDADD = $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
CLEANFILES += bench/bench_kernels

EXTRA_PROGRAMS += bench/bench_pass
bench_bench_pass_LDADD = $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
CLEANFILES += bench/bench_pass

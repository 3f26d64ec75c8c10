# bench
EXTRA_PROGRAMS =
EXTRA_PROGRAMS += bench/bench_kernels
bench_bench_kernels_SOURCES = bench/bench_kernels.c bench/peak.c bench/peak.h
bench_bench_kernels_LDADD = $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
CLEANFILES += bench/bench_kernels

EXTRA_PROGRAMS += bench/bench_pass
bench_bench_pass_LDADD = $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
CLEANFILES += bench/bench_pass

EXTRA_DIST += bench/bench.py bench/stragglers.py bench/durability.py bench/serving.py bench/wide_text.py
EXTRA_DIST += bench/problems.py bench/passes.py bench/newton.py bench/losses.py bench/l1.py bench/path.py
EXTRA_DIST += bench/peers.py bench/contenders.py bench/scorer.py bench/fit_sklearn.py bench/RESULTS.md
EXTRA_DIST += bench/tables.py bench/l1_path.py

# Ratios measured side by side: the machine may be shared and noisy.
bench: all bench/bench_kernels bench/bench_pass
	DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)' $(PYTHON) $(srcdir)/bench/bench.py

# The status server under load: minutes.
bench-serving: all
	DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)' $(PYTHON) $(srcdir)/bench/serving.py

# dml beside LIBLINEAR and scikit-learn, into bench/RESULTS.md: minutes, on a machine that is idle.
bench-peers: all
	DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)' $(PYTHON) $(srcdir)/bench/peers.py --write
.PHONY: bench bench-serving bench-peers

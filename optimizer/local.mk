# The simulator compiles these with mutants, too (tests/sim/local.mk).
optimizer_parts = \
	optimizer/downpour.c optimizer/downpour.h \
	optimizer/lbfgs.c optimizer/lbfgs.h optimizer/lbfgs_phase.h optimizer/lbfgs_types.h optimizer/phases.def \
	optimizer/lbfgs_domain.c optimizer/lbfgs_evaluations.c optimizer/lbfgs_gap.c \
	optimizer/lbfgs_products.c optimizer/lbfgs_programs.c optimizer/lbfgs_programs.h optimizer/lbfgs_span.c \
	optimizer/lbfgs_refresh.c optimizer/lbfgs_rows.c optimizer/lbfgs_search.c \
	optimizer/lbfgs_state.c optimizer/lbfgs_summary.c optimizer/lbfgs_working.c \
	optimizer/linesearch.c optimizer/linesearch.h \
	optimizer/optimizer.c optimizer/optimizer.h \
	optimizer/pairs.c optimizer/pairs.h \
	optimizer/preconditioner.c optimizer/preconditioner.h \
	optimizer/row.c optimizer/row.h \
	optimizer/span.c optimizer/span.h \
	optimizer/window.c optimizer/window.h \
	optimizer/working.c optimizer/working.h
noinst_LIBRARIES += liboptimizer.a
liboptimizer_a_SOURCES = $(optimizer_parts)
OPTIMIZER_LIBS = liboptimizer.a

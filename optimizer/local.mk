noinst_LIBRARIES += liboptimizer.a
liboptimizer_a_SOURCES = \
	optimizer/downpour.c optimizer/downpour.h \
	optimizer/lbfgs.c optimizer/lbfgs.h \
	optimizer/linesearch.c optimizer/linesearch.h \
	optimizer/pairs.c optimizer/pairs.h \
	optimizer/preconditioner.c optimizer/preconditioner.h \
	optimizer/programs.c optimizer/programs.h \
	optimizer/reason.c optimizer/reason.h
OPTIMIZER_LIBS = liboptimizer.a

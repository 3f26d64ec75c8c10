noinst_LIBRARIES += libnumeric.a
libnumeric_a_SOURCES = \
	numeric/activation.c numeric/activation.h numeric/activation_lanes.def \
	numeric/cholesky.c numeric/cholesky.h \
	numeric/adagrad.c numeric/adagrad.h numeric/adagrad_steps.def numeric/adagrad_element.h \
	numeric/clones.h \
	numeric/dense.c numeric/dense.h \
	numeric/eigen.c numeric/eigen.h \
	numeric/exact.c numeric/exact.h numeric/exact_term.h \
	numeric/exp_lanes.def numeric/lanes_end.def numeric/log_lanes.def numeric/over_lanes.h \
	numeric/fixed.c numeric/fixed.h numeric/fixed_round.h \
	numeric/matrix.c numeric/matrix.h numeric/matrix_kernel.def \
	numeric/orthant.c numeric/orthant.h numeric/orthant_steps.def numeric/orthant_element.h \
	numeric/product.c numeric/product.h \
	numeric/scalar.h \
	numeric/setup.c numeric/setup.h \
	numeric/special.c numeric/special.h \
	numeric/totals.c numeric/totals.h \
	numeric/vector.c numeric/vector.h
NUMERIC_LIBS = libnumeric.a $(DEVICE_LIBS)

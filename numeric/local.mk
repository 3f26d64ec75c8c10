noinst_LIBRARIES += libnumeric.a
libnumeric_a_SOURCES = \
	numeric/special.c numeric/special.h numeric/lanes.def \
	numeric/dense.c numeric/dense.h \
	numeric/tails.c numeric/tails.h \
	numeric/steps.c numeric/steps.h numeric/steps.def numeric/step_element.h \
	numeric/box.c numeric/box.h \
	numeric/clones.h \
	numeric/doubled.h numeric/orthogonal.c numeric/orthogonal.h \
	numeric/exact.c numeric/exact.h numeric/sum_element.h \
	numeric/fixed.c numeric/fixed.h \
	numeric/inverse.c numeric/inverse.h \
	numeric/lasso.c numeric/lasso.h \
	numeric/matrix.c numeric/matrix.h numeric/matrix_kernel.def \
	numeric/places.c numeric/places.h \
	numeric/product.c numeric/product.h \
	numeric/scalar.h \
	numeric/setup.c numeric/setup.h \
	numeric/vector.c numeric/vector.h
libnumeric_a_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS)
NUMERIC_LIBS = libnumeric.a $(DEVICE_LIBS)

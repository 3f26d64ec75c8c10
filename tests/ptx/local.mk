# Tests of devices with the kernels that nvcc compiled, run by an interpreter: no GPU is needed. The
# programs are linked again from the same objects, with a CUDA runtime of our own.
EXTRA_LIBRARIES =
if HAVE_CUDA
EXTRA_LIBRARIES += tests/ptx/libptx.a
tests_ptx_libptx_a_CPPFLAGS = $(AM_CPPFLAGS) -isystem `dirname '$(NVCC)'`/../include
tests_ptx_libptx_a_SOURCES = \
	tests/ptx/machine.c tests/ptx/machine.h \
	tests/ptx/marks.h \
	tests/ptx/memory.c \
	tests/ptx/parse.c \
	tests/ptx/programs.c \
	tests/ptx/ptx.h \
	tests/ptx/runtime.c tests/ptx/runtime.h \
	tests/ptx/steps.c tests/ptx/steps.def
if HAVE_CMOCKA
EXTRA_PROGRAMS += tests/ptx/test_ptx
tests_ptx_test_ptx_SOURCES = tests/ptx/test_ptx.c
tests_ptx_test_ptx_LDADD = tests/ptx/libptx.a $(CMOCKA_LIBS) -lm -lpthread
endif
endif
EXTRA_DIST += tests/ptx/check.py
CLEANFILES += tests/ptx/libptx.a tests/ptx/*.ptx tests/unit/*.ptx

check-ptx: all-am $(EXTRA_LIBRARIES)
	@DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)' MAKE='$(MAKE)' $(PYTHON) \
		$(srcdir)/tests/ptx/check.py
.PHONY: check-ptx

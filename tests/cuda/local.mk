# What needs a GPU, and nothing else.
EXTRA_DIST += tests/cuda/check.py
CLEANFILES += tests-emulated.mark
check_PROGRAMS += tests/cuda/device_list
tests_cuda_device_list_LDADD = $(DEVICE_LIBS) $(BASE_LIBS)

check-cuda: all-am
	@$(MAKE) --quiet check TESTS= >/dev/null
	@DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)' NVCC='$(NVCC)' $(PYTHON) \
		$(srcdir)/tests/cuda/check.py
.PHONY: check-cuda

# The packages on a machine of their own: takes root, debootstrap and a network, so only by hand.
PACKAGES_TESTS = tests/packages/test_packages.py
EXTRA_DIST += $(PACKAGES_TESTS) tests/packages/machine.py

# It needs no program of the tests, so none is compiled.
check-packages: all
	$(MAKE) check-TESTS TESTS=$(PACKAGES_TESTS) check_PROGRAMS= check_LIBRARIES=
.PHONY: check-packages

# Jobs on several machines, which are network namespaces with ssh: needs root, else it is skipped.
HOSTS_TESTS = tests/hosts/test_hosts.py tests/hosts/test_machines.py tests/hosts/test_outages.py \
	tests/hosts/test_apart.py
TESTS += $(HOSTS_TESTS)
EXTRA_DIST += $(HOSTS_TESTS) \
	tests/hosts/README.md \
	tests/hosts/fencing.py \
	tests/hosts/machines.py \
	tests/hosts/runs.py \
	tests/hosts/schedules.py \
	tests/hosts/seeds.py \
	tests/hosts/test_long.py

# make check-hosts SEEDS=1-200
check-hosts: SEEDS = 1-51
check-hosts: all
	@export DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)' PYTHONDONTWRITEBYTECODE=1; \
	$(PYTHON) $(srcdir)/tests/hosts/test_long.py >long.out 2>&1 & long=$$!; \
	$(PYTHON) $(srcdir)/tests/hosts/test_hosts.py --seeds $(SEEDS); hosts=$$?; \
	$(PYTHON) $(srcdir)/tests/hosts/test_apart.py --seeds $(SEEDS); apart=$$?; \
	wait $$long; long=$$?; cat long.out; rm -f long.out; exit $$((hosts | apart | long))
.PHONY: check-hosts

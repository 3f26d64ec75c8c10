# Jobs on several machines, which are network namespaces with ssh: needs root, else it is skipped.
HOSTS_TESTS = tests/hosts/test_machines.py
TESTS += $(HOSTS_TESTS)
EXTRA_DIST += $(HOSTS_TESTS) tests/hosts/machines.py

# The Python package: no part of the installed programs, but of the release. `pip install ./python`
# takes the library that was built along.
EXTRA_DIST += python/pyproject.toml python/build_wheel.py \
	python/dml/__init__.py python/dml/_library.py python/dml/_model.py python/dml/_rows.py

# The Python package: no part of the installed programs, but of the release. `pip install ./python`
# takes the library that was built along.
EXTRA_DIST += python/pyproject.toml python/build_wheel.py \
	python/dml/__init__.py python/dml/_description.py python/dml/_estimators.py python/dml/_follow.py \
	python/dml/_job.py python/dml/_library.py python/dml/_live.py python/dml/_model.py python/dml/_programs.py python/dml/_progress.py python/dml/_rows.py python/dml/_run.py \
	python/dml/_spool.py python/dml/_tensors.py python/dml/_train.py python/dml/py.typed

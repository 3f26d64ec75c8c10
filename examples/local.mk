EXAMPLES = examples/README.md examples/wdbc.conf examples/wdbc.csv \
	examples/nightly.conf examples/nightly.crontab \
	examples/dml-retrain.service examples/dml-retrain.timer \
	examples/train.sbatch
EXTRA_DIST += $(EXAMPLES)
examplesdir = $(docdir)/examples
examples_DATA = $(EXAMPLES)

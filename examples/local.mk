EXAMPLES = examples/README.md examples/wdbc.conf examples/wdbc.csv examples/network.conf \
	examples/nightly.conf examples/nightly.crontab \
	examples/dml-retrain.service examples/dml-retrain.timer \
	examples/train.sbatch
EXTRA_DIST += $(EXAMPLES)
examplesdir = $(docdir)/examples
examples_DATA = $(EXAMPLES)

PLUGIN_EXAMPLE = examples/plugin/Makefile examples/plugin/fm.c examples/plugin/fm.conf
EXTRA_DIST += $(PLUGIN_EXAMPLE)
pluginexampledir = $(docdir)/examples/plugin
pluginexample_DATA = $(PLUGIN_EXAMPLE)

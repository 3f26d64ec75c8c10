EXAMPLES = examples/README.md examples/wdbc.conf examples/wdbc.csv examples/network.conf \
	examples/nightly.conf examples/nightly.crontab \
	examples/dml-retrain.service examples/dml-retrain.timer \
	examples/Containerfile examples/openlineage.py examples/mlflow_run.py \
	examples/intro.ipynb examples/service.py examples/train.sbatch
EXTRA_DIST += $(EXAMPLES)
examplesdir = $(docdir)/examples
examples_DATA = $(EXAMPLES)

PLUGIN_EXAMPLE = examples/plugin/Makefile examples/plugin/fm.c examples/plugin/fm.conf
EXTRA_DIST += $(PLUGIN_EXAMPLE)
pluginexampledir = $(docdir)/examples/plugin
pluginexample_DATA = $(PLUGIN_EXAMPLE)

KUBERNETES_EXAMPLE = examples/kubernetes/README.md examples/kubernetes/job.yaml \
	examples/kubernetes/nightly.yaml examples/kubernetes/workers.yaml
EXTRA_DIST += $(KUBERNETES_EXAMPLE)
kubernetesexampledir = $(docdir)/examples/kubernetes
kubernetesexample_DATA = $(KUBERNETES_EXAMPLE)

# What a program with libdml looks like; the tests compare it with `predict`.
check_PROGRAMS += examples/library/score
examples_library_score_SOURCES = examples/library/score.c
examples_library_score_CPPFLAGS = -I$(srcdir)/library
examples_library_score_LDFLAGS = $(BESIDE_LIBDML)
examples_library_score_LDADD = libdml.so.0
libraryexampledir = $(docdir)/examples/library
libraryexample_DATA = examples/library/score.c

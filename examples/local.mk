EXAMPLES = examples/README.md examples/wdbc.conf examples/wdbc.csv
EXTRA_DIST += $(EXAMPLES)
examplesdir = $(docdir)/examples
examples_DATA = $(EXAMPLES)

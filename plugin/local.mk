noinst_LIBRARIES += libplugin.a
libplugin_a_SOURCES = \
	plugin/ask.c plugin/ask.h \
	plugin/dml/objective.h \
	plugin/gradient.c \
	plugin/serve.c \
	plugin/requests.c plugin/plugin.h \
	plugin/talk.h
PLUGIN_LIBS = libplugin.a

# What users build plug-ins with.
dmlincludedir = $(includedir)/dml
dmlinclude_HEADERS = plugin/dml/objective.h

noinst_LIBRARIES += libmodel.a
libmodel_a_SOURCES = \
	model/checksum.c model/checksum.h \
	model/export.c model/export.h \
	model/export_liblinear.c \
	model/figures.c model/figures.h \
	model/labels.c model/labels.h \
	model/lines.c model/lines.h \
	model/model.h \
	model/options.c \
	model/reader.c \
	model/score.c model/score.h \
	model/start.c \
	model/tensors.c model/tensors.h \
	model/writer.c
libmodel_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
MODEL_LIBS = libmodel.a $(JANSSON_LIBS)

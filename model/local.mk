noinst_LIBRARIES += libmodel.a
libmodel_a_SOURCES = \
	model/model.h \
	model/reader.c \
	model/tensors.c model/tensors.h \
	model/text.c model/text.h \
	model/writer.c
libmodel_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
MODEL_LIBS = libmodel.a $(JANSSON_LIBS)

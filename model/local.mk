noinst_LIBRARIES += libmodel.a
libmodel_a_SOURCES = \
	model/checksum.c model/checksum.h \
	model/confusion.c model/confusion.h \
	model/description.c model/description.h \
	model/export.c model/export.h \
	model/export_liblinear.c \
	model/export_top.c \
	model/figures.c model/figures.h \
	model/figures_json.c \
	model/gather.c model/gather.h \
	model/labels.c model/labels.h \
	model/lines.c model/lines.h \
	model/listed.c model/listed.h \
	model/margins.c model/margins.h \
	model/merge.h \
	model/model.h \
	model/options.c \
	model/preparation.c model/preparation.h \
	model/ranking.c model/ranking.h \
	model/readback.c model/readback.h \
	model/reader.c \
	model/residuals.c model/residuals.h \
	model/score.c model/score.h \
	model/start.c \
	model/terms.c model/terms.h \
	model/weight_sum.c model/weight_sum.h \
	model/tensors.c model/tensors.h \
	model/writer.c
libmodel_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
MODEL_LIBS = libmodel.a $(JANSSON_LIBS)

noinst_LIBRARIES += libmodel.a
libmodel_a_SOURCES = \
	model/calibration.c model/calibration.h \
	model/cell.c model/cell.h \
	model/classes.c model/classes.h \
	model/collinear.c model/collinear.h \
	model/compare.c model/compare.h \
	model/crosses.c model/crosses.h \
	model/curves.c model/curves.h \
	model/response.c model/response.h \
	model/response_fit.c \
	model/description.c model/description.h \
	model/explain.c model/explain.h model/explanation.c model/explanation.h \
	model/export.c model/export.h \
	model/families.c model/family.h \
	model/importance.c model/importance.h \
	model/figures.c model/figures.h \
	model/margins.c model/margins.h \
	model/model.h \
	model/offsets.c model/offsets.h \
	model/onnx.c model/onnx.h \
	model/onnx_margins.c model/onnx_margins.h \
	model/onnx_file.c model/onnx_file.h \
	model/onnx_response.c model/onnx_response.h \
	model/onnx_sums.c model/onnx_sums.h \
	model/output.c model/output.h \
	model/output_columns.c model/output_columns.h \
	model/ranking.c model/ranking.h \
	model/readback.c model/readback.h \
	model/reader.c \
	model/scatter.c model/scatter.h \
	model/scoring.c model/score.h \
	model/start.c \
	model/fit.c model/fit.h \
	model/cluster_table.c model/cluster_table.h model/clusters.c model/clusters.h \
	model/hessian.c model/hessian.h model/single_errors.c model/single_errors.h \
	model/summary_file.c model/summary_fit.c model/summary.h \
	model/summary_notes.c model/summary_restate.c model/summary_restate.h model/summary_table.c model/summary_table.h \
	model/tensors.c model/tensors.h \
	model/terms.c model/terms.h \
	model/threshold.c model/threshold.h \
	model/weight_sum.c model/weight_sum.h \
	model/writer.c
libmodel_a_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS) $(JANSSON_CFLAGS)
MODEL_LIBS = libmodel.a $(JANSSON_LIBS)

noinst_LIBRARIES += libobjective.a
libobjective_a_SOURCES = \
	objective/block.c \
	objective/correct.c \
	objective/curvature.c \
	objective/dense.c \
	objective/device_arrange.h objective/device_arranged.c objective/device_arranged.h \
	objective/device_chunk.h objective/device_pass.h \
	objective/device_bundle.c objective/device_bundle.h \
	objective/device_cannot.c \
	objective/device_columns.c objective/device_columns.h \
	objective/device_network.c objective/device_network.h \
	objective/device_dense.h objective/device_dense_gradient.h \
	objective/device_linear.c objective/device_linear.h \
	objective/device_linear_kernels.def objective/device_linear_kernels.h \
	objective/device_sparse.h \
	objective/device_network_kernels.def objective/device_network_kernels.h \
	objective/device_network_pass.def \
	objective/device_chunks.c objective/device_chunks.h \
	objective/device_proof.c \
	objective/device_curvature.c objective/device_curvature.h \
	objective/dice.h \
	objective/device_curvature_kernels.def objective/device_curvature_kernels.h \
	objective/device_losses.c \
	objective/device_losses_kernels.def objective/device_losses_kernels.h \
	objective/gamma.c \
	objective/huber.c \
	objective/kronecker.c objective/kronecker.h \
	objective/kronecker_parts.h objective/kronecker_sample.c \
	objective/judge.h \
	objective/layout.c \
	objective/loss.h objective/loss_row.h \
	objective/losses.c objective/losses.def \
	objective/losses_log_link.def objective/losses_logistic.def \
	objective/losses_plain.def objective/losses_softmax.def \
	objective/log_link.c \
	objective/logistic.c \
	objective/logistics.c \
	objective/objective.h objective/objectives.def objective/parameters.def \
	objective/parts.h \
	objective/multilabel.c \
	objective/network.c objective/network.h \
	objective/network_double.c objective/network_float.c objective/network_pass.def \
	objective/network_mixed.c objective/network_round.c \
	objective/on_device.c objective/on_device.h \
	objective/one_vs_rest.c \
	objective/ordinal.c \
	objective/plugin.c \
	objective/poisson.c \
	objective/proof.c objective/proof_data.c objective/proof_data.h \
	objective/quantile.c \
	objective/smooth_hinge.c \
	objective/softmax.c \
	objective/sparse.c \
	objective/squared.c \
	objective/squared_hinge.c \
	objective/table.c \
	objective/triangle.c \
	objective/tweedie.c
if HAVE_CUDA
libobjective_a_SOURCES += objective/device_linear_kernels.cu
libobjective_a_SOURCES += objective/device_network_kernels.cu
libobjective_a_SOURCES += objective/device_losses_kernels.cu
libobjective_a_SOURCES += objective/device_curvature_kernels.cu
endif
OBJECTIVE_LIBS = libobjective.a $(PLUGIN_LIBS)

noinst_LIBRARIES += libobjective.a
libobjective_a_SOURCES = \
	objective/batch.c \
	objective/curvature.c \
	objective/dense.c \
	objective/device_arranged.c objective/device_arranged.h \
	objective/device_chunk.h \
	objective/device_chunks.c objective/device_chunks.h \
	objective/device_curvature.c objective/device_curvature_kernels.h \
	objective/device_sparse.h objective/device_linear_kernels.h \
	objective/device_kernels.c objective/device_kernels.def \
	objective/device_losses_kernels.h \
	objective/device_network.c objective/device_network_kernels.h \
	objective/device_network_pass.def \
	objective/device_pass.c objective/device_pass.h \
	objective/device_proof.c \
	objective/distribution.h objective/distributions.c \
	objective/family.c objective/family.h \
	objective/kronecker.c objective/kronecker.h \
	objective/linear.c objective/listed.c \
	objective/loss.h objective/loss_row.h \
	objective/loss_classes.c objective/loss_targets.c \
	objective/losses.def objective/losses_classes.def objective/losses_targets.def \
	objective/network.c objective/network.h \
	objective/network_double.c objective/network_float.c objective/network_pass.def \
	objective/network_gradient.c \
	objective/block.h objective/halves.h objective/second.h objective/shape.h \
	objective/objective.h objective/objectives.def \
	objective/on_device.c objective/on_device.h \
	objective/parts.h \
	objective/plugin.c \
	objective/products.c \
	objective/proof.c objective/proof.h \
	objective/sparse.c \
	objective/table.c \
	objective/triangle.c
libobjective_a_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS)
OBJECTIVE_LIBS = libobjective.a $(PLUGIN_LIBS)

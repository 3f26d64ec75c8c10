/* The kernels of linear models: their bodies, for the C file and the CUDA file; and for those who
 * launch them. */
#ifndef DML_OBJECTIVE_DEVICE_LINEAR_KERNELS_H
#define DML_OBJECTIVE_DEVICE_LINEAR_KERNELS_H

#include "device/kernel.h"
#include "objective/device_arrange.h"
#include "objective/device_dense.h"
#include "objective/device_dense_gradient.h"
#include "objective/device_sparse.h"

extern const struct kernel kernel_sparse_margin, kernel_sparse_margins, kernel_sparse_scatter,
    kernel_sparse_gather, kernel_dense_margin, kernel_dense_margins, kernel_dense_gradient,
    kernel_dense_gradients, kernel_bias_gradient, kernel_arrange_rows, kernel_arrange_columns;

#endif

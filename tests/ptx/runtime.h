/* What nvcc's code for the host calls, and its headers declare for C++ alone. */
#ifndef DML_TESTS_PTX_RUNTIME_H
#define DML_TESTS_PTX_RUNTIME_H

#include <cuda_runtime_api.h>

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *thread, uint3 *block, dim3 *threads, dim3 *blocks,
                            int *warp);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, size_t shared,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *blocks, dim3 *threads, size_t *shared, void *stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void **arguments,
                               size_t shared, cudaStream_t stream);

#endif

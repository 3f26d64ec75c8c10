# What only a build with CUDA compiles: the devices that are GPUs, and the kernels of other folders as GPUs
# run them. The objects go to the libraries that have the same for the emulated device.
if HAVE_CUDA
libdevice_a_SOURCES += cuda/backend.cu
libobjective_a_SOURCES += cuda/objective_kernels.cu
libshard_a_SOURCES += cuda/shard_kernels.cu
endif

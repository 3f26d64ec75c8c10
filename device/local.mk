noinst_LIBRARIES += libdevice.a
libdevice_a_SOURCES = \
	device/backend.h \
	device/choose.c device/choose.h \
	device/device.c device/device.h \
	device/emulated.c \
	device/emulated_kernels.c device/emulated_kernels.h \
	device/find.c device/find.h \
	device/kernel.h \
	device/patience.c device/patience.h \
	device/portable.h
if HAVE_CUDA
libdevice_a_SOURCES += device/cuda.cu
endif
DEVICE_LIBS = libdevice.a $(CUDA_LIBS)

noinst_LIBRARIES += libdevice.a
libdevice_a_SOURCES = \
	device/backend.h \
	device/device.c device/device.h \
	device/emulated.c \
	device/find.c device/find.h \
	device/kernel.h \
	device/portable.h
if HAVE_CUDA
libdevice_a_SOURCES += device/cuda.cu
endif
DEVICE_LIBS = libdevice.a $(CUDA_LIBS)

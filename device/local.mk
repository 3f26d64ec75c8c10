noinst_LIBRARIES += libdevice.a
libdevice_a_SOURCES = \
	device/backend.h \
	device/device.c device/device.h \
	device/emulated.c \
	device/kernel.h \
	device/portable.h
DEVICE_LIBS = libdevice.a

noinst_LIBRARIES += libdevice.a
libdevice_a_SOURCES = \
	device/backend.h \
	device/device.c device/device.h \
	device/emulated.c \
	device/find.c device/find.h \
	device/kernel.h \
	device/mark.c
DEVICE_LIBS = libdevice.a $(CUDA_LIBS)

# A checksum of what is computed on devices, and of the compiler: the mark of a checked device has it.
# It is made each time, and is another file only if something has changed.
device/build.inc: device-build
device-build:
	@$(MKDIR_P) device && cd $(srcdir) && { LC_ALL=C; export LC_ALL; \
		cat cuda/*.cu device/*.[ch] numeric/*.[ch] numeric/*.def objective/*.[ch] objective/*.def \
		shard/*kernel* shard/pass_plan.h; '$(NVCC)' --version; } 2>/dev/null | cksum | \
		{ read sum bytes; echo "#define DEVICE_BUILD \"$$sum-$$bytes\""; } \
		>$(abs_builddir)/device/build.inc.new
	@cmp -s device/build.inc.new device/build.inc || cp device/build.inc.new device/build.inc
	@rm -f device/build.inc.new
device/mark.$(OBJEXT): device/build.inc
.PHONY: device-build
CLEANFILES += device/build.inc

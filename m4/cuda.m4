# DML_CUDA: is there a CUDA Toolkit to build with? Sets HAVE_CUDA (config.h and Makefile), NVCC,
# PROJECT_NVCCFLAGS and CUDA_LIBS. Call it after enable_werror and enable_sanitizers are known.
AC_DEFUN([DML_CUDA], [
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=FOLDER@:>@], [build for GPUs too, with the CUDA Toolkit (in FOLDER); the default is to do so where nvcc is])],
  [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [the CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for the CUDA compiler])
AC_ARG_VAR([CUDA_ARCHITECTURES], [GPU architectures to compile for, ascending (80 86 89 90); newer GPUs compile the PTX of the last])
: ${NVCCFLAGS=-O2} ${CUDA_ARCHITECTURES=80 86 89 90}
have_cuda=no
# Sanitizers watch the kernels where these run on the host.
AS_IF([test "x$with_cuda" = xauto && test "x$enable_sanitizers" != xno], [with_cuda=no])
AS_IF([test "x$with_cuda" = xno], [NVCC=], [DML_CUDA_TOOLKIT])
AS_IF([test "x$have_cuda" = xyes],
  [AC_DEFINE([HAVE_CUDA], [1], [Kernels for GPUs and the CUDA runtime are linked.])],
  [CUDA_LIBS=])
AM_CONDITIONAL([HAVE_CUDA], [test "x$have_cuda" = xyes])
AC_SUBST([PROJECT_NVCCFLAGS])
AC_SUBST([CUDA_LIBS])
])

# Finds the toolkit and tries it. What was asked for and is not to be had is an error.
AC_DEFUN([DML_CUDA_TOOLKIT], [
AS_CASE([$with_cuda],
  [/*], [cuda_path=$with_cuda/bin],
  [cuda_path=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:/usr/local/cuda/bin])
AC_PATH_PROG([NVCC], [nvcc], [], [$cuda_path])
AS_IF([test -n "$NVCC"], [DML_CUDA_TRY],
  [test "x$with_cuda" != xauto],
  [AC_MSG_ERROR([no nvcc in $cuda_path.
Install the CUDA Toolkit 12 or newer (nvcc and the static runtime: cuda-nvcc and cuda-cudart-dev of
NVIDIA, or nvidia-cuda-toolkit of Debian), say where it is (--with-cuda=FOLDER), or build without
GPUs (--without-cuda)])])
AS_IF([test "x$have_cuda" = xno && test -n "$NVCC"],
  [AS_IF([test "x$with_cuda" = xauto], [AC_MSG_WARN([building without GPUs, for $NVCC makes no program that $CC links: config.log says why])],
    [AC_MSG_ERROR([$NVCC makes no program that $CC links: config.log says why.
Mend the toolkit, choose other CUDA_ARCHITECTURES, or build without GPUs (--without-cuda)])])])
])

# The flags, and whether nvcc with them and the C compiler make a program.
AC_DEFUN([DML_CUDA_TRY], [
# Nothing is contracted, flushed or approximated: the roundings are the CPU's. The C compiler links,
# so the host's part must need nothing of the C++ library.
PROJECT_NVCCFLAGS="-std=c++17 --fmad=false --ftz=false --prec-div=true --prec-sqrt=true -Xcompiler -Wall,-Wextra,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics"
AS_IF([test "x$enable_werror" = xyes], [PROJECT_NVCCFLAGS="$PROJECT_NVCCFLAGS -Werror all-warnings"])
for architecture in $CUDA_ARCHITECTURES; do
  PROJECT_NVCCFLAGS="$PROJECT_NVCCFLAGS -gencode arch=compute_$architecture,code=sm_$architecture"
done
PROJECT_NVCCFLAGS="$PROJECT_NVCCFLAGS -gencode arch=compute_$architecture,code=compute_$architecture"
AC_MSG_CHECKING([whether $NVCC and $CC make a program for GPUs ($CUDA_ARCHITECTURES)])
rm -rf conftest.cuda && mkdir conftest.cuda
cat >conftest.cuda/part.cu <<_ACEOF
#include <cuda_runtime.h>
__global__ void kernel(int *x) { *x = 1; }
extern "C" int call(int *x) { kernel<<<1, 1>>>(x); return (int)cudaGetLastError(); }
_ACEOF
echo 'int call(int *); int main(void) { return call(0); }' >conftest.cuda/main.c
# The static runtime is where nvcc itself would find it.
cuda_folders=`$NVCC --dryrun -o conftest.cuda/part conftest.cuda/part.cu 2>&1 |
  sed -n '/LIBRARIES=/{s/.*LIBRARIES= *//;s/"//g;p;}'`
CUDA_LIBS="$cuda_folders -lcudart_static -ldl -lrt -lpthread"
AS_IF([{ $NVCC $PROJECT_NVCCFLAGS $NVCCFLAGS -c -o conftest.cuda/part.o conftest.cuda/part.cu &&
    $CC $CFLAGS $LDFLAGS -o conftest.cuda/part conftest.cuda/main.c conftest.cuda/part.o $CUDA_LIBS; } >&AS_MESSAGE_LOG_FD 2>&1],
  [have_cuda=yes])
rm -rf conftest.cuda
AC_MSG_RESULT([$have_cuda])
])

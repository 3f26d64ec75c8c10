#!/bin/sh
# Sees to it that what the build needs is there, and with "test" what the tests need too.
# Installs missing Debian packages as root, or through sudo; else says which to install.
set -eu
PATH=$PATH:/usr/sbin:/sbin # where daemons are

# What to look for: a program (with the package it is in), or a pkg-config module.
programs='cc:gcc make:make autoconf:autoconf automake:automake pkg-config:pkg-config'
modules='libevent:libevent-dev sqlite3:libsqlite3-dev jansson:libjansson-dev
    libconfuse:libconfuse-dev libxxhash:libxxhash-dev zlib:zlib1g-dev libzstd:libzstd-dev
    snappy:libsnappy-dev liblz4:liblz4-dev libcurl:libcurl4-openssl-dev libcrypto:libssl-dev'
if [ "${1:-build}" = test ]; then
    programs="$programs python3:python3 clang:clang clang-format:clang-format mandoc:mandoc
        zstd:zstd"
    # Some tests are skipped where these are not to be had, and without ccache all is compiled anew.
    wished='ccache:ccache liblinear-predict:liblinear-tools chromium:chromium
        munged:munge slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client'
    # Networks of machines with ssh are for root alone. With systemd, the package would also start a
    # server that others reach.
    if [ "$(id -u)" -eq 0 ] && [ ! -d /run/systemd/system ]; then
        wished="$wished ip:iproute2 iptables:iptables ssh:openssh-client sshd:openssh-server
            sshfs:sshfs"
    fi
    modules="$modules cmocka:libcmocka-dev openblas:libopenblas-dev lapacke:liblapacke-dev"
fi

missing=
for entry in $programs; do
    command -v "${entry%%:*}" >/dev/null || missing="$missing ${entry#*:}"
done
lacking=
for entry in ${wished:-}; do
    command -v "${entry%%:*}" >/dev/null || lacking="$lacking ${entry#*:}"
done
for entry in $modules; do
    pkg-config --exists "${entry%%:*}" 2>/dev/null || missing="$missing ${entry#*:}"
done
# It has no module.
echo '#include <unictype.h>' | cc -E - >/dev/null 2>&1 || missing="$missing libunistring-dev"
# A compiler without the C library's headers compiles nothing.
echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 || missing="$missing libc6-dev"
[ -n "$missing$lacking" ] || exit 0

cannot() { # WHY COMMAND
    [ -n "$missing" ] || exit 0
    echo "$1:" >&2
    echo "    $2$missing" >&2
    exit 1
}

command -v apt-get >/dev/null ||
    cannot "These Debian packages, or what your system calls them, are missing" ""
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    as_root=sudo
else
    cannot "Some packages are missing. Ask an administrator to run" "apt-get install"
fi

fetch() { # PACKAGE...
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 install "$@" >/dev/null
}

echo "installing$missing$lacking"
$as_root apt-get -qq update || [ -z "$missing" ]
[ -z "$missing" ] || fetch $missing
for package in $lacking; do
    fetch "$package" || echo "$package is not to be had: ./check does without it"
done

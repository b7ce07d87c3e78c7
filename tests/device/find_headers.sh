#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks for the headers that the programs of this folder use, and prints one CMake option a line for what it found; what
# was not found, and why that matters, goes to standard error.  Usage: find_headers.sh [FOLDER...], searched first: a
# source tree of NCCL, say.  Exit 1: nothing was found.
set -u

# Folder of a Python package, such as nvidia.nccl; nothing when there is none.
package() {
    python3 -c "import importlib, sys; print(list(importlib.import_module(sys.argv[1]).__path__)[0])" "$1" 2> /dev/null
}

# Folder of the CUDA compiler's toolkit.
toolkit() {
    nvcc=$(command -v nvcc) || return
    dirname "$(dirname "$(readlink -f "$nvcc")")"
}

# find_in NAME FOLDER...: the first file of that name.
find_in() {
    name=$1
    shift
    for folder in "$@"; do
        [ -n "$folder" ] && [ -d "$folder" ] || continue
        at=$(find -L "$folder" -maxdepth 9 -name "$name" -type f 2> /dev/null | sort | head -n 1)
        [ -n "$at" ] || continue
        echo "$at"
        return
    done
}

root=$(toolkit)
found=1
doca=$(find_in doca_gpunetio_device.h "$@" "$(package nvidia.nccl)/include" "${NCCL_HOME:-}/include" \
    "${root:+$root/include}" "${CUDA_HOME:-}/include" /usr/local/include /usr/include)
if [ -n "$doca" ]; then
    echo "-DBELL_DOCA_INCLUDE=$(dirname "$doca")"
    found=0
else
    echo "doca_gpunetio_device.h: not found; NCCL 2.28 and later bring it (Python package nvidia-nccl-cu13)" >&2
fi

# No program here uses these yet; this says whether one could be built.
nvshmem=$(find_in ibgda_device.cuh "$@" "$(package nvidia.nvshmem)/include" "${NVSHMEM_HOME:-}/include" \
    /usr/local/include /usr/include)
if [ -n "$nvshmem" ]; then
    include=${nvshmem%/non_abi/*}
    echo "NVSHMEM's ibgda_device.cuh: $nvshmem (unused; see README.md)" >&2
    for header in non_abi/nvshmem_build_options.h non_abi/nvshmem_version.h \
        device_host_transport/nvshmem_common_ibgda.h device/nvshmem_device_macros.h; do
        [ -f "$include/$header" ] || echo "  missing beside it: $header" >&2
    done
else
    echo "ibgda_device.cuh: not found (unused; see README.md)" >&2
fi
exit $found

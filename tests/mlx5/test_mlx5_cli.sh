#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `run --on mlx5` where it cannot run: exit 77, one sentence that says what is missing, nothing on standard output.
set -u
if [ ! -x "${BELLWETHER:?}" ]; then
    echo "skipped: $BELLWETHER was not built"
    exit 77
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
"$BELLWETHER" run one-op --on mlx5 > out 2> err
status=$?
if [ "$status" -ne 77 ]; then
    echo "skipped: this machine has an mlx5 device (exit $status); $(head -n 1 err)"
    exit 77
fi
reasons='there is no RDMA device here|none of the RDMA devices here is an mlx5 device: .+'
reasons="$reasons|[^ ]+ cannot be opened with DevX: .+|this bellwether was built without libmlx5 .+"
if [ "$(wc -l < err)" -ne 1 ] || [ -s out ] || ! grep -E -q "^bellwether: executor mlx5: ($reasons)\$" err; then
    echo "expected one line on standard error like: bellwether: executor mlx5: ($reasons)"
    echo "found:"
    cat out err
    exit 1
fi
echo "exit 77: $(cat err)"

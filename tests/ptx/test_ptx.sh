#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What nvcc makes of one posted put, per ordering: the memory operations between the marks of post.cu are exactly those
# that the ordering names (struct bell_ordering_steps in core/stack.h), in that order.  Needs nvcc and no GPU.
set -u
cd "${BELL_SOURCE_DIR:-.}" || exit 2
nvcc=${BELL_NVCC:-nvcc}
if ! command -v "$nvcc" > /dev/null; then
    echo "skipped: nvcc is not installed"
    exit 77
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
"$nvcc" -std=c++17 -arch=sm_90 -Werror=all-warnings -Ihw/cuda/port -I. -ptx -o "$work/post.ptx" tests/ptx/post.cu ||
    exit 1

memory_op='^(ld|ldu|st|atom|red|fence|membar|bar|barrier|cp|prefetch|discard|call|multimem|nanosleep)[.;]?'
# operations KERNEL: the memory operations of a kernel between the marks, one a line, without operands.  Parameters of
# the kernel are constants.  A branch back would be a loop, which a list cannot show, so it counts as an operation.
operations() {
    awk -v kernel="post_$1" -v memory_op="$memory_op" '
        /^\.visible \.entry / { inside = $0 ~ kernel "\\(" }
        !inside { next }
        /\/\/ bell begin/ { marked = 1; next }
        /\/\/ bell end/ { marked = 0 }
        !marked { next }
        /^\$L[^:]*:/ { seen[substr($1, 1, length($1) - 1)] = 1 }
        {
            op = $1 ~ /^@/ ? $2 : $1
            if (op ~ /^bra/ && (substr($NF, 1, length($NF) - 1) in seen)) print "loop"
            if (op ~ /^ld\.param/) next
            if (op ~ memory_op) {
                sub(/;$/, "", op)
                print op
            }
        }' "$work/post.ptx"
}

# What every ordering does first, with one owner whose indices are in registers: store the 48 B of the WQE, and how many
# blocks it has.
build() {
    cat <<-END
	st.global.v2.b64
	st.global.v2.b64
	st.global.v2.b64
	st.global.u64
	END
}

failed=0
# compare NAME: with $work/expected.
compare() {
    name=$1
    operations "$name" > "$work/is"
    if diff -u "$work/expected" "$work/is" > "$work/diff"; then
        echo "$name: $(wc -l < "$work/is") memory operations as named"
    else
        echo "$name: the PTX (+) is not what is named (-)"
        sed -n '3,$p' "$work/diff"
        failed=$((failed + 1))
    fi
}

# expect ORDERING OPERATION...: after the build, these.
expect() {
    build > "$work/expected"
    ordering=$1
    shift
    printf '%s\n' "$@" >> "$work/expected"
    compare "$ordering"
}

dbrec=st.relaxed.sys.global.b32
doorbell=st.mmio.relaxed.sys.global.b64

# none: nothing keeps the WQE ahead of the doorbell.
expect none $dbrec $doorbell
# gpu-fence: publish and nic are fences at GPU scope.
expect gpu_fence fence.release.gpu fence.release.gpu $dbrec $doorbell
# gpu-fence+fenced-dbrec: one more between record and doorbell.
expect gpu_fence_dbrec fence.release.gpu fence.release.gpu $dbrec fence.release.gpu $doorbell
# gpu-release: no fence; record and doorbell are release stores at GPU scope.
expect gpu_release st.release.gpu.global.b32 st.release.gpu.global.b64
# threadfence: as gpu-fence+fenced-dbrec, with the fence that __threadfence() is.
expect threadfence fence.sc.gpu fence.sc.gpu $dbrec fence.sc.gpu $doorbell
# sys-release: no fence; record and doorbell are release stores at system scope.
expect sys_release st.release.sys.global.b32 st.release.sys.global.b64
# sys-fence: as threadfence before the slot is ready; record and doorbell each after what __threadfence_system() is.
expect sys_fence fence.sc.gpu fence.sc.sys $dbrec fence.sc.sys $doorbell

# Not a plain load, which may find the old value for ever.
printf '%s\n' ld.acquire.gpu.global.u64 st.global.u64 > "$work/expected"
compare is_done

[ "$failed" -eq 0 ]

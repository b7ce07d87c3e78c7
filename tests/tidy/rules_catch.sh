#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rules.sh notices each rule being broken: one small tree a rule, built and checked here.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0
count=0
spdx='/* SPDX-License-Identifier: Apache-2.0'

# try EXPECTED FILE TEXT: a tree of that one file gives EXPECTED (1 broken, 0 fine).
try() {
    count=$((count + 1))
    rm -rf "$work/tree"
    mkdir -p "$work/tree/$(dirname "$2")"
    printf '%s\n * A file. */\n%s\n' "$spdx" "$3" > "$work/tree/$2"
    sh "$here/rules.sh" "$work/tree" > "$work/out" 2>&1
    got=$?
    if [ $got -ne "$1" ]; then
        echo "expected $1, got $got: $2: $3"
        cat "$work/out"
        failed=$((failed + 1))
    fi
}

try 0 core/a.h '#include "core/status.h"'
try 1 core/a.h '#include "models/step.h"'
try 1 core/a.h '#include "status.h"'
try 1 core/a.c '#include <pthread.h>'
try 0 core/a.c '#include <string.h>'
try 1 sim/a.c '#include "traces/trace.h"'
try 1 hw/soft/a.c '#include "models/step.h"'
try 1 calib/a.c '#include "sim/executor.h"'
try 0 calib/a.c '#include "traces/trace.h"'
try 0 tests/unit/test_a.c '#include "sim/executor.h"'
try 1 tools/a.c '#include <cjson/cJSON.h>'
try 1 models/a.c 'static cJSON *x;'
try 0 models/a.c '/* cJSON_Parse is not here */'
try 0 models/a.c 'static const char *x = "cJSON_Parse(malloc(";'
try 0 traces/a.c 'static cJSON *x;'
try 1 tools/a.c 'static int x(void) { return sg_version_get(); }'
try 1 tools/a.c '#include <simgrid/engine.h>'
try 0 sim/a.c '#include <simgrid/engine.h>'
try 1 sim/a.c 'static struct ibv_qp *x;'
try 0 hw/verbs/a.c 'static struct ibv_qp *x;'
try 1 hw/soft/a.c 'static void x(void) { cudaFree(0); }'
try 0 hw/cuda/a.c 'static void x(void) { cudaFree(0); }'
try 1 core/a.c 'static void x(void) { printf(""); }'
try 0 core/a.c 'static void x(void) { snprintf(a, 1, ""); }'
try 1 core/a.c 'static void *x(void) { return malloc(1); }'
try 1 core/a.c 'static int x(int *p) { return __atomic_load_n(p, 0); }'
try 1 sim/a.c 'static void x(void) { exit(1); }'
try 1 sim/a.c '#ifdef __CUDACC__'
try 0 core/compiler.h '#ifdef __CUDACC__'
try 1 sim/a.c 'static uint64_t wire_ps = 600;'
try 1 models/a.c '    x->gpu.fence_ns = 0.5;'
try 0 sim/a.c '    x->start_ps = 0;'
try 0 sim/a.c '    if (x->start_ps == 1) return;'
try 1 core/a.h '#define BELL_FENCE_NS 750'
try 0 core/a.h '#define BELL_PS_PER_NS 1000'
try 0 hw/soft/a.c '    uint64_t timeout_ns = 1000;'
try 1 core/a.c "/* TO""DO later */"
try 1 core/a.c "/* see /ho""me/someone */"
try 1 core/a.c "/* $(printf '%0121d' 0) */"
try 1 core/a.c "$(awk 'BEGIN { for (i = 0; i < 610; i++) print "int x;" }')"
try 1 core/a.c "void f(void)
{
$(awk 'BEGIN { for (i = 0; i < 75; i++) print "    g();" }')
}"
spdx='/* no licence'
try 1 core/a.c 'int x;'
echo "$count trees, $failed wrong"
[ $failed -eq 0 ]

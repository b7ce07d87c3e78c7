#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What this machine's GPU costs at the boundary to a software NIC, side by side and in one run:
#   sh tests/device/measure.sh BELLWETHER [ROWS [OPTIONS]]
# Prints tables; with ROWS it also writes every value as a row in the form of traces/reference/paper.json, named after
# the GPU: on an H200 the sources are "H200 fit", "H200 rate" and so on, the platform H200-soft.  OPTIONS are for every
# run, such as --set machine.peer_gpu=1 where there are two GPUs, one a rank.  A run that fails (a payload that did not
# arrive, a wait that reached its bound) is named and counted: the exit status is then 1.
# shellcheck disable=SC2086 # options are words
set -u
bellwether=${1:?usage: measure.sh BELLWETHER [ROWS]}
rows=${2:-}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0
shift $(($# < 2 ? $# : 2))
nic="--set machine.pin=true --set machine.nic_patience=1000000 $*"
host='--set stack.queue_memory=host'
orderings='none gpu-fence gpu-fence+fenced-dbrec gpu-release-store threadfence system-release-store system-fence'

# measure EXPERIMENT OPTIONS...: one run into $work/json.
measure() {
    timeout 100 "$bellwether" run "$@" --on cuda $nic --format json > "$work/json" 2> "$work/error"
    status=$?
    [ $status -ne 0 ] || return 0
    cause=$(head -n 1 "$work/error")
    [ $status -ne 124 ] || cause='did not end within 100 s'
    failed=$((failed + 1))
    echo "failed: $*: ${cause:-exit status $status}" >&2
    : > "$work/json"
}

# metric NAME KEY: such as issue p50_us.
metric() {
    sed -n "s/.*\"name\": \"$1\".*\"$2\": \([0-9.]*\).*/\1/p" "$work/json"
}
value() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$work/json"
}

# early: how many WQEs the NIC read before they had arrived; it waits for them, which a real one would not.
early() {
    n=$(sed -n 's/.*; \([0-9]*\) of [0-9]* WQES HAD NOT ARRIVED.*/\1/p' "$work/json")
    echo "${n:-0}"
}

# What a platform is fitted to, and what it then has to predict, was chosen before either was measured.
split() {
    case " $fitted " in
    *" $1 "*) echo "$gpu fit" ;;
    *) echo "$gpu held-out" ;;
    esac
}
fitted='none gpu-fence system-release-store pointer-8 pointer-4096 inline-152 baseline-8 tuned-8'

# row FIGURE STACK METRIC VALUE CONFIG: CONFIG is the inside of a JSON object.
row() {
    [ -n "$rows" ] && [ -n "$4" ] || return 0
    printf '{"source": "%s", "platform": "%s", "stack": "%s", "config": {%s}, "metric": "%s", "value": %s}\n' \
        "$1" "$gpu-soft" "$2" "$5" "$3" "$4" >> "$work/rows"
}

# Did the NIC set the speed, or had it no core?
is_nic_limit() {
    case $(sed -n 's/^ *"notes": "\(.*\)",$/\1/p' "$work/json") in
    *BOTTLENECK* | *"set its speed"*) echo true ;;
    *) echo false ;;
    esac
}

# notes WHICH: what the run then says of its NIC.
notes() {
    [ "$(is_nic_limit)" = false ] ||
        sed -n "s/^ *\"notes\": \"\([^;]*;[^;]*\).*\",\$/      ^ $1: \1/p" "$work/json"
}

# conditions NIC_THREADS: what else a rate, or a probe under load, was measured with, as the end of a row's CONFIG.
conditions() {
    printf '"bytes": 8, "payload": "inline", "queue_memory": "host", "nic_threads": %s, ' "$1"
    printf '"nic_bottleneck": %s, "early": %s' "$(is_nic_limit)" "$(early)"
}

# The GPU's name is in the trace of a first run: H200 of "NVIDIA H200 at 1976 MHz; ...".
measure one-op $host -o "$work/trace"
processor=$(sed -n 's/.*"processor":"\([^"]*\)".*/\1/p' "$work/trace" 2> "$work/error")
gpu=$(echo "$processor" | sed -n 's/^NVIDIA \([A-Za-z0-9-]*\) .*/\1/p')
if [ -z "$gpu" ]; then
    echo "measure.sh: a first run did not name an NVIDIA GPU: '$processor'" >&2
    exit 1
fi
echo "$processor"
echo

echo "== 8 B inline put by one GPU thread: issue and put+completion, then round trip, in us"
echo "   early: WQEs of 4500 that the NIC read before they had arrived, and read again"
printf '%-24s | %-37s | %-31s\n' '' 'queues in host memory, CPU NIC' 'queues in GPU memory, GPU NIC'
printf '%-24s | %7s %7s %7s %5s %7s | %7s %7s %7s %7s\n' ordering issue p99 put+cqe early rtt issue p99 put+cqe rtt
for ordering in $orderings; do
    line=
    for memory in host gpu; do
        set -- --set stack.queue_memory=$memory --set "ordering=$ordering" --set warmup=500
        measure one-op "$@" --set iterations=4000
        line="$line | $(printf '%7s %7s %7s' "$(metric issue p50_us)" "$(metric issue p99_us)" \
            "$(metric put+completion p50_us)")"
        [ $memory = gpu ] || line="$line $(printf '%5s' "$(early)")"
        source=$(split "$ordering")
        config="\"bytes\": 8, \"payload\": \"inline\", \"ordering\": \"$ordering\", \"queue_memory\": \"$memory\""
        if [ $memory = host ]; then
            row "$source" mini-gda issue_us "$(metric issue p50_us)" "$config"
            row "$source" mini-gda put_completion_us "$(metric put+completion p50_us)" "$config"
        fi
        measure round-trip "$@" --set iterations=4000
        line="$line $(printf '%7s' "$(metric 'round trip' p50_us)")"
        [ $memory = gpu ] || row "$source" mini-gda rtt_us "$(metric 'round trip' p50_us)" "$config"
    done
    printf '%-24s%s\n' "$ordering" "$line"
done

echo
echo "== the same by pointer, and longer inline payloads (gpu-fence, host queues): issue, put+completion, round trip"
for what in 'pointer 8' 'pointer 64' 'pointer 1024' 'pointer 4096' 'inline 24' 'inline 40' 'inline 88' 'inline 152'; do
    payload=${what% *} bytes=${what#* }
    set -- $host --set payload=$payload --set bytes=$bytes --set warmup=500 --set iterations=4000
    measure one-op "$@"
    line=$(printf '%7s %7s' "$(metric issue p50_us)" "$(metric put+completion p50_us)")
    source=$(split "$payload-$bytes")
    config="\"bytes\": $bytes, \"payload\": \"$payload\", \"queue_memory\": \"host\""
    row "$source" mini-gda issue_us "$(metric issue p50_us)" "$config"
    row "$source" mini-gda put_completion_us "$(metric put+completion p50_us)" "$config"
    measure round-trip "$@"
    row "$source" mini-gda rtt_us "$(metric 'round trip' p50_us)" "$config"
    printf '%-7s %5s B  %s %7s\n' "$payload" "$bytes" "$line" "$(metric 'round trip' p50_us)"
done

echo
echo "== proxies (a CPU worker posts): enqueue, put+completion, round trip; doorbell forwarded by the host"
for protocol in baseline tuned; do
    for bytes in 8 64; do
        set -- --stack mini-proxy --set protocol=$protocol --set bytes=$bytes --set warmup=500 --set iterations=4000 \
            --set completion_memory=host
        measure one-op "$@"
        line=$(printf '%7s %7s %7s' "$(metric issue p50_us)" "$(metric issue p99_us)" \
            "$(metric put+completion p50_us)")
        source=$(split "$protocol-$bytes")
        config="\"bytes\": $bytes, \"protocol\": \"$protocol\", \"completion_memory\": \"host\""
        row "$source" mini-proxy issue_us "$(metric issue p50_us)" "$config"
        row "$source" mini-proxy put_completion_us "$(metric put+completion p50_us)" "$config"
        measure round-trip "$@"
        row "$source" mini-proxy rtt_us "$(metric 'round trip' p50_us)" "$config"
        printf '%-9s %3s B  %s %7s\n' "$protocol" "$bytes" "$line" "$(metric 'round trip' p50_us)"
    done
done
measure one-op $host --set doorbell=host --set warmup=500 --set iterations=4000
printf '%-9s %3s B  %7s %7s %7s\n' forwarded 8 "$(metric issue p50_us)" "$(metric issue p99_us)" \
    "$(metric put+completion p50_us)"

echo
echo "== message rate, M puts/s (8 B inline, host queues, 4 NIC threads): threads, each with a queue of its own, by"
echo "   WQEs a doorbell; in brackets how many WQEs the NIC read before they had arrived"
printf '%8s | %-44s | %-44s\n' '' gpu-fence system-fence
printf '%8s | %14s %14s %14s | %14s %14s %14s\n' threads 1 4 16 1 4 16
for lanes in 1 4 16 64; do
    line=$(printf '%8s' $lanes)
    : > "$work/remarks"
    for ordering in gpu-fence system-fence; do
        line="$line |"
        for wqes in 1 4 16; do
            measure stream $host --set lanes=$lanes --set queues=$lanes --set wqes_per_doorbell=$wqes \
                --set ordering=$ordering --set machine.nic_threads=4
            line="$line $(printf '%14s' "$(value rate_mputs) [$(early)]")"
            notes "$ordering, $wqes" >> "$work/remarks"
            row "$gpu rate" mini-gda rate_mmsgs "$(value rate_mputs)" "\"threads\": $lanes, \"queues\": $lanes, \
\"wqes_per_doorbell\": $wqes, \"ordering\": \"$ordering\", $(conditions 4)"
        done
    done
    echo "$line"
    cat "$work/remarks"
done
echo "   32 threads on one queue:"
for sharing in ordered cooperative locked; do
    measure stream $host --set lanes=32 --set queues=1 --set sharing=$sharing --set machine.lanes_per_cta=32 \
        --set puts=64 --set machine.nic_threads=4
    printf '%-12s %8s\n' "$sharing" "$(value rate_mputs)"
    notes $sharing
    row "$gpu rate" mini-gda rate_mmsgs "$(value rate_mputs)" "\"threads\": 32, \"queues\": 1, \
\"sharing\": \"$sharing\", \"lanes_per_cta\": 32, \"puts\": 64, \"ordering\": \"gpu-fence\", $(conditions 4)"
done

echo
echo "== proxy rate, M puts/s (tuned, 4 rings a worker): workers by batch"
printf '%8s %8s %8s %8s\n' workers 1 4 16
for workers in 1 2 4; do
    line=$(printf '%8s' $workers)
    : > "$work/remarks"
    for batch in 1 4 16; do
        measure stream --stack mini-proxy --set lanes=$((4 * workers)) --set queues=$((4 * workers)) \
            --set workers=$workers --set batch=$batch --set machine.nic_threads=2
        line="$line $(printf '%8s' "$(value rate_mputs)")"
        notes "$batch" >> "$work/remarks"
        row "$gpu rate" mini-proxy rate_mmsgs "$(value rate_mputs)" "\"workers\": $workers, \
\"rings\": $((4 * workers)), \"batch\": $batch, \"protocol\": \"tuned\", $(conditions 2)"
    done
    echo "$line"
    cat "$work/remarks"
done

echo
echo "== round trip of a probe beside CTAs that post all the time (ordered queue): us p50, p99, and what they carry"
printf '%6s | %-26s | %-26s\n' CTAs 'shared queue' 'a queue of its own'
for ctas in 0 1 4 16 64; do
    line=
    for queues in 1 2; do
        if [ $ctas = 0 ] && [ $queues = 2 ]; then # no load: both are the same
            line="$line |"
            continue
        fi
        queue=$([ $queues = 1 ] && echo shared || echo reserved)
        measure probe $host --set lanes=$((ctas + 1)) --set queues=$queues --set sharing=ordered --set warmup=50 \
            --set iterations=500 --set machine.nic_threads=2
        line="$line | $(printf '%8s %8s %8s' "$(metric 'round trip' p50_us)" "$(metric 'round trip' p99_us)" \
            "$(value rate_mputs)")"
        carried=$(value rate_mputs)
        row "$gpu probe" mini-gda loaded_rtt_us "$(metric 'round trip' p50_us)" "\"background_ctas\": $ctas, \
\"sharing\": \"ordered\", \"queue\": \"$queue\", \"ordering\": \"gpu-fence\", \"iterations\": 500, \
${carried:+\"rate_mputs\": $carried, }$(conditions 2)"
    done
    printf '%6s%s\n' $ctas "$line"
done

echo
echo "$failed runs failed; each of the others verified its payloads"
if [ -n "$rows" ]; then
    { echo '['; sed '$!s/$/,/' "$work/rows"; echo ']'; } > "$rows.tmp" && mv "$rows.tmp" "$rows"
fi
[ "$failed" -eq 0 ]

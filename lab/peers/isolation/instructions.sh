#!/bin/sh
# Instructions in user mode per request, as valgrind counts them: without the noise of a clock, and
# blind to what an instruction costs. The difference of two runs is free of start and warm-up.
# `instructions.sh GREENROOM PORT COMMAND...`: a server that listens on PORT. Nothing without valgrind.
greenroom=$1 port=$2
shift 2
command -v valgrind >/dev/null || { echo '{}'; exit; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --log-file="$log" \
        "$@" >/dev/null &
    tries=0
    until curl -so /dev/null "http://127.0.0.1:$port/hello"; do
        tries=$((tries + 1))
        kill -0 $! && [ $tries -lt 300 ] || { kill $!; exit 1; }
        sleep 0.2
    done
    "$greenroom" bench -q -k -c 1 -n "$requests" "http://127.0.0.1:$port/hello" >/dev/null ||
        { kill $!; exit 1; }
    kill $!
    wait $!
    sed -n 's/.*refs: *//p' "$log" | tail -1 | tr -d ,
}
requests=2000
few=$(run "$@") || exit 1
requests=12000
many=$(run "$@") || exit 1
echo "{\"instructions\": $(((many - few) / 10000))}"

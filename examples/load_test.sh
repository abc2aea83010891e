#!/bin/sh
# A load test for CI: exit status 3 says that the application has become too slow, or fails.
#
#   examples/load_test.sh http://127.0.0.1:5000/hello
#
# An open loop sends at its rate whatever the server does, so one that stalls cannot hide it.
# Bounds are generous: machines of CI are shared, and a failure must mean something. SECONDS_LONG,
# RATE and P99 may say otherwise; GREENROOM names the program.
set -eu

url=$1
exec "${GREENROOM:-greenroom}" bench -k \
    --rate "${RATE:-50}" --duration "${SECONDS_LONG:-10}s" \
    --fail-if "p99>${P99:-500ms}" --fail-if 'errors>0%' \
    "$url"

#!/bin/sh
# Starts a broker, then nodes, and kills them when it is ended itself:
#   start.sh NODES BROKER NODE
# Both are commands, BROKER may be empty. They have $DIRECTORY, which is new, and nodes $NODE, from 1.
set -eu
nodes=$1 broker=$2 node=$3 pids=
DIRECTORY=$(mktemp -d)
export DIRECTORY
trap 'rm -rf "$DIRECTORY"' EXIT
# One of them may have been killed before.
trap 'kill -9 $pids || true; wait; exit' TERM INT

if [ -n "$broker" ]; then
    sh -c "exec $broker" &
    pids=$!
fi
for number in $(seq "$nodes"); do
    NODE=$number sh -c "exec $node" &
    pids="$pids $!"
done
wait

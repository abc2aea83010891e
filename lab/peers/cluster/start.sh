#!/bin/sh
# Starts a broker, then nodes, and waits until they are ended with their process group:
#   start.sh NODES BROKER NODE
# Both are commands, BROKER may be empty. They have $DIRECTORY, new and theirs, and nodes $NODE, from 1.
set -eu
nodes=$1 broker=$2 node=$3
DIRECTORY=$(mktemp -d)
export DIRECTORY
trap 'rm -rf "$DIRECTORY"' EXIT
trap 'wait; exit' TERM INT

if [ -n "$broker" ]; then
    sh -c "exec $broker" &
fi
for number in $(seq "$nodes"); do
    NODE=$number sh -c "exec $node" &
done
wait

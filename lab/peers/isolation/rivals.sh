#!/bin/sh
# Programs that do nothing, and want a core for it: `rivals.sh COUNT SECONDS CORES`,
# for a second more.
i=0
while [ $i -lt "$1" ]; do
    taskset -c "$3" timeout $(($2 + 1)) sh -c 'while :; do :; done' &
    i=$((i + 1))
done
wait
echo '{}'

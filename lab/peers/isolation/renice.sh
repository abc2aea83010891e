#!/bin/sh
# Moves a server's threads that run handlers to a niceness: `renice.sh PID NICENESS`.
moved=0
for task in /proc/"$1"/task/*; do
    if grep -Eqx 'stage-[0-9]+' "$task/comm"; then
        renice -n "$2" -p "${task##*/}" >/dev/null
        moved=$((moved + 1))
    fi
done
echo "{\"moved\": $moved}"

#!/bin/sh
# A server for Perl under start_server, and its upgrades by SIGHUP, as `perldoc starman` says:
#   start_server.sh start DIRECTORY ADDRESS ARGUMENTS
#   start_server.sh hup DIRECTORY PROCESS  until there is a new generation
set -eu
how=$1 status=$2/status

generation() {
    cut -d : -f 1 "$status" | sort -n | tail -n 1
}

case $how in
start)
    rm -rf "$2"
    mkdir -p "$2"
    address=$3
    shift 3
    exec start_server --port="$address" --interval=5 --status-file="$status" "$@"
    ;;
hup)
    # It is there once the first generation has run for the interval.
    until [ -s "$status" ]; do sleep 0.02; done
    before=$(generation)
    kill -HUP "$3"
    until [ "$(generation)" != "$before" ]; do sleep 0.02; done
    ;;
esac

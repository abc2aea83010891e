#!/bin/bash
# Clients that move bodies over HTTP/2 with prior knowledge, one after the other, by h2load:
#   h2load.sh uploads|downloads SERVER CLIENTS SECONDS
# Prints what they moved; of uploads, those that were over in time.
set -euo pipefail
kind=$1 server=$2 clients=$3 seconds=$4
body=$(mktemp)
trap 'rm -f "$body"' EXIT
megabytes=8
load=(h2load "-c$clients" -m1 "-D$seconds")
# Prints the figure that an awk rule finds, or fails: told RULE VARIABLE=VALUE... -
told() { awk "$1"' END { if (!moved) exit 1; printf "{\"%s\": %s}\n", name, moved }' "${@:2}"; }
case $kind in
uploads)
    head -c "${megabytes}M" /dev/zero >"$body"
    "${load[@]}" -d "$body" "http://$server/take" |
        told '/^finished in/ { moved = $4 * each * 1.048576 }' name=up_mb_s each="$megabytes" -
    ;;
downloads)
    "${load[@]}" "http://$server/give" | told \
        '/^traffic:/ { gsub(/[(),]/, ""); moved = $3 / seconds / 1e6 }' \
        name=down_mb_s seconds="$seconds" -
    ;;
esac

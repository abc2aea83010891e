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
case $kind in
uploads)
    head -c "${megabytes}M" /dev/zero >"$body"
    "${load[@]}" -d "$body" "http://$server/take" |
        awk -v each="$megabytes" '/^finished in/ { print "{\"up_mb_s\":" $4 * each * 1.048576 "}" }'
    ;;
downloads)
    "${load[@]}" "http://$server/give" | awk -v seconds="$seconds" \
        '/^traffic:/ { gsub(/[(),]/, ""); print "{\"down_mb_s\":" $3 / seconds / 1e6 "}" }'
    ;;
esac

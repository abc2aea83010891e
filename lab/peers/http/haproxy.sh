#!/bin/sh
# HAProxy with a server behind it, one thread, in the foreground: haproxy.sh ADDRESS UPSTREAM
set -eu
directory=$(mktemp -d)
cat >"$directory/haproxy.cfg" <<CONF
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option forwardfor
    http-reuse always
frontend front
    bind $1
    default_backend behind
backend behind
    server upstream $2 pool-max-conn 64
CONF
exec haproxy -db -q -f "$directory/haproxy.cfg"

#!/bin/sh
# HAProxy with a server behind it, one thread:
# `front-haproxy.sh DIRECTORY ROOT UPSTREAM --listen ADDRESS`. It keeps what it writes in DIRECTORY.
set -eu
directory=$1
upstream=$3
address=$5
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
    bind $address
    default_backend behind
backend behind
    server upstream $upstream pool-max-conn 64
CONF
exec haproxy -db -q -f "$directory/haproxy.cfg"

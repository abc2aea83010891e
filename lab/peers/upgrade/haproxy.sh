#!/bin/sh
# HAProxy with a server behind it, a master and its workers, and its upgrades by SIGUSR2:
#   haproxy.sh start DIRECTORY ADDRESS TLS-ADDRESS CERTIFICATE UPSTREAM
#   haproxy.sh reload MASTER  until there is a new worker; it tells the old one to finish
set -eu
case $1 in
start)
    rm -rf "$2"
    mkdir -p "$2"
    cat "$5" "$5.key" >"$2/both.pem"
    # The option leaves idle connections open during a reload, until they had one more request: the
    # documentation advises it where clients do not send again.
    cat >"$2/haproxy.cfg" <<CONF
global
    maxconn 1024
    stats socket $2/haproxy.sock mode 600 level admin expose-fd listeners
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout tunnel 1h
frontend front
    option idle-close-on-response
    bind $3
    bind $4 ssl crt $2/both.pem alpn h2,http/1.1
    default_backend behind
backend behind
    server upstream $6
CONF
    exec haproxy -W -db -f "$2/haproxy.cfg"
    ;;
reload)
    before=$(pgrep -P "$2")
    kill -USR2 "$2"
    until pgrep -P "$2" | grep -qvxF "$before"; do sleep 0.02; done
    ;;
esac

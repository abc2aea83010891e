#!/bin/bash
# The social network and what it needs, with all data in a new folder below OUT, which goes with it:
#   site.sh alone SOCIAL ADDRESS OUT THIRD-PARTY   SQLite; shares go to the third party
#   site.sh apart SOCIAL ADDRESS OUT               SQLite; two other nodes resize, on core 1 if it is idle
#   site.sh computing SOCIAL ADDRESS OUT           the same, beside a loop on core 1 if it is idle
#   site.sh pair SOCIAL ADDRESS OUT FERRETDB       two replicas, the second at 127.0.1.2, same port
#   site.sh balanced SOCIAL ADDRESS OUT FERRETDB   three replicas behind HAProxy
# What else listens has another address of 127.0.1.0/24 and the same port.
set -eu
kind=$1 social=$2 address=$3 port=${3##*:}
mkdir -p "$4"
site=$(mktemp -d -p "$4" social.XXXXXX)
trap 'kill -9 $(jobs -p) 2>/dev/null; wait; rm -rf "$site"' EXIT
trap exit TERM INT
cd "$site"

# Limits on rates are by user and address, and here is one of each.
for limit in LOG_INS SIGN_UPS CHANGES UPLOADS REQUESTS; do export "SOCIAL_LIMITS__$limit=0"; done
export RUST_LOG=warn

# Hosts with our port: until_it is_well HOST, until_it listens HOST.
is_well() {
    local line
    exec 3<>"/dev/tcp/$1/$port" || return
    printf 'GET /health HTTP/1.0\r\n\r\n' >&3
    read -r line <&3
    exec 3>&-
    [[ $line == *" 200 "* ]]
}
listens() { (: <>"/dev/tcp/$1/$port"); }
until_it() { until "$@" 2>/dev/null; do sleep .02; done; }

# replica ADDRESS FLAGS...
replica() {
    local listen=$1
    shift
    "$social" --listen "$listen" --sample false --files files "$@" &
}

replicas() {
    mkdir ferretdb
    "$ferretdb" --handler=sqlite "--sqlite-url=file:$site/ferretdb/" --state-dir=ferretdb \
        "--listen-addr=127.0.1.4:$port" --debug-addr=- --telemetry=disable --log-level=error &
    redis-server --bind 127.0.1.5 --port "$port" --save '' --appendonly no --dir "$site" >redis.log &
    until_it listens 127.0.1.4
    until_it listens 127.0.1.5
    for each in "$@"; do
        replica "$each:$port" --store "mongodb://127.0.1.4:$port/social" \
            --redis "redis://127.0.1.5:$port"
        until_it is_well "$each"
    done
}

case $kind in
alone)
    cat >social.toml <<CONF
[share]
url = "http://$5/shares"
token_url = "http://$5/token"
client_id = "social"
client_secret = "secret"
timeout = "3s"
CONF
    replica "$address" --config social.toml --store "sqlite:$site/social.db"
    ;;
apart | computing)
    PATH=$PATH:/usr/sbin
    other_machine() { taskset -c 1 chrt --idle 0 "$@" & }
    other_machine nats-server -a 127.0.1.6 -p "$port" -js -sd "$site/nats" >nats.log 2>&1
    until_it listens 127.0.1.6
    export SOCIAL_NATS="nats://127.0.1.6:$port"
    for each in 127.0.1.7 127.0.1.8; do
        other_machine "$social" --role images --status-listen "$each:$port" --files files
        until_it is_well "$each"
    done
    if [[ $kind == computing ]]; then other_machine bash -c 'while :; do :; done'; fi
    replica "$address" --role web,outbox --store "sqlite:$site/social.db"
    ;;
pair)
    ferretdb=$5
    replicas 127.0.1.2 "${address%:*}"
    ;;
balanced)
    ferretdb=$5
    replicas 127.0.1.1 127.0.1.2 127.0.1.3
    # A request that no replica has begun to respond to goes to another one: each whose connection
    # failed, and of those that were sent only what may be repeated, which is what only reads.
    cat >haproxy.cfg <<CONF
global
    maxconn 8000
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout tunnel 1h
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response
frontend site
    bind $address
    default_backend replicas
backend replicas
    balance roundrobin
    option httpchk GET /health
    http-check expect status 200
    http-request disable-l7-retry unless METH_GET
    default-server inter 500ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down
    server replica1 127.0.1.1:$port check
    server replica2 127.0.1.2:$port check
    server replica3 127.0.1.3:$port check
CONF
    haproxy -db -f haproxy.cfg &
    ;;
esac
wait

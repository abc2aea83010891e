#!/bin/sh
# nginx with one worker, as its users set it up, in the foreground:
#   nginx.sh drain ADDRESS                        a response to everything below /upload, defaults
#   nginx.sh tls ADDRESS TLS-ADDRESS CERTIFICATE  /hello over TLS and without
#   nginx.sh front ADDRESS ROOT UPSTREAM [LOG]    files below /files/, and a server behind; with one
#                                                 word more lines of the log are gathered
set -eu
kind=$1
access=off
directory=$(mktemp -d)
case $kind in
drain)
    descriptors=8192
    site="server {
        listen $2 backlog=4096;
        location /upload { default_type text/plain; return 200 \"Hello, world!\"; }
    }"
    ;;
tls)
    descriptors=20000
    site="keepalive_requests 1000000000;
    keepalive_timeout 600s;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate $4;
    ssl_certificate_key $4.key;
    ssl_session_cache shared:TLS:10m;
    ssl_session_timeout 1d;
    ssl_session_tickets on;
    server {
        listen $3 ssl http2 backlog=4096;
        listen $2 backlog=4096;
        location /hello { default_type text/plain; return 200 \"Hello, world!\"; }
    }"
    ;;
front)
    descriptors=8192
    access=${5:-off}
    [ -z "${5-}" ] || rm -f "$5"
    [ -z "${6-}" ] || access="$5 combined buffer=4k flush=5ms"
    site="sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    upstream behind { server $4; keepalive 64; keepalive_requests 1000000000; }
    server {
        listen $2 backlog=4096;
        location /files/ { alias $3/; }
        location /fixed { default_type text/plain; return 200 \"Hello, world!\"; }
        location / {
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host \$host;
            proxy_set_header X-Forwarded-For \$proxy_add_x_forwarded_for;
        }
    }"
    ;;
esac
cat >"$directory/nginx.conf" <<CONF
daemon off;
user root;
worker_processes 1;
worker_rlimit_nofile $descriptors;
pid $directory/nginx.pid;
error_log stderr;
events { worker_connections $((descriptors * 4 / 5)); }
http {
    access_log $access;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
    $site
}
CONF
exec nginx -p "$directory" -e stderr -c "$directory/nginx.conf"

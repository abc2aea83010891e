#!/bin/sh
# nginx over TLS and without, one worker, as its users set it up for TLS:
# `tls-nginx.sh DIRECTORY CERTIFICATE KEY --plain ADDRESS --tls ADDRESS`. It keeps what it writes in DIRECTORY.
set -eu
directory=$1
certificate=$2
key=$3
plain=$5
tls=$7
cat >"$directory/nginx.conf" <<CONF
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid $directory/nginx.pid;
error_log $directory/error.log;
events { worker_connections 16384; }
http {
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate $certificate;
    ssl_certificate_key $key;
    ssl_session_cache shared:TLS:10m;
    ssl_session_timeout 1d;
    ssl_session_tickets on;
    server {
        listen $tls ssl http2 backlog=4096;
        listen $plain backlog=4096;
        location /hello {
            default_type text/plain;
            return 200 "Hello, world!";
        }
    }
}
CONF
exec nginx -p "$directory" -e "$directory/error.log" -c "$directory/nginx.conf"

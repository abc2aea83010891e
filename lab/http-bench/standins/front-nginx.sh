#!/bin/sh
# nginx with files and a server behind it, one worker:
# `front-nginx.sh DIRECTORY ROOT UPSTREAM --listen ADDRESS`. It keeps what it writes in DIRECTORY.
set -eu
directory=$1
root=$2
upstream=$3
address=$5
cat >"$directory/nginx.conf" <<CONF
daemon off;
user root;
worker_processes 1;
worker_rlimit_nofile 8192;
pid $directory/nginx.pid;
error_log $directory/error.log;
events { worker_connections 4096; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
    upstream behind {
        server $upstream;
        keepalive 64;
        keepalive_requests 1000000000;
    }
    server {
        listen $address backlog=4096;
        location /files/ { alias $root/; }
        location / {
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host \$host;
            proxy_set_header X-Forwarded-For \$proxy_add_x_forwarded_for;
        }
    }
}
CONF
exec nginx -p "$directory" -e "$directory/error.log" -c "$directory/nginx.conf"

#!/bin/sh
# nginx with its own module for the pixel, one worker: `nginx.sh ADDRESS`.
set -eu
directory=$(mktemp -d)
cat >"$directory/nginx.conf" <<CONF
daemon off;
worker_processes 1;
pid $directory/nginx.pid;
error_log stderr;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
    server {
        listen $1 backlog=4096;
        location / { empty_gif; }
    }
}
CONF
exec nginx -p "$directory" -e stderr -c "$directory/nginx.conf"

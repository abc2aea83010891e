#!/bin/sh
# nginx in front of nothing, one worker: `nginx.sh DIRECTORY --listen ADDRESS`. It keeps what it writes in DIRECTORY.
set -eu
directory=$1
address=$3
cat >"$directory/nginx.conf" <<CONF
daemon off;
worker_processes 1;
worker_rlimit_nofile 8192;
pid $directory/nginx.pid;
error_log $directory/error.log;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
    server {
        listen $address backlog=4096;
        location /upload {
            default_type text/plain;
            return 200 "Hello, world!";
        }
    }
}
CONF
exec nginx -p "$directory" -e "$directory/error.log" -c "$directory/nginx.conf"

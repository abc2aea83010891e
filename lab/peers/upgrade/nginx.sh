#!/bin/sh
# nginx with a server behind it, and its upgrades, as its documentation says:
#   nginx.sh start DIRECTORY ADDRESS TLS-ADDRESS CERTIFICATE UPSTREAM
#   nginx.sh reload DIRECTORY  -s reload, until there are new workers
#   nginx.sh binary DIRECTORY  another binary, by SIGUSR2, SIGWINCH and SIGQUIT
set -eu
how=$1 directory=$2
pid=$directory/nginx.pid
# It executes itself by the path that it was started with.
nginx="$(command -v nginx) -p $directory -e stderr -c $directory/nginx.conf"

is_alive() {
    case $(ps -o stat= -p "$1") in '' | Z*) return 1 ;; esac
}

case $how in
start)
    rm -rf "$directory"
    mkdir -p "$directory"
    cat >"$directory/nginx.conf" <<CONF
daemon off;
user root;
worker_processes auto;
pid $pid;
error_log stderr;
events { worker_connections 1024; }
http {
    access_log off;
    client_max_body_size 4m;
    client_body_buffer_size 64k;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
    map \$http_upgrade \$connection_upgrade { default upgrade; '' ''; }
    upstream behind { server $6; keepalive 32; }
    server {
        listen $3;
        listen $4 ssl http2;
        ssl_certificate $5;
        ssl_certificate_key $5.key;
        location / {
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Host \$host;
            proxy_set_header Upgrade \$http_upgrade;
            proxy_set_header Connection \$connection_upgrade;
        }
    }
}
CONF
    # A master whose first parent is still there ignores SIGUSR2.
    ($nginx & until [ -s "$pid" ]; do sleep 0.02; done)
    exec sleep 3600
    ;;
reload)
    master=$(cat "$pid")
    before=$(pgrep -P "$master")
    $nginx -s reload
    until pgrep -P "$master" | grep -qvxF "$before"; do sleep 0.02; done
    ;;
binary)
    # A master begins another upgrade only after the one before it has ended.
    while [ -s "$directory/old" ] && is_alive "$(cat "$directory/old")"; do sleep 0.02; done
    old=$(cat "$pid")
    kill -USR2 "$old"
    until new=$(cat "$pid" 2>&1) && [ "$new" != "$old" ] && pgrep -P "$new" >"$directory/workers"; do
        sleep 0.02
    done
    kill -WINCH "$old"
    kill -QUIT "$old"
    echo "$old" >"$directory/old"
    ;;
esac

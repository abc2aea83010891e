#!/bin/sh
# Caddy with files and a server behind it: `front-caddy.sh DIRECTORY ROOT UPSTREAM --listen ADDRESS`.
# It keeps what it writes in DIRECTORY.
set -eu
directory=$1
root=$2
upstream=$3
address=$5
cat >"$directory/Caddyfile" <<CONF
{
	admin off
	auto_https off
}
http://$address {
	bind ${address%:*}
	handle_path /files/* {
		root * $root
		file_server
	}
	handle {
		reverse_proxy $upstream
	}
}
CONF
export HOME="$directory" XDG_CONFIG_HOME="$directory" XDG_DATA_HOME="$directory"
exec caddy run --config "$directory/Caddyfile" --adapter caddyfile

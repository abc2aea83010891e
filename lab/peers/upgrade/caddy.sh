#!/bin/sh
# Caddy with a server behind it, and `caddy reload`, which replaces what is in force within one
# process:
#   caddy.sh start DIRECTORY ADDRESS TLS-ADDRESS ADMIN-ADDRESS CERTIFICATE UPSTREAM
#   caddy.sh reload DIRECTORY ADMIN-ADDRESS
set -eu
directory=$2
case $1 in
start)
    rm -rf "$directory"
    mkdir -p "$directory"
    cat >"$directory/Caddyfile" <<CONF
{
	admin $5
	auto_https off
	servers {
		protocols h1 h2 h3
	}
}
http://$3 {
	bind ${3%:*}
	reverse_proxy $7
}
https://$4 {
	bind ${4%:*}
	tls $6 $6.key
	reverse_proxy $7
}
CONF
    export HOME="$directory" XDG_CONFIG_HOME="$directory" XDG_DATA_HOME="$directory"
    exec caddy run --adapter caddyfile --config "$directory/Caddyfile"
    ;;
reload) exec caddy reload --force --adapter caddyfile --address "$3" --config "$directory/Caddyfile" ;;
esac

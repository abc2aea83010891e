#!/bin/sh
# Caddy over TLS and without: `tls-caddy.sh DIRECTORY CERTIFICATE KEY --plain ADDRESS --tls ADDRESS`.
# It keeps what it writes in DIRECTORY.
set -eu
directory=$1
certificate=$2
key=$3
plain=$5
tls=$7
cat >"$directory/Caddyfile" <<CONF
{
	admin off
	auto_https off
	servers {
		protocols h1 h2
	}
}
https://$tls {
	bind ${tls%:*}
	tls $certificate $key
	respond /hello "Hello, world!"
}
http://$plain {
	bind ${plain%:*}
	respond /hello "Hello, world!"
}
CONF
export HOME="$directory" XDG_CONFIG_HOME="$directory" XDG_DATA_HOME="$directory"
exec caddy run --config "$directory/Caddyfile" --adapter caddyfile

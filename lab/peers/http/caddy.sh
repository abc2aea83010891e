#!/bin/sh
# Caddy with its defaults, without HTTP/3 and redirects, in the foreground:
#   caddy.sh tls ADDRESS TLS-ADDRESS CERTIFICATE  /hello over TLS and without
#   caddy.sh front ADDRESS ROOT UPSTREAM [LOG]    files below /files/, and a server behind
set -eu
directory=$(mktemp -d)
bind="bind ${2%:*}"
case $1 in
tls)
    sites="https://$3 {
	$bind
	tls $4 $4.key
	respond /hello \"Hello, world!\"
}
http://$2 {
	$bind
	respond /hello \"Hello, world!\"
}"
    ;;
front)
    log=
    case ${5-} in
    '') ;;
    *)
        log="log {
		output file $5
	}"
        rm -f "$5"
        ;;
    esac
    sites="http://$2 {
	$bind
	$log
	handle /fixed {
		respond \"Hello, world!\"
	}
	handle_path /files/* {
		root * $3
		file_server
	}
	handle {
		reverse_proxy $4 {
			transport http {
				keepalive_idle_conns_per_host 64
			}
		}
	}
}"
    ;;
esac
cat >"$directory/Caddyfile" <<CONF
{
	admin off
	auto_https off
	servers {
		protocols h1 h2
	}
}
$sites
CONF
export HOME="$directory" XDG_CONFIG_HOME="$directory" XDG_DATA_HOME="$directory"
exec caddy run --config "$directory/Caddyfile" --adapter caddyfile

#!/bin/sh
# Greenroom with files below /files/ and a server behind it, on one loop:
# greenroom.sh PROGRAM ADDRESS ROOT UPSTREAM [ACCESS-LOG]
set -eu
site=$(mktemp -d)/greenroom.toml
case ${5-} in
'') log='no_access_log = true' ;;
*)
    log="access_log = \"$5\"
access_log_format = \"combined\""
    rm -f "$5"
    ;;
esac
cat >"$site" <<SITE
[server]
$log

[[site]]

[[site.route]]
path = "/fixed"
respond = "Hello, world!"

[[site.route]]
path = "/files/"
files = "$3"

[[site.route]]
path = "/"
proxy = { to = ["http://$4"] }
SITE
exec "$1" serve "$site" --loops 1 --listen "$2"

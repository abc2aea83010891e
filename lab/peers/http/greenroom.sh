#!/bin/sh
# Greenroom with files below /files/ and a server behind it, on one loop:
# greenroom.sh PROGRAM ADDRESS ROOT UPSTREAM
set -eu
site=$(mktemp -d)/greenroom.toml
cat >"$site" <<SITE
[server]
no_access_log = true

[[site]]

[[site.route]]
path = "/files/"
files = "$3"

[[site.route]]
path = "/"
proxy = { to = ["http://$4"] }
SITE
exec "$1" serve "$site" --loops 1 --listen "$2"

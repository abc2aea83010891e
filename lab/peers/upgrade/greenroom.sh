#!/bin/sh
# Greenroom as deployments have it, started by a link to the program, and its upgrades:
#   greenroom.sh start DIRECTORY PROGRAM ARGUMENTS  serves what the arguments say
#   greenroom.sh sites DIRECTORY PROGRAM UPSTREAM ARGUMENTS  passes on, as the other proxies
#   greenroom.sh good DIRECTORY PROGRAM  upgrades; another process must serve then
#   greenroom.sh crashes|hangs|missing DIRECTORY PROGRAM  tries a new version that does so: the
#       upgrade must fail, and the old process go on
set -eu
how=$1 directory=$2 program=$3
shift 3

complain() {
    echo "$how: $*" >&2
    exit 1
}

case $how in
start | sites)
    rm -rf "$directory"
    mkdir -p "$directory"
    ln -s "$program" "$directory/greenroom"
    if [ "$how" = sites ]; then
        cat >"$directory/sites.toml" <<SITES
[[site]]

[[site.route]]
path = "/"
proxy = { to = ["http://$1"] }

[[site.route]]
path = "/psgi/"
psgi = { app = "$(dirname "$0")/upgrade.psgi", workers = 2 }
SITES
        shift
        set -- "$directory/sites.toml" "$@"
    fi
    exec "$directory/greenroom" serve "$@" --pid "$directory/pid"
    ;;
good)
    old=$(cat "$directory/pid")
    "$program" upgrade --pid-file "$directory/pid"
    new=$(cat "$directory/pid")
    [ "$new" != "$old" ] || complain "process $old is still the server's"
    kill -0 "$new" || complain "process $new, the new one, is gone"
    exit
    ;;
crashes) version="echo 'the new version does not start' >&2; exit 3" ;;
hangs) version="exec sleep 600" ;;
missing) version="" ;;
esac

old=$(cat "$directory/pid")
if [ -n "$version" ]; then
    printf '#!/bin/sh\n%s\n' "$version" >"$directory/new"
    chmod 755 "$directory/new"
    mv "$directory/new" "$directory/greenroom"
else
    rm "$directory/greenroom"
fi
outcome=refused
"$program" upgrade --pid-file "$directory/pid" && outcome=taken
ln -sf "$program" "$directory/greenroom"
[ $outcome = refused ] || complain "the upgrade succeeded"
[ "$(cat "$directory/pid")" = "$old" ] || complain "the pid file does not name process $old"
kill -0 "$old" || complain "the old process, $old, is gone"

#!/bin/sh
# h2load, with what it has measured as one line of JSON at its end: h2load.sh ARGUMENTS
set -eu
h2load "$@" | awk '
    /^finished in/ { rate = $4 }
    /^requests:/ { complete = $8; failed = $10 }
    END { if (complete == "") exit 1; printf "{\"complete\": %d, \"rate\": %s, \"failed\": %d}\n", complete, rate, failed }'

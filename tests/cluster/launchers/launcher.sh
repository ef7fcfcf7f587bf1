# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the launchers.
set -euo pipefail
hosts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../hosts" && pwd)/hosts.py

usage() { # prints the comment at the top of the script
  sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

on_host() { "$hosts" exec "$@"; } # HOST COMMAND...

all_hosts() { "$hosts" names; }

wait_for() { # TEXT COMMAND...: until the command succeeds
  local text=$1 limit=$((SECONDS + 60))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $limit ]; then
      echo "$(basename "$0"): expected within 60 s: $text; the answer to $*:" >&2
      "$@" >&2
      exit 1
    fi
    sleep 0.2
  done
}

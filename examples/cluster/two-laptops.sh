#!/bin/bash
# Runs an experiment on a few computers in one network, without a launcher, ssh or shared files (docs/cluster.md):
#
#     ./two-laptops.sh first                   # on one of them: prints an address and one-time codes, and waits
#     ./two-laptops.sh join 192.168.1.10:PORT  # on each of the others: asks for the code
#
# The experiment lies on the first computer only. The joining ones need the same program: the same package or build.
set -euo pipefail

case ${1:-} in
# Three processes in all, the one here included, for cluster.workers = 3.
first) exec regatta run "${2:-cluster.toml}" --wait-for 2 --set cluster.workers=3 ;;
# The code is typed, not given as an argument: arguments are visible to all users of the machine.
join) exec regatta join "${2:?usage: two-laptops.sh join HOST:PORT}" ;;
*) echo "usage: two-laptops.sh first [FILE.toml] | join HOST:PORT" >&2; exit 2 ;;
esac

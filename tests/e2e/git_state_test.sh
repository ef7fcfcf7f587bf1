#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# git_state_test.sh CMAKE SCRIPT: the header follows the state of a repository, and is written only where that has changed.
set -euo pipefail
cmake=$1 script=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { "$cmake" -DSOURCE="$work/source" -DHEADER="$work/state.hpp" -P "$script"; }
expect() { # PATTERN
  grep -qxE "#define REGATTA_GIT \"$1\"" "$work/state.hpp" || { echo "expected $1, got: $(cat "$work/state.hpp")"; exit 1; }
}
mkdir "$work/source"
export GIT_CEILING_DIRECTORIES=$work GIT_CONFIG_GLOBAL=/dev/null
run && expect ""
git -C "$work/source" init -q
echo one >"$work/source/file"
git -C "$work/source" add file
git -C "$work/source" -c user.name=test -c user.email=test@localhost commit -qm one
run && expect "[0-9a-f]{7,}"
touch -d "2020-01-01" "$work/state.hpp"
run
[ "$(date -r "$work/state.hpp" +%Y)" = 2020 ] || { echo "the header was written although nothing has changed"; exit 1; }
echo two >"$work/source/file"
run && expect "[0-9a-f]{7,}-dirty"

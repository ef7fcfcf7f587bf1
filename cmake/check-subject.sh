#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check-subject.sh FILE: the commit-msg hook. Fails if the first line of the commit message in FILE is empty or has more
# than 72 characters.
subject=$(head -n 1 "$1")
length=$(printf %s "$subject" | LC_ALL=C.UTF-8 wc -m)
if [ "$length" -lt 1 ] || [ "$length" -gt 72 ]; then
  echo "$1:1:1: error: expected a subject of 1 to 72 characters, got $length: $subject; shorten it" >&2
  exit 1
fi

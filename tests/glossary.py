"""Pages, comments, names of tests and public names use the words of docs/glossary.md, none of its second table and none of
STYLE, and every term of its first table has a meaning.

    python tests/glossary.py            prints FILE:LINE for each word that is not used here; exit code 1

Whole words and phrases are found in any case and over line breaks. `PAGES` are read outside code spans, code blocks, link
targets and HTML comments; of `SOURCES` the comments and the names of tests are read, of `HELP` the strings too, and of
`HEADERS` the names that they declare, whose words are those between underscores and capitals.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GLOSSARY = "docs/glossary.md"
PAGES = ["*.md", "docs/*.md", "examples/**/*.md", "python/**/*.md"]
SOURCES = ["include/tooldecode/**/*.?pp", "include/tooldecode/**/*.h", "include/tooldecode/**/*.cuh", "examples/**/*.?pp",
           "tests/**/*.?pp", "tests/**/*.cu"]
HELP = ["examples/program/*.cpp"]  # what the program prints
HEADERS = ["include/tooldecode/**/*.hpp", "include/tooldecode/**/*.cuh"]
# Names that stay: those of version 0.2 for one version more, and those of the C interface, which programs link.
OLD_NAMES = ["include/tooldecode/constraint/old_names.hpp", "include/tooldecode/adapters/c_interface.hpp"]
# What plain English has a shorter or a clearer word for.
STYLE = {
    "dear": "slow, expensive",
    "who wants": "you, if you want",
    "who makes": "you, if you make",
    "who asks": "you, if you ask",
    "who takes": "you, if you take",
    "who runs": "you, if you run",
    "who gives": "you, if you give",
    "whoever": "the caller, you",
    "whom": "say who does it",
    "of its own": "its own, a separate",
    "of their own": "their own",
    "of one's own": "your own",
    "of your own": "your own",
    "of yours": "your",
    "of ours": "our",
    "the same by": "the same with",
    "for ever": "forever",
    "in vain": "without effect",
    "in earnest": "in production",
    "in the midst of": "during",
    "of use": "useful",
    "but for": "except",
    "nobody's": "internal",
    "somebody": "a caller",
    "is told": "receives, is reported",
    "are told": "receive, are reported",
    "tells of": "describes",
    "quaint": "old",
    "thereof": "of it",
    "therein": "in it",
    "whence": "from where",
    "hence": "so",
    "behind an end": "after an end",
    "one behind the other": "one after another",
    "telephone": "phone",
    "stranger": "user",
    "strangers": "users",
}
NAME = re.compile(r"(?:class|struct|using|concept|enum class|namespace) ([A-Za-z_]\w*)|\b([a-z_]\w*)\(")


def rows(heading: str) -> list[list[str]]:
    """The rows of the table below a heading of the glossary."""
    page = (ROOT / GLOSSARY).read_text(encoding="utf-8")
    part = re.split(r"^## ", page.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def prose(text: str) -> str:
    """The text with what is no prose replaced by spaces, so that places stay the same."""
    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    for pattern in (r"^(`{3,})[^\n]*\n.*?^\1 *$", r"``.+?``|`[^`]+`", r"<!--.*?-->", r"(?<=\])\([^)\s]*\)", r"\bhttps?://\S+"):
        text = re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE)
    return text


def comments(text: str) -> str:
    """The comments of a source, and the names of its tests."""
    kept = [" "] * len(text)
    for i, c in enumerate(text):
        if c == "\n":
            kept[i] = c
    token = re.compile(r'R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
    for match in token.finditer(text):
        is_name = match[0][0] == '"' and re.search(r"TEST_CASE\(\s*$", text[max(0, match.start() - 80):match.start()])
        if match[0].startswith(("//", "/*")) or is_name:
            kept[match.start():match.end()] = match[0]
    bare = re.sub(r"^( *)(///?<?|\*)", lambda m: " " * len(m[0]), "".join(kept), flags=re.MULTILINE)
    return re.sub(r"`[^`\n]+`", lambda m: " " * len(m[0]), bare)


def strings(text: str) -> str:
    """The strings of a source; those of one expression are one text."""
    literal = r'"((?:[^"\\\n]|\\.)*)"'
    kept = re.sub(r"[^\n]", " ", text)
    for match in re.finditer(literal, text):
        kept = kept[:match.start(1)] + match[1] + kept[match.end(1):]
    return kept


def public_names(text: str) -> str:
    """The words of the names that a header declares, each name on its line."""
    lines = []
    for line in text.split("\n"):
        code = line.split("//")[0]
        found = [a or b for a, b in NAME.findall(code)]
        lines.append(" | ".join(re.sub(r"_+|(?<=[a-z0-9])(?=[A-Z])", " ", name) for name in found))
    return "\n".join(lines)


def find_words(text: str, words: dict[str, str]) -> list[tuple[int, str]]:
    """The lines of a text with a word of the table, and that word."""
    found = []
    lowered = text.lower()
    for word in words:
        if word.lower().split()[0] not in lowered:  # nearly all, and a hundred times as fast as what follows
            continue
        pattern = r"(?<![\w-])" + r"\s+".join(map(re.escape, word.split())) + r"(?![\w-])"
        for match in re.finditer(pattern, text, flags=re.IGNORECASE):
            found.append((text.count("\n", 0, match.start()) + 1, word))
    return sorted(found)


def main() -> int:
    wrong = 0
    terms = rows("Terms")
    names = [row[0].lower() for row in terms]
    for row in terms:
        if len(row) != 3 or not all(row):
            wrong += 1
            print(f"{GLOSSARY}: a term has a name, a meaning and what it is here: {row}")
    if names != sorted(set(names)):
        wrong += 1
        print(f"{GLOSSARY}: terms must be sorted and differ: " +
              ", ".join(name for name, other in zip(names, sorted(set(names))) if name != other))
    words = STYLE | {row[0]: row[1] for row in rows("Other names")}
    assert len(terms) > 30 and len(words) > len(STYLE)
    count = 0
    for globs, read in ((PAGES, prose), (SOURCES, comments), (HELP, strings), (HEADERS, public_names)):
        files = {path for pattern in globs for path in ROOT.glob(pattern)} - {ROOT / name for name in OLD_NAMES}
        assert files
        count += len(files)
        for path in sorted(files):
            text = path.read_text(encoding="utf-8")
            if path == ROOT / GLOSSARY:
                text = text.split("\n## Other names\n")[0]
            for line, word in find_words(read(text), words):
                wrong += 1
                print(f'{path.relative_to(ROOT)}:{line}: "{word}": say {words[word]}')
    print(f"{count} readings of files use the words of the glossary" if wrong == 0 else f"{wrong} places")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

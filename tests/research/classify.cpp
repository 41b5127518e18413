#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/research/classify.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

const JsonCall hermes = JsonCall::hermes();
const PythonCall python;

// A row of a data set: its tools, the expected calls, and correct calls.
struct Row {
  std::string id;
  ToolSet tools;
  std::vector<ExpectedCall> expected;
  std::vector<ToolCall> calls{};
};

std::vector<Json> read_rows(const std::filesystem::path& path) {
  std::vector<Json> rows;
  std::istringstream lines(test::read_text(path));
  for (std::string line; std::getline(lines, line);)
    rows.push_back(tooldecode::text::parse_json(line));
  return rows;
}

std::string message(const Verdict& verdict) {
  return std::string(name(verdict.error)) + ", " + verdict.key + verdict.pointer + ": " +
         verdict.difference;
}

// The calls with the first allowed value of each argument. The value "" means that an argument, or
// a member of an object, may be left out.
Json first_allowed(const Json& allowed, bool object_members) {
  const auto found =
      std::find_if(allowed.begin(), allowed.end(), [](const Json& value) { return value != ""; });
  if (found == allowed.end()) return nullptr;
  const auto choose = [](const Json& object) {
    Json result = Json::object();
    for (const auto& [key, choices] : object.items()) {
      Json value = first_allowed(choices, false);
      if (value.is_null() && std::count(choices.begin(), choices.end(), "") > 0) continue;
      result[key] = value;
    }
    return result;
  };
  if (!object_members) return *found;
  if (found->is_object()) return choose(*found);
  Json result = *found;
  if (result.is_array()) {
    for (Json& item : result) {
      if (item.is_object()) item = choose(item);
    }
  }
  return result;
}

Row row_with_answers(const Json& source) {
  Row row{source["id"].get<std::string>(), ToolSet::from_json(source["functions"]), {}};
  for (const Json& answer : source["answers"]) {
    row.expected.push_back(ExpectedCall::from_bfcl(answer));
    ToolCall call{answer.begin().key()};
    for (const auto& [key, allowed] : answer.front().items()) {
      if (std::all_of(allowed.begin(), allowed.end(), [](const Json& v) { return v == ""; })) {
        continue;
      }
      call.arguments[key] = first_allowed(allowed, true);
    }
    row.calls.push_back(call);
  }
  if (source.contains("call_python")) {
    row.calls = python.parse(source["call_python"].get<std::string>(), row.tools);
  }
  return row;
}

std::vector<Row> own_rows() {
  std::vector<Row> rows;
  for (const Json& source : read_rows(test::own_data("tools/classify_rows.jsonl"))) {
    rows.push_back(row_with_answers(source));
  }
  return rows;
}

constexpr const char* answered[]{
    "bfcl/simple_python.jsonl",          "bfcl/multiple.jsonl",        "bfcl/parallel.jsonl",
    "bfcl/parallel_multiple.jsonl",      "bfcl/live_simple.jsonl",     "bfcl/live_parallel.jsonl",
    "bfcl/live_parallel_multiple.jsonl", "bfcl/live_multiple.jsonl.gz"};

// Rows whose right calls are given as text, which is read with the documents.
Row row_with_text(const Json& source, const char* tools, ExpectedCall (*expect)(const Json&)) {
  Row row{source["id"].get<std::string>(), ToolSet::from_json(source[tools]), {}};
  row.calls           = python.parse(source["call_python"].get<std::string>(), row.tools);
  const Json& given   = source["call_json"];
  const auto one_call = given.is_array() ? given : Json::array({given});
  for (const Json& call : one_call) row.expected.push_back(expect(call));
  return row;
}

ExpectedCall expect_exactly(const Json& call) {
  return ExpectedCall::exactly({call["name"].get<std::string>(), call["arguments"]});
}

void check_correct(const Row& row) {
  INFO(row.id);
  for (const std::string& text : {python.write(row.calls), hermes.write(row.calls)}) {
    const bool is_python  = text[0] == '[';
    const Verdict verdict = is_python ? classify(row.expected, text, python, row.tools)
                                      : classify(row.expected, text, hermes, row.tools);
    INFO(text << "\n" << message(verdict));
    CHECK(verdict.error == ErrorClass::correct);
  }
}

const Json tools_text = tooldecode::text::parse_json(R"([
  {"name": "f", "parameters": {"type": "object", "required": ["a"], "properties":
    {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "object"}}}},
  {"name": "g", "inputSchema": {"type": "object", "properties": {"x": {"type": "array"}}}}])");

ErrorClass class_of(std::string_view expected, std::string_view text) {
  const ToolSet tools = ToolSet::from_json(tools_text);
  std::vector<ExpectedCall> calls;
  for (const ToolCall& call : python.parse(expected, tools)) {
    calls.push_back(ExpectedCall::exactly(call));
  }
  return classify(calls, text, python, tools).error;
}

}  // namespace

TEST_CASE("classify gives each output the coarsest error class that applies") {
  using enum ErrorClass;
  const struct {
    const char* expected;
    const char* text;
    ErrorClass error;
  } cases[]{
      {"[f(a=1, b='x')]", "[f(a=1, b='x')]", correct},
      {"[f(a=1, b='x')]", " [ f( b = \"x\" , a = 1.0 ) ]\n", correct},
      {"[f(a=1, b='x')]", "[f(1, 'x')]", correct},
      {"[f(a=1, c={'p': [1], 'q': None})]", "[f(a=1, c={'q': None, 'p': [1e0]})]", correct},
      {"[]", "There is no need to.", correct},
      {"[]", "[]", correct},
      {"[f(a=1)]", "Which a?", awareness},
      {"[f(a=1)]", "", awareness},
      {"[f(a=1)]", "[]", awareness},
      {"[]", "[f(a=1)]", awareness},
      {"[]", "[f(a=", awareness},
      {"[f(a=1)]", "[g(a=1)]", selection},
      {"[f(a=1)]", "[unknown(a=1)]", selection},
      {"[f(a=1)]", "[f(a=1), f(a=1)]", selection},
      {"[f(a=1), f(a=1)]", "[f(a=1)]", selection},
      {"[f(a=1), g()]", "[f(a=1), f(a=1)]", selection},
      {"[f(a=1)]", "[g(b=2, z=3)]", selection},
      {"[f(a=1)]", "[f(a=1)", format},
      {"[f(a=1)]", "[f(a=1)] done", format},
      {"[f(a=1)]", "[f(a=one)]", format},
      {"[f(a=1)]", "[f(a=true)]", format},
      {"[f(a=1)]", "[unknown(1)]", format},
      {"[f(a=1)]", "[f(a=1, b='x')]", value},
      {"[f(a=1)]", "[f(a=1, z=2)]", key},
      {"[f(a=1)]", "[f()]", key},
      {"[f(a=1)]", "[f(b='x')]", key},
      {"[f(a=1)]", "[f(a=1, a=1)]", key},
      {"[f(a=1, b='x')]", "[f(a=2)]", value},
      {"[f(a=1)]", "[f(a=2)]", value},
      {"[f(a=1)]", "[f(a='1')]", value},
      {"[f(a=1)]", "[f(a=True)]", value},
      {"[f(a=9007199254740993)]", "[f(a=9007199254740992.0)]", value},
      {"[f(a=1, b='x')]", "[f(a=1, b='X')]", value},
      {"[f(a=1, c={'p': 1})]", "[f(a=1, c={'p': 1, 'q': 2})]", value},
      {"[g(x=[1, 2])]", "[g(x=[2, 1])]", value},
      {"[g(x=[1, 2])]", "[g(x=[1])]", value},
  };
  for (const auto& [expected, text, error] : cases) {
    INFO(expected << " against " << text);
    CHECK(name(class_of(expected, text)) == name(error));
  }
}

TEST_CASE("classify matches parallel calls in any order") {
  CHECK(class_of("[f(a=1), g(), f(a=2)]", "[f(a=2), f(a=1), g()]") == ErrorClass::correct);
  CHECK(class_of("[f(a=1), f(a=2)]", "[f(a=2), f(a=3)]") == ErrorClass::value);
  CHECK(class_of("[f(a=1), f(a=2)]", "[f(a=3), f(b='x')]") == ErrorClass::key);

  // The first expected call allows two values, the second only one of them.
  const auto tools = ToolSet::from_json(tools_text);
  std::vector<ExpectedCall> expected(3, ExpectedCall{"f", {{"a", {1, 2}}}});
  expected[1].arguments[0].allowed = {1};
  expected[2].arguments[0].allowed = {2, 3};
  const std::string orders[]{"[f(a=1), f(a=2), f(a=2)]", "[f(a=1), f(a=1), f(a=2)]",
                             "[f(a=2), f(a=3), f(a=1)]", "[f(a=1), f(a=1), f(a=3)]"};
  for (const std::string& text : orders) {
    INFO(text);
    CHECK(classify(expected, text, python, tools).error == ErrorClass::correct);
  }
  const Verdict verdict = classify(expected, "[f(a=1), f(a=1), f(a=1)]", python, tools);
  CHECK(verdict.error == ErrorClass::value);
  CHECK(verdict.call == 2);
}

TEST_CASE("classify calls an output correct exactly where some order of the calls fits") {
  const auto tools = ToolSet::from_json(tools_text);
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const std::size_t n = 1 + random() % 5;
    std::vector<ExpectedCall> expected(n, ExpectedCall{"f", {{"a", {}}}});
    std::vector<ToolCall> calls(n, ToolCall{"f"});
    for (std::size_t i = 0; i < n; ++i) {
      for (int value = 0; value < 4; ++value) {
        if (random() % 2 == 0) expected[i].arguments[0].allowed.push_back(value);
      }
      calls[i].arguments["a"] = random() % 4;
    }
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    bool fits = false;
    do {
      bool all = true;
      for (std::size_t i = 0; i < n; ++i) {
        const auto& allowed = expected[order[i]].arguments[0].allowed;
        all = all && std::count(allowed.begin(), allowed.end(), calls[i].arguments["a"]) > 0;
      }
      fits = fits || all;
    } while (std::next_permutation(order.begin(), order.end()));
    CAPTURE(seed);
    CHECK((classify(expected, calls, tools).error == ErrorClass::correct) == fits);
  }
}

TEST_CASE("classify reports the call, the key and the JSON pointer of a difference") {
  const auto tools = ToolSet::from_json(tools_text);
  const auto find  = [&](std::string_view expected, std::string_view text) {
    std::vector<ExpectedCall> calls;
    for (const ToolCall& call : python.parse(expected, tools)) {
      calls.push_back(ExpectedCall::exactly(call));
    }
    return classify(calls, text, python, tools);
  };
  Verdict verdict = find("[g(), f(a=1, c={'p/q': [1, 2]})]", "[f(a=1, c={'p/q': [1, 3]}), g()]");
  CHECK(verdict.call == 0);
  CHECK(verdict.key == "c");
  CHECK(verdict.pointer == "/p~1q/1");
  CHECK(verdict.difference == R"(expected {"p/q":[1,2]}, got {"p/q":[1,3]})");
  verdict = find("[g(), f(a=1)]", "[g(), f(a=1, z=1)]");
  CHECK(verdict.call == 1);
  CHECK(verdict.key == "z");
  CHECK(verdict.difference == "an argument that the tool lacks");
  verdict = find("[f(a=1)]", "[f(a=1, b='x')]");
  CHECK(verdict.difference == "an argument that was not expected");
  verdict = find("[f(a=1)]", "[f(a=1, a=2)]");
  CHECK(verdict.key == "a");
  CHECK_THAT(find("[f(a=1)]", "[f(a=1").difference, test::contains("byte 6"));
  CHECK(find("[f(a=1)]", "[g()]").difference == R"(expected ["f"], got ["g"])");
}

TEST_CASE("classify compares values by the rules of BFCL") {
  const struct {
    const char* schema;
    const char* allowed;
    const char* given;
    bool correct;
  } cases[]{
      // Texts are compared without spaces, some delimiters, and case.
      {R"({"type": "string"})", R"(["New York, NY"])", R"("new york ny")", true},
      {R"({"type": "string"})", R"(["2023-03-20"])", R"("2023/03/20")", true},
      {R"({"type": "string"})", R"(["it's"])", R"("it\"s")", true},
      {R"({"type": "string"})", R"(["a+b"])", R"("a b")", false},
      {R"({"type": "string"})", R"(["21"])", "21", false},
      // An integer stands for a number, a number with .0 for no integer.
      {R"({"type": "float"})", "[5.0]", "5", true},
      {R"({"type": "float"})", "[5]", "5.0", true},
      {R"({"type": "integer"})", "[5]", "5.0", false},
      {R"({"type": "integer"})", "[5, 6]", "6", true},
      {R"({"type": "integer"})", "[100000000000000000001]", "100000000000000000001", true},
      {R"({"type": "integer"})", "[100000000000000000001]", "200000000000000000001", false},
      {R"({"type": "integer"})", "[1]", "true", false},
      {R"({"type": "boolean"})", "[true]", "1", false},
      // Lists item by item, with items of the document's type or the answer's.
      {R"({"type": "array", "items": {"type": "string"}})", R"([["A b", "C"]])", R"(["ab", "c"])",
       true},
      {R"({"type": "array", "items": {"type": "string"}})", R"([["a", "b"]])", R"(["b", "a"])",
       false},
      {R"({"type": "array", "items": {"type": "float"}})", "[[1.5, 2]]", "[1.5, 2.0]", true},
      {R"({"type": "array", "items": {"type": "float"}})", "[[1.0, 2.0]]", "[1, 2]", false},
      {R"({"type": "array", "items": {"type": "float"}})", "[[1, 2]]", "[1, 2]", true},
      {R"({"type": "tuple", "items": {"type": "integer"}})", "[[1, 2]]", "[1, 2]", true},
      {R"({"type": "array", "items": {"type": "integer"}})", "[[]]", "[]", true},
      {R"({"type": "array", "items": {"type": "integer"}})", R"([[3], ""])", "[]", true},
      {R"({"type": "array", "items": {"type": "integer"}})", "[]", "[]", true},
      {R"({"type": "array", "items": {"type": "integer"}})", "[]", "[1]", false},
      // Objects have lists of allowed values for their members.
      {R"({"type": "dict"})", R"([{"p": [1, 2], "q": ["x", ""]}])", R"({"p": 2})", true},
      {R"({"type": "dict"})", R"([{"p": [1, 2], "q": ["x", ""]}])", R"({"q": "X", "p": 1})", true},
      {R"({"type": "dict"})", R"([{"p": [1, 2], "q": ["x", ""]}])", R"({"q": "x"})", false},
      {R"({"type": "dict"})", R"([{"p": [1, 2]}])", R"({"p": 1, "r": 1})", false},
      {R"({"type": "dict"})", R"([{"p": [1]}, {"p": [2]}])", R"({"p": 2})", true},
      {R"({"type": "array", "items": {"type": "dict"}})", R"([[{"p": ["A"]}, {"p": ["b"]}]])",
       R"([{"p": "a"}, {"p": "B"}])", true},
      {R"({"type": "array", "items": {"type": "dict"}})", R"([[{"p": ["A"]}, {"p": ["b"]}]])",
       R"([{"p": "a"}])", false},
      // An answer of another type than the document's is the name of a variable.
      {R"({"type": "integer"})", R"(["row_count", ""])", R"("row_count")", true},
      {R"({"type": "integer"})", R"(["row_count", ""])", R"("Row Count")", false},
      {R"({"type": "any"})", R"(["data['x']"])", R"("data[\"X\"]")", true},
      {R"({"type": "any"})", "[3]", "3", true},
      // null where the document has another type.
      {R"({"type": "string"})", R"([null, "x"])", "null", true},
      {R"({"type": "string"})", R"(["x", null])", "null", false},
  };
  for (const auto& [schema, allowed, given, correct] : cases) {
    const Json document{
        {"name", "f"},
        {"parameters",
         {{"type", "dict"}, {"properties", {{"a", tooldecode::text::parse_json(schema)}}}}}};
    const auto tools = ToolSet::from_json(document);
    const auto expected =
        ExpectedCall::from_bfcl({{"f", {{"a", tooldecode::text::parse_json(allowed)}}}});
    ToolCall call{"f"};
    call.arguments["a"]   = tooldecode::text::parse_json(given);
    const Verdict verdict = classify({&expected, 1}, std::vector{call}, tools);
    INFO(schema << " allows " << allowed << ", given " << given << "; " << message(verdict));
    CHECK(verdict.error == (correct ? ErrorClass::correct : ErrorClass::value));
  }
}

TEST_CASE("classify treats optional arguments by the rules of BFCL") {
  const auto tools = ToolSet::parse(R"({"name": "f", "parameters": {"type": "dict", "properties":
    {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}})");
  const auto error = [&](const char* answer, const char* text) {
    const auto expected = ExpectedCall::from_bfcl(tooldecode::text::parse_json(answer));
    return classify({&expected, 1}, text, python, tools).error;
  };
  CHECK(error(R"({"f": {"a": ["x"], "b": [1, ""]}})", "[f(a='x')]") == ErrorClass::correct);
  CHECK(error(R"({"f": {"a": ["x"], "b": [1]}})", "[f(a='x')]") == ErrorClass::value);
  CHECK(error(R"({"f": {"a": ["x", ""], "b": [1, ""]}})", "[f(b=1)]") == ErrorClass::key);
  CHECK(error(R"({"f": {"a": ["x"]}})", "[f(a='x', b=1)]") == ErrorClass::value);
  CHECK(error(R"({"f": {"a": ["x"]}})", "[f(b=1)]") == ErrorClass::key);
  CHECK(error(R"({"f": {"a": ["x"]}})", "[f(a='x', z=1, b=1)]") == ErrorClass::key);
  CHECK(error(R"({"f": {"a": ["x"], "c": [1]}})", "[f(a='x', c=1)]") == ErrorClass::correct);
  for (const char* answer :
       {"[]", "{}", R"({"f": 1})", R"({"f": {}, "g": {}})", R"({"f": {"a": 1}})"}) {
    INFO(answer);
    CHECK_THROWS_AS(ExpectedCall::from_bfcl(tooldecode::text::parse_json(answer)), Error);
  }
}

TEST_CASE("classify calls the answers to BFCL's questions correct", "[published]") {
  for (const Row& row : own_rows()) check_correct(row);
  for (const char* file : answered) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const Json& source : read_rows(path)) {
      Row row = row_with_answers(source);
      check_correct(row);
      std::reverse(row.calls.begin(), row.calls.end());
      check_correct(row);
      if (source.contains("call_python_valid")) {
        row.calls = python.parse(source["call_python_valid"].get<std::string>(), row.tools);
        check_correct(row);
      }
    }
  }
}

TEST_CASE("classify calls every value that BFCL allows correct", "[published]") {
  std::size_t values = 0;
  const auto check   = [&](const Json& source) {
    const Row row = row_with_answers(source);
    for (std::size_t i = 0; i < row.expected.size(); ++i) {
      for (const ExpectedArgument& argument : row.expected[i].arguments) {
        for (const Json& allowed : argument.allowed) {
          Row changed = row;
          if (allowed != "") {
            changed.calls[i].arguments[argument.key] = first_allowed(Json::array({allowed}), true);
          } else {
            changed.calls[i].arguments.erase(argument.key);
            const auto& tool    = row.tools[*row.tools.find(row.calls[i].name)];
            const auto required = required_names(tool);
            if (std::count(required.begin(), required.end(), argument.key) > 0) continue;
          }
          ++values;
          check_correct(changed);
        }
      }
    }
  };
  for (const Json& source : read_rows(test::own_data("tools/classify_rows.jsonl"))) check(source);
  CHECK(values >= 25);
  for (const char* file : answered) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const Json& source : read_rows(path)) check(source);
  }
  CHECK(values > 6000);
}

TEST_CASE("classify calls the calls of BFCL's executable rows correct") {
  TOOLDECODE_REQUIRE_SHARED(path, "bfcl/exec.jsonl");
  std::size_t rows = 0;
  for (const Json& source : read_rows(path)) {
    if (source["call_json"].is_null()) continue;  // a value is an expression, such as 1/6
    check_correct(row_with_text(source, "functions", expect_exactly));
    ++rows;
  }
  CHECK(rows > 100);
}

TEST_CASE("classify calls API-Bank's calls correct, as texts and as typed values") {
  for (const char* file : {"apibank/level1.jsonl", "apibank/level2.jsonl"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const Json& source : read_rows(path)) {
      Row row = row_with_text(source, "apis", expect_exactly);
      // The values are all texts in call_python, and typed in call_json.
      const auto texts = row.calls;
      row.calls        = {{source["call_json"]["name"].string(), source["call_json"]["arguments"]}};
      check_correct(row);
      row.expected = {ExpectedCall::exactly(texts.front())};
      row.calls    = texts;
      check_correct(row);
    }
  }
}

TEST_CASE("classify calls BFCL's calls of several turns correct") {
  TOOLDECODE_REQUIRE_SHARED(path, "bfcl/multi_turn_calls.jsonl");
  TOOLDECODE_REQUIRE_SHARED(functions, "bfcl/multi_turn_functions.jsonl");
  Json documents = Json::array();
  std::set<std::string> names;
  for (const Json& function : read_rows(functions)) {
    if (names.insert(function["name"].string()).second) documents.push_back(function);
  }
  const auto tools = ToolSet::from_json(documents);
  for (const Json& source : read_rows(path)) {
    for (const Json& turn : source["calls_python"]) {
      std::string text;
      Row row{source["id"].string(), tools, {}};
      for (const Json& call : turn) {
        const auto parsed = python.parse('[' + call.get<std::string>() + ']', tools);
        row.calls.push_back(parsed.at(0));
        row.expected.insert(row.expected.begin(), ExpectedCall::exactly(parsed.at(0)));
        text += (text.empty() ? "" : ", ") + call.get<std::string>();
      }
      check_correct(row);
      INFO(text);
      CHECK(classify(row.expected, '[' + text + ']', python, tools).error == ErrorClass::correct);
    }
  }
}

namespace {

// Random changes to correct calls, each of one class whatever else the row allows.
class Mutator {
 public:
  Mutator(const Row& row, unsigned seed)
      : row_(row), random_(seed), calls_(row.calls), is_python_(seed % 2 == 0) {}

  std::string text(ErrorClass error) {
    switch (error) {
      case ErrorClass::awareness:
        if (row_.calls.empty()) return write({call_to_any_tool()});
        return pick<std::string>({"", "I need to know more first.", "(f())", "\n", "{}"});
      case ErrorClass::selection:
        return write(other_selection());
      case ErrorClass::format:
        return broken(write(calls_));
      case ErrorClass::key:
        return other_keys();
      default:
        other_value();
        return write(calls_);
    }
  }
  [[nodiscard]] Verdict classified(std::string_view text) const {
    return is_python_ ? classify(row_.expected, text, python, row_.tools)
                      : classify(row_.expected, text, hermes, row_.tools);
  }
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  template <class T>
  T pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  [[nodiscard]] std::string write(const std::vector<ToolCall>& calls) const {
    return is_python_ ? python.write(calls) : hermes.write(calls);
  }
  std::string word() {
    std::string result = "qz";
    for (int i = 0; i < 6; ++i) result += static_cast<char>('a' + below(26));
    return result;
  }

  ToolCall call_to_any_tool() {
    ToolCall call{row_.tools.empty() ? word() : row_.tools[below(row_.tools.size())].name};
    if (below(2) == 0) call.arguments[word()] = 1;
    return call;
  }
  std::vector<ToolCall> other_selection() {
    auto calls = calls_;
    switch (below(4)) {
      case 0:
        calls[below(calls.size())].name = word();
        return calls;
      case 1:
        calls.push_back(pick(calls));
        return calls;
      case 2:
        if (calls.size() > 1) {
          calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(below(calls.size())));
          return calls;
        }
        [[fallthrough]];
      default:
        std::set<std::string> names;
        for (const ToolCall& call : calls) names.insert(call.name);
        for (const Tool& tool : row_.tools) {
          if (names.contains(tool.name)) continue;
          calls[below(calls.size())].name = tool.name;
          return calls;
        }
        calls.back().name += "_2";
        return calls;
    }
  }
  std::string broken(std::string text) {
    if (!is_python_) {
      const std::string_view close = "</tool_call>";
      switch (below(3)) {
        case 0:  // cut off, with the opening delimiter left whole
          return text.substr(0, 12 + below(text.size() - 12 - close.size()));
        case 1:
          return text + " that was it";
        default:
          return text.insert(text.find("\"name\""), ",");
      }
    }
    switch (below(4)) {
      case 0:
        return text.substr(0, 1 + below(text.size() - 1));
      case 1:
        return text + " that was it";
      case 2:
        return text.insert(text.rfind(')'), "(");
      default:
        return text.insert(text.find('(') + 1, "qz=yes, ");
    }
  }
  // Arguments that the document requires or does not know.
  [[nodiscard]] std::vector<std::string> required_of(const ToolCall& call) const {
    std::vector<std::string> names, known;
    if (const auto tool = row_.tools.find(call.name)) {
      names = required_names(row_.tools[*tool]);
      known = argument_names(row_.tools[*tool]);
    }
    for (const auto& [key, value] : call.arguments.items()) {
      if (std::count(known.begin(), known.end(), key) == 0) names.push_back(key);
    }
    return names;
  }
  std::string other_keys() {
    const std::size_t chosen        = below(calls_.size());
    Json& arguments                 = calls_[chosen].arguments;
    std::vector<std::string> needed = required_of(calls_[chosen]), given;
    std::erase_if(needed, [&](const std::string& key) { return !arguments.contains(key); });
    for (const auto& [key, value] : arguments.items()) given.push_back(key);
    const std::size_t kind = below(4);
    if (kind == 0 && !needed.empty()) {
      key_ = pick(needed);
      arguments.erase(key_);
    } else if (kind == 1 && !given.empty()) {
      const std::string old = pick(given);
      key_                  = old + "_2";
      arguments[key_]       = Json(arguments[old]);  // a copy, because the new key moves the values
      arguments.erase(old);
    } else if (kind == 2 && !given.empty() && is_python_) {
      key_              = given.front();
      std::string text  = write({calls_[chosen]});
      const auto repeat = ", " + key_ + "=" + text::write_python_literal(arguments[key_]);
      text.insert(text.size() - 2, repeat);
      calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(chosen));
      std::string rest = write(calls_);
      return text.substr(0, text.size() - 1) + (calls_.empty() ? "]" : ", " + rest.substr(1));
    } else {
      key_            = word();
      arguments[key_] = 1;
    }
    return write(calls_);
  }
  void other_value() {
    std::vector<std::pair<std::size_t, std::string>> places;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      for (const auto& [key, value] : calls_[i].arguments.items()) places.emplace_back(i, key);
    }
    const auto [call, key] = pick(places);
    key_                   = key;
    // An optional argument that the answer has may also be left out.
    const auto& expected = row_.expected[call].arguments;
    const auto needed    = required_of(calls_[call]);
    const bool is_free =
        std::none_of(expected.begin(), expected.end(),
                     [&, &k = key](const auto& a) { return a.key == k && a.optional; });
    if (is_free && std::count(needed.begin(), needed.end(), key) == 0 && below(3) == 0) {
      calls_[call].arguments.erase(key);
    } else {
      change(calls_[call].arguments[key]);
    }
  }
  void change(Json& value) {
    if (below(4) == 0 || value.is_null() || value.is_boolean()) {
      value = value.is_string() ? Json(7'000'000 + below(1'000'000)) : Json(word());
    } else if (value.is_string()) {
      value = below(2) == 0 ? word() : value.get<std::string>() + word();
    } else if (value.is_number_integer()) {
      value = value.get<std::int64_t>() + 7'000'000 + static_cast<std::int64_t>(below(1'000'000));
    } else if (value.is_number()) {
      value = value.get<double>() + 7'000'000.5 + static_cast<double>(below(1'000'000));
    } else if (value.empty() || below(2) == 0) {
      if (value.is_array()) {
        value.push_back(value.empty() ? Json(word()) : value.back());
        change(value.back());
      } else {
        value[word()] = 1;
      }
    } else if (value.is_array()) {
      change(value[below(value.size())]);
    } else {
      change(std::next(value.begin(), static_cast<std::ptrdiff_t>(below(value.size()))).value());
    }
  }

  const Row& row_;
  std::mt19937 random_;
  std::vector<ToolCall> calls_;
  bool is_python_;
  std::string key_;
};

bool has_argument(const Row& row) {
  return std::any_of(row.calls.begin(), row.calls.end(),
                     [](const ToolCall& call) { return !call.arguments.empty(); });
}

void check_mutations(const std::vector<Row>& rows, unsigned rounds) {
  using enum ErrorClass;
  std::map<ErrorClass, std::size_t> counts;
  unsigned seed = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (const Row& row : rows) {
      for (const ErrorClass error : {awareness, selection, format, key, value}) {
        if (row.calls.empty() && error != awareness) continue;
        if (error == value && !has_argument(row)) continue;
        Mutator mutator(row, ++seed);
        const std::string text = mutator.text(error);
        const Verdict verdict  = mutator.classified(text);
        INFO(row.id << " seed " << seed << ", " << name(error) << ": " << text << "\n"
                    << message(verdict));
        CHECK(name(verdict.error) == name(error));
        if (row.calls.size() == 1 && (error == key || error == value)) {
          CHECK(verdict.key == mutator.key());
        }
        ++counts[error];
      }
    }
  }
  for (const ErrorClass error : {awareness, selection, format, key, value}) {
    CHECK(counts[error] >= 200);
  }
}

}  // namespace

TEST_CASE("classify gives a mutated call exactly the class of its mutation", "[published]") {
  check_mutations(own_rows(), 50);
  std::vector<Row> rows;
  for (const char* file : answered) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const Json& source : read_rows(path)) {
      rows.push_back(row_with_answers(source));
    }
  }
  for (const char* file : {"bfcl/irrelevance.jsonl", "bfcl/live_irrelevance.jsonl.gz"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const Json& source : read_rows(path)) {
      rows.push_back({source["id"].string(), ToolSet::from_json(source["functions"]), {}});
    }
  }
  for (const char* file : {"apibank/level1.jsonl", "apibank/level2.jsonl"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const Json& source : read_rows(path)) {
      rows.push_back(row_with_text(source, "apis", expect_exactly));
      rows.back().expected = {ExpectedCall::exactly(rows.back().calls.front())};
    }
  }
  check_mutations(rows, 2);
}

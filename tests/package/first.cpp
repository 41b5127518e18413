// Code that guides show beside the examples, in functions that run.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/constrain.hpp>
#include <tooldecode/core/thread_pool.hpp>

namespace td = tooldecode;

const void* address_seen_by_second();

namespace {

td::Vocabulary bytes() {
  std::vector<td::Vocabulary::Entry> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back({std::string(1, static_cast<char>(byte))});
  }
  tokens.push_back({"<end>", td::TokenType::control});
  return td::Vocabulary{tokens, {.end_tokens = {256}}};
}

td::ToolSet some_tools() {
  return td::ToolSet::parse(R"([{"name": "first", "parameters": {"type": "object"}},
                                {"name": "second", "parameters": {"type": "object"}}])");
}

// Whether the machine takes this text.
bool takes(const td::ToolCallFSM& calls, const std::string& text) {
  return !calls.find_refusal(text);
}

bool link() {
  const td::Vocabulary vocabulary = bytes();
  const td::ToolSet tools         = some_tools();
  //! [library]
  const td::VocabularyIndex index{vocabulary};  // one per vocabulary, for everything over it
  const td::ToolLibrary library{index, td::JsonCall::hermes()};
  const td::ToolSet changed = tools.with(1, td::parse_json_value(R"(
      {"name": "third", "parameters": {"type": "object"}})"));  // shares the other tools
  const td::ToolCallFSM request = library.machine(changed, td::ToolChoice::required);
  //! [library]
  return takes(request, library.machine(changed, {}).write(std::vector{td::ToolCall{"third"}})) &&
         !takes(request, "third");
}

bool reset() {
  const td::ToolCallFSM calls{bytes(), some_tools(), td::PythonCall{}};
  //! [memory]
  td::ToolCallFSM text = calls;  // per text: shares what is built
  text.reset();  // new memory, once the old is over the budget of its VocabularyIndex
  std::vector<td::ToolCallFSM::State> live{text.initial()};
  text.compact(live);  // or within texts: these states move to new memory, all others are given up
  //! [memory]
  return text.advance_bytes(live[0], "[first(").has_value();
}

bool stream() {
  const td::ToolSet tools = td::ToolSet::parse(R"([{"name": "first", "parameters": {
      "type": "object", "properties": {"a": {"type": "integer"}}}}])");
  const td::ToolCallFSM calls{bytes(), tools, td::PythonCall{}};
  const std::string text = "[first(a=1)]";
  const std::vector<td::TokenId> tokens(text.begin(), text.end());
  std::string shown;
  const auto show = [&](const std::string& part) { shown += part; };
  //! [stream]
  td::CallStream answer{calls};
  for (const td::TokenId token : tokens) {  // as the model writes them
    for (const td::StreamEvent& event : answer.push(token)) {
      if (event.kind == td::StreamEvent::Kind::call_begin) show("call to " + event.text + ": ");
      if (event.kind == td::StreamEvent::Kind::arguments) show(event.text);  // JSON
    }
  }
  //! [stream]
  return shown == "call to first: {\"a\": 1}";
}

bool batch() {
  const td::Vocabulary vocabulary = bytes();
  const td::ToolCallFSM calls{vocabulary, some_tools(), td::PythonCall{}};
  const auto open = calls.advance_bytes(calls.initial(), "[");
  //! [batch]
  const std::size_t words = td::mask_word_count(vocabulary.size());  // 32 tokens in each
  const std::vector<td::ToolCallFSM::State> states{calls.initial(), *open};
  std::vector<std::int32_t> masks(states.size() * words);  // [B, ceil(V / 32)]
  td::fill_masks(calls, states, masks);
  //! [batch]

  //! [prepare]
  td::ThreadPool idle(1);
  idle.submit([calls] { (void)calls.prepare(calls.initial()); });
  //! [prepare]

  //! [tree]
  const std::vector<std::size_t> parents{0, 0, 1};        // of each node; node 0 is the root
  const std::vector<td::TokenId> drafted{'[', 'f', '!'};  // the root's own token is not read
  std::vector<std::int32_t> tree(drafted.size() * words);
  const auto nodes = td::fill_masks(calls, {*open, parents, drafted}, tree);
  // nodes[1] is a state; nodes[2] is none, for no name has a '!', and its mask is zeros
  //! [tree]
  return td::ConstMaskView(std::span(masks).subspan(words)).contains('f') && nodes[1] && !nodes[2];
}

}  // namespace

int main() {
  std::cout << "tooldecode " << tooldecode::version << '\n';
  return ::address_seen_by_second() == &tooldecode::version && link() && reset() && stream() &&
                 batch()
             ? 0
             : 1;
}

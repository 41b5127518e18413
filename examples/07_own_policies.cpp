// Your own constraint, drafter and acceptance rule, and TokenTrie and TreeVerifier without
// a Decoder.
//
// Each policy is a type with a few members. If one is missing, the compiler names it in one sentence
// with the line to write.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/speculate.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

namespace td = tooldecode;

//! [constraint]
// A ConstraintPolicy: `count` tokens that write digits, then an end token.
class Digits {
 public:
  struct State {
    std::uint32_t written                              = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  Digits(const td::Vocabulary& vocabulary, std::uint32_t count)
      : vocabulary_(&vocabulary), count_(count) {}

  std::size_t vocabulary_size() const { return vocabulary_->size(); }
  State initial() const { return {}; }
  std::optional<State> advance(State state, td::TokenId token) const {
    if (vocabulary_->is_end(token)) {
      return is_accepting(state) ? std::optional(State{count_ + 1}) : std::nullopt;
    }
    return state.written < count_ && is_digit(token) ? std::optional(State{state.written + 1})
                                                     : std::nullopt;
  }
  // Allows exactly the tokens that `advance` accepts.
  void fill_mask(State state, td::MaskView words) const {
    words.clear();
    for (td::TokenId token = 0; static_cast<std::size_t>(token) < vocabulary_size(); ++token) {
      if (advance(state, token)) words.insert(token);
    }
  }
  bool is_accepting(State state) const { return state.written >= count_; }
  bool is_finished(State state) const { return state.written > count_; }
  std::string jump_forward(State) const { return {}; }  // nothing is certain before it is written

 private:
  bool is_digit(td::TokenId token) const {
    const std::string_view bytes = vocabulary_->bytes(token);
    return bytes.size() == 1 && bytes[0] >= '0' && bytes[0] <= '9';
  }

  const td::Vocabulary* vocabulary_;
  std::uint32_t count_;
};
//! [constraint]

//! [drafter]
// A Drafter: guesses what followed the last token where the prompt had it before.
struct Echo {
  static constexpr bool reads_hidden = false;  // it needs no hidden states of the target
  struct Request {};                           // it remembers nothing of a request

  Request begin(std::span<const td::TokenId>) const { return {}; }
  std::size_t budget() const { return 4; }      // tokens of a draft
  double min_probability() const { return 0; }  // of a draft that is verified
  template <td::ConstraintPolicy C>
  void propose(Request&, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    for (std::size_t at = 0; at + 1 < context.prompt.size(); ++at) {
      if (context.prompt[at] != context.root()) continue;
      std::optional<std::size_t> node = 0;  // the root; a child that is forbidden is no node
      for (std::size_t next = at + 1; node && next < context.prompt.size(); ++next) {
        node = candidates.add_free(*node, context.prompt[next], std::log(0.5F));
      }
    }
  }
};
//! [drafter]

//! [rule]
// An AcceptanceRule: takes the first child that the target gives at least this probability, else
// draws. It accepts more drafts and changes the distribution.
struct AtLeast {
  static constexpr bool is_lossless                 = false;
  static constexpr bool needs_proposal_distribution = false;
  double probability                                = 0.1;

  template <class Noise>
  std::optional<td::TokenId> choose(const td::TargetDistribution& target, const td::DraftTree& tree,
                                    std::size_t node, Noise& noise) const {
    std::vector<double> probabilities(target.logits.size());
    target.fill_probabilities(probabilities);
    for (const td::TokenId child : tree.children(node)) {
      if (probabilities[static_cast<std::size_t>(child)] >= probability) return child;
    }
    return noise.draw(target);
  }
};
//! [rule]

namespace {

void run(const std::filesystem::path& directory) {
  const auto model                 = td::LlamaModel::load(directory);
  const td::Tokenizer tokenizer    = td::load_tokenizer(directory);
  const td::Vocabulary& vocabulary = tokenizer.vocabulary();
  const auto prompt                = tokenizer.encode(
      "<|begin|><|tools|>format: python\n"
                     "book_hotel(city: string, nights: integer): Book a hotel room.\n"
                     "find_hotel(city: string): Find a hotel.\n"
                     "<|user|>Please book a hotel in Lisbon for three nights.<|assistant|>",
      {.parse_special = true});
  const td::ToolSet tools = td::ToolSet::parse(R"([
    {"name": "book_hotel", "parameters": {"type": "object", "properties": {
       "city": {"type": "string"}, "nights": {"type": "integer"}}, "required": ["city", "nights"]}},
    {"name": "find_hotel", "parameters": {"type": "object", "properties": {
       "city": {"type": "string"}}, "required": ["city"]}}])");
  const td::DecodeOptions options{.max_tokens = 40, .temperature = 0.5F, .seed = 5};

  //! [use]
  const Digits digits{vocabulary, 4};
  const td::ToolCallFSM calls{vocabulary, tools, td::PythonCall{}};
  const td::TreeSpeculation echo{Echo{}};
  const td::TreeSpeculation lenient{Echo{}, td::TreeVerifier{AtLeast{0.05}}};
  const auto show = [&](std::string_view what, const td::Output& out) {
    std::cout << what << tokenizer.decode(out.tokens) << " in " << out.passes << " passes\n";
  };
  show("constraint  ", td::Decoder{model, digits}(prompt, options));
  show("no drafter  ", td::Decoder{model, calls}(prompt, options));
  show("drafter     ", td::Decoder{model, calls, echo}(prompt, options));
  show("and a rule  ", td::Decoder{model, calls, lenient}(prompt, options));
  //! [use]

  //! [trie]
  const std::vector<std::string> names{"book_hotel", "find_hotel"};
  const td::TokenTrie trie{vocabulary, names,
                           [&](std::string_view name) { return tokenizer.encode(name); }};
  std::vector<td::TokenId> opened = prompt;
  for (const td::TokenId token : tokenizer.encode("[")) opened.push_back(token);
  const td::Output name = td::Decoder{model, trie}(opened);
  //! [trie]
  show("trie        ", name);

  //! [verifier]
  // An engine's own loop: one pass over a tree, then the verifier. The greedy choice here.
  auto cache = model.make_cache();
  std::vector<float> logits(model.vocabulary_size());
  model.forward(cache, prompt, logits);
  const td::TokenId root = *td::find_greedy(logits);
  td::DraftTree tree(root);  // node 0 is a token that is emitted and not read
  const std::vector<td::TokenId> guess = tokenizer.encode("[book_hotel(city=\"Lisbon\")]");
  for (std::size_t i = 1, node = 0; i < guess.size(); ++i) node = tree.add(node, guess[i]);

  std::vector<float> rows(tree.size() * model.vocabulary_size());  // [N, V]
  model.forward_tree(cache, tree.tokens(), tree.ancestors(), rows);
  const auto row_of = [&](std::size_t node) {
    return std::span(rows).subspan(node * model.vocabulary_size(), model.vocabulary_size());
  };
  const td::TreeVerifier verify;  // td::GumbelCoupling: the tokens of plain decoding
  const td::TreeVerdict verdict =
      verify(tree, row_of, {.seed = 5, .position = prompt.size() + 1}, 0);
  std::vector<std::size_t> kept{0};  // the path that stays in the cache
  kept.insert(kept.end(), verdict.path.begin(), verdict.path.end());
  model.commit(cache, kept);
  //! [verifier]
  std::cout << "verifier    " << verdict.path.size() << " of " << tree.size() - 1
            << " drafts accepted, then " << vocabulary.bytes(*verdict.token) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/tiny");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "07_own_policies: " << error.what() << '\n';
    return 1;
  }
}

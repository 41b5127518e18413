// Runs the decoder over your own model: bytes, each guessed from the byte before it.
//
// Adds: a type that satisfies td::Model. It has counted the bytes of a few calls. Its plain answers
// are not calls; under the constraint it calls existing tools with conforming arguments.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/decode.hpp>

namespace td = tooldecode;

namespace {
constexpr td::TokenId end_token   = 256;
constexpr std::size_t token_count = 257;
constexpr float never             = 1e-9F;  // count of a pair that never occurred

//! [model]
class Bigrams {
 public:
  using Cache = std::vector<td::TokenId>;  // what a request changes: here the tokens that were read
  void count(const std::string& text) {
    td::TokenId before = end_token;
    for (const char c : text) {
      const td::TokenId byte = static_cast<unsigned char>(c);
      counts_[{std::exchange(before, byte), byte}] += 1;
    }
    counts_[{before, end_token}] += 1;
  }
  std::size_t vocabulary_size() const { return token_count; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache& cache) const { return cache.size(); }
  Cache fork(const Cache& cache) const { return cache; }
  void truncate(Cache& cache, std::size_t length) const { cache.resize(length); }

  // Appends the tokens [L] and writes the logits [V] after the last one.
  void forward(Cache& cache, std::span<const td::TokenId> tokens, std::span<float> logits) const {
    cache.insert(cache.end(), tokens.begin(), tokens.end());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const auto known = counts_.find({cache.back(), static_cast<td::TokenId>(i)});
      logits[i]        = std::log(known == counts_.end() ? never : known->second);
    }
  }

 private:
  std::map<std::pair<td::TokenId, td::TokenId>, float> counts_;
};
//! [model]

void run() {
  Bigrams model;
  for (const char* text :
       {R"([get_weather(city="Lisbon", days=2)])", R"([book_table(guests=4)])",
        R"([get_weather(city="Oslo")])", R"([book_table(guests=2, outside=True)])"})
    model.count(text);

  std::vector<td::Vocabulary::Entry> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({std::string(1, static_cast<char>(byte))});
  tokens.push_back({"<end>", td::TokenType::control});
  const td::Vocabulary vocabulary{tokens, {.end_tokens = {end_token}}};
  const td::ToolSet tools = td::ToolSet::parse(R"([
    {"name": "get_weather", "parameters": {"type": "object", "properties": {
       "city": {"enum": ["Lisbon", "Oslo"]}, "days": {"type": "integer"}}, "required": ["city"]}},
    {"name": "book_table", "parameters": {"type": "object", "properties": {
       "guests": {"type": "integer"}, "outside": {"type": "boolean"}}, "required": ["guests"]}}])");

  const std::vector<td::TokenId> prompt{end_token};
  const td::Unconstrained anything{token_count, {end_token}};
  const td::ToolCallFSM calls{
      vocabulary, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const td::Decoder plain{model, anything};
  const td::Decoder constrained{model, calls};
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const td::DecodeOptions options{
        .max_tokens = 60, .temperature = 1, .seed = seed, .always_ends = true};
    std::cout << "plain        " << vocabulary.decode(plain(prompt, options).tokens) << '\n'
              << "constrained  " << vocabulary.decode(constrained(prompt, options).tokens) << '\n';
  }
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "06_own_model: " << error.what() << '\n';
    return 1;
  }
}

/// \file
/// Shared by the fuzz targets: demands on the library, and walks through its automata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>

namespace tooldecode::fuzz {

/// Whether texts of schemas are compared with the slow validator, which computes with doubles and
/// knows few drafts. In unlimited fuzzing it finds more faults in itself than in the library.
inline bool judges_schemas = true;

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};  // NOLINT: bytes as chars
}

/// Reports a finding if a condition does not hold: no target expects this exception.
inline void demand(bool holds, std::string_view what, std::string_view text) {
  if (!holds) throw std::logic_error(std::string(what) + ": " + std::string(text));
}

/// The result of reading a text that must be readable.
template <class Read>
auto must_read(std::string_view text, Read read) {
  try {
    return read(text);
  } catch (const Error& error) {
    throw std::logic_error(std::string(error.what()) + ": " + std::string(text));
  }
}

inline std::uint32_t seed_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
  return hash;
}

/// States with more positions are abandoned, because their number may grow fast with the text's
/// length in hostile grammars.
inline constexpr std::size_t max_positions = 200;

/// A random text that an automaton accepts; nothing if none was found within `max` bytes. Demands
/// that steps and allowed bytes agree, and that no state is a dead end.
inline std::optional<std::string> random_text(const grammar::Automaton& automaton,
                                              std::mt19937& random, std::size_t max = 200) {
  auto state = automaton.initial();
  std::string text;
  while (true) {
    std::vector<std::uint8_t> bytes, closing;
    automaton.allowed(state).for_each([&](std::uint8_t byte) {
      bytes.push_back(byte);
      const bool closes =
          std::string_view("\"')]}").find(static_cast<char>(byte)) != std::string_view::npos;
      if (closes) closing.push_back(byte);
    });
    const bool accepting = automaton.is_accepting(state);
    demand(accepting || !bytes.empty(), "a dead end", text);
    if (accepting && (bytes.empty() || random() % 3 == 0)) return text;
    if (automaton.positions(state).size() > max_positions) return std::nullopt;
    if (text.size() >= max) return accepting ? std::optional(text) : std::nullopt;
    const auto other = static_cast<std::uint8_t>(random());
    demand(automaton.step(state, other).has_value() == automaton.allowed(state).contains(other),
           "steps and allowed bytes differ after", text);
    if (!closing.empty() && random() % 2 == 0) bytes = closing;
    const std::uint8_t byte = bytes[random() % bytes.size()];
    const auto next         = automaton.step(state, byte);
    demand(next.has_value(), "an allowed byte is refused after", text);
    text.push_back(static_cast<char>(byte));
    state = *next;
  }
}

}  // namespace tooldecode::fuzz

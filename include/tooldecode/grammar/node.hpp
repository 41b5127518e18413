/// \file
/// BasicNode: a node of a grammar, of one of ten kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/grammar/keys_together.hpp>
#include <tooldecode/text/dfa_pointer.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/value_syntax.hpp>

namespace tooldecode::text {
class DfaUnits;
}  // namespace tooldecode::text

namespace tooldecode::grammar {

/// A node of one Grammar, or of a NodeStore, which numbers nodes across grammars: a value of one of
/// the kinds below. No text is a choice of nothing; the empty text is a sequence of nothing.
template <class Id, class OtherKeys>
class BasicNode {
 public:
  struct Literal {
    std::string text;
    friend bool operator==(const Literal&, const Literal&) = default;
  };
  /// The texts of a Dfa.
  struct Lexeme {
    text::DfaPointer dfa;
    text::Occurrences units{};
    std::shared_ptr<const text::DfaUnits> ends{};  ///< set if the bounds alone would allow texts
                                                   ///< that no end within them follows
    friend bool operator==(const Lexeme& a, const Lexeme& b) {
      return a.dfa == b.dfa && a.units == b.units && (a.ends == nullptr) == (b.ends == nullptr);
    }
  };
  struct Sequence {
    std::vector<Id> children;
    friend bool operator==(const Sequence&, const Sequence&) = default;
  };
  struct Choice {
    std::vector<Id> children;
    friend bool operator==(const Choice&, const Choice&) = default;
  };
  /// An item several times, with a separator.
  struct Repeat {
    Id item, separator;
    text::Occurrences count;
    friend bool operator==(const Repeat&, const Repeat&) = default;
  };
  /// One of many literals, each with its own child. The values of the trie are indices of children.
  struct Trie {
    std::shared_ptr<const core::ByteTrie> literals;
    std::vector<Id> children;
    friend bool operator==(const Trie& a, const Trie& b) {
      return a.children == b.children && (a.literals == b.literals || *a.literals == *b.literals);
    }
  };
  /// A KeyedSet: a trie of the members' keys, one child for each member, and the rules.
  struct Members : Trie {
    std::vector<OtherKeys> others{};
    Id separator{};
    text::Occurrences count{};
    std::vector<std::uint64_t> required{};  ///< bit set of the members
    std::vector<std::pair<std::uint32_t, std::uint32_t>> dependent{};
    std::vector<KeysTogether<std::uint32_t>> together{};
    std::uint32_t leading = 0;
    /// Of nodes that NodeStore imported: the trie's nodes where keys end, ascending by key, and for
    /// each node the index of the first key that ends there or below.
    std::vector<core::ByteTrie::NodeIndex> ends{}, first_end{};
    std::optional<text::ValueSyntax> strings{};
    bool documented_order = false, distinct = false, every_spelling = false;
    friend bool operator==(const Members&, const Members&) = default;
  };
  /// The texts of another node, possibly a later one.
  struct Reference {
    std::optional<Id> body{};
    friend bool operator==(const Reference&, const Reference&) = default;
  };
  /// A child with a mark for `Automaton::tags`.
  struct Tag {
    std::uint32_t number;
    Id child;
    friend bool operator==(const Tag&, const Tag&) = default;
  };
  /// A node that an Automaton has compiled before.
  struct Linked {
    core::Id<class NodeStore> number;
    friend bool operator==(const Linked&, const Linked&) = default;
  };

  template <class Kind>
  BasicNode(Kind kind) : kind_(std::move(kind)) {}
  BasicNode(Members set) : kind_(std::make_shared<const Members>(std::move(set))) {}

  /// The node as a certain kind, or a null pointer.
  template <class Kind>
  [[nodiscard]] const Kind* as() const noexcept {
    if constexpr (std::is_same_v<Kind, Members>) {
      const auto* set = std::get_if<MembersPointer>(&kind_);
      return set == nullptr ? nullptr : set->get();
    } else {
      return std::get_if<Kind>(&kind_);
    }
  }
  /// Calls the function whose parameter is the node's kind.
  template <class... Cases>
  auto visit(const Cases&... cases) const {
    return std::visit(Functions<Cases...>{{cases}...}, kind_);
  }

 private:
  using MembersPointer = std::shared_ptr<const Members>;  // because other nodes are small

  template <class... Cases>
  struct Functions : Cases... {
    using Cases::operator()...;
    auto operator()(const MembersPointer& set) const { return (*this)(*set); }
  };

  std::variant<Literal, Lexeme, Sequence, Choice, Repeat, Trie, MembersPointer, Reference, Tag,
               Linked>
      kind_;
};

namespace detail {

// The nodes that a node refers to, by index; the separator is last.
template <class Id, class OtherKeys>
std::optional<Id> part_of(const BasicNode<Id, OtherKeys>& node, std::size_t i) {
  using Node    = BasicNode<Id, OtherKeys>;
  using Part    = std::optional<Id>;
  const auto at = [&](const std::vector<Id>& ids) {
    return i < ids.size() ? Part(ids[i]) : Part();
  };
  return node.visit(
      [&](const typename Node::Sequence& one) { return at(one.children); },
      [&](const typename Node::Choice& one) { return at(one.children); },
      [&](const typename Node::Trie& one) { return at(one.children); },
      [&](const typename Node::Repeat& one) {
        return i == 0 ? Part(one.item) : i == 1 ? Part(one.separator) : Part();
      },
      [&](const typename Node::Members& set) {
        if (i < set.children.size()) return Part(set.children[i]);
        const std::size_t other = i - set.children.size();
        if (other < set.others.size()) return Part(set.others[other].value);
        return other == set.others.size() ? Part(set.separator) : Part();
      },
      [&](const typename Node::Reference& one) { return i == 0 ? one.body : Part(); },
      [&](const typename Node::Tag& one) { return i == 0 ? Part(one.child) : Part(); },
      [](const auto&) { return Part(); });
}

}  // namespace detail

}  // namespace tooldecode::grammar

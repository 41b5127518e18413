#pragma once

#include <algorithm>
#include <iterator>

#include <tooldecode/schema/form.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE const ObjectForm::Member* ObjectForm::find(const std::string& name) const {
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const Member& member) { return member.name == name; });
  return at == members.end() ? nullptr : &*at;
}

TOOLDECODE_INLINE std::optional<std::string> ObjectForm::lead(
    const std::vector<std::string>& keys) {
  std::ptrdiff_t leading = 0;
  for (const std::string& key : keys) {
    const auto from = members.begin() + leading;
    const auto at =
        std::find_if(from, members.end(), [&](const Member& member) { return member.name == key; });
    if (at == members.end()) return key;
    std::rotate(from, at, at + 1);
    ++leading;
  }
  return std::nullopt;
}

TOOLDECODE_INLINE ObjectForm::Evaluated united(const ObjectForm::Evaluated& a,
                                               const ObjectForm::Evaluated& b) {
  ObjectForm::Evaluated all{.all = a.all || b.all};
  std::set_union(a.names.begin(), a.names.end(), b.names.begin(), b.names.end(),
                 std::back_inserter(all.names));
  std::set_union(a.patterns.begin(), a.patterns.end(), b.patterns.begin(), b.patterns.end(),
                 std::back_inserter(all.patterns));
  return all;
}

TOOLDECODE_INLINE bool Form::empty() const noexcept {
  return !null && !truth && !falsehood && numbers.empty() && texts.empty() && arrays.empty() &&
         objects.empty();
}

TOOLDECODE_INLINE std::size_t Form::alternatives() const noexcept {
  return numbers.size() + texts.size() + arrays.size() + objects.size();
}

TOOLDECODE_INLINE std::size_t bytes_of(const NumberForm& form) {
  return sizeof(form) + sizeof(text::Decimal) * form.bounds.multiples.size();
}

TOOLDECODE_INLINE std::size_t bytes_of(const StringForm& form) {
  const std::size_t texts = form.excluded.size() + (form.values ? form.values->size() : 0);
  return sizeof(form) + sizeof(std::string) * texts;
}

TOOLDECODE_INLINE std::size_t bytes_of(const ArrayForm& form) {
  return sizeof(form) + sizeof(FormId) * form.prefix.size() +
         sizeof(ArrayForm::Contains) * form.contains.size();
}

TOOLDECODE_INLINE std::size_t bytes_of(const ObjectForm& form) {
  return sizeof(form) + sizeof(ObjectForm::Member) * form.members.size() +
         sizeof(ObjectForm::OtherKeys) * form.others.size() +
         2 * sizeof(std::string) * form.dependent.size() +
         6 * sizeof(std::string) * form.together.size() +
         sizeof(std::string) * (form.evaluated.names.size() + form.named.names.size());
}

TOOLDECODE_INLINE std::size_t bytes_of(const Form& form) {
  return bytes_of(form.numbers) + bytes_of(form.texts) + bytes_of(form.arrays) +
         bytes_of(form.objects) + bytes_of(form.hull);
}

TOOLDECODE_INLINE std::uint64_t steps_of(const NumberForm& /*form*/) noexcept {
  return 30;
}

TOOLDECODE_INLINE std::uint64_t steps_of(const StringForm& form) noexcept {
  return 10 + 2 * (form.excluded.size() + (form.values ? form.values->size() : 0));
}

TOOLDECODE_INLINE std::uint64_t steps_of(const ArrayForm& form) noexcept {
  return 10 + form.prefix.size() + form.contains.size();
}

TOOLDECODE_INLINE std::uint64_t steps_of(const ObjectForm& form) noexcept {
  return 20 + 3 * form.members.size() + 4 * form.others.size() + 4 * form.dependent.size() +
         2 * (form.evaluated.names.size() + form.named.names.size()) + 40 * form.together.size();
}

TOOLDECODE_INLINE const text::Decimal* find_point(const NumberForm& form) {
  const auto& min = form.bounds.minimum;
  const auto& max = form.bounds.maximum;
  if (!min || !max || min->exclusive || max->exclusive) return nullptr;
  return min->value == max->value ? &min->value : nullptr;
}

}  // namespace tooldecode::schema

#include <string>
#include <vector>

#include <tooldecode/schema/item_counts.hpp>

#include <support/catch.hpp>
#include <support/slow_matcher.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using namespace tooldecode::text;

TEST_CASE("ItemCounts accepts exactly the arrays with the required number of matching items") {
  for (const Occurrences count : {Occurrences{1}, Occurrences{2, 2}, Occurrences{0, 1}}) {
    for (const Occurrences length : {Occurrences{}, Occurrences{2, 3}, Occurrences{4}}) {
      for (const unsigned from : {0U, 2U, 5U}) {
        Grammar grammar;
        FormAlgebra forms;
        const FormId truth = forms.add(Form{.truth = true});
        const auto value   = [&](FormId id) {
          const Form& form = forms[id];
          std::vector<NodeId> words;
          if (form.truth) words.push_back(grammar.literal("t"));
          if (form.falsehood) words.push_back(grammar.literal("f"));
          return grammar.choice(words);
        };
        ItemCounts items(grammar, forms, grammar.literal(","), value);
        const ArrayForm form{.length = length, .contains = {{truth, count, from}}};
        const NodeId node = items(form);
        for (unsigned bits = 0; bits < 1U << 6; ++bits) {
          for (unsigned size = 0; size < 6; ++size) {
            std::string text;
            unsigned matching = 0;
            for (unsigned i = 0; i < size; ++i) {
              const bool is_true = (bits >> i & 1) != 0;
              text += std::string(i == 0 ? "" : ",") + (is_true ? 't' : 'f');
              matching += is_true && i >= from ? 1 : 0;
            }
            const bool conforms = matching >= count.min && matching <= count.max &&
                                  size >= length.min && size <= length.max;
            INFO(text << " with " << count.min << " to " << count.max << " from item " << from);
            CHECK(slow::matches(grammar, node, text) == conforms);
          }
        }
      }
    }
  }
}

TEST_CASE(
    "ItemCounts needs one state for each counted item where the length follows from the count") {
  const auto count_nodes = [](std::uint32_t least) {
    Grammar grammar;
    FormAlgebra forms;
    const FormId truth = forms.add(Form{.truth = true});
    ItemCounts items(grammar, forms, grammar.literal(","),
                     [&](FormId id) { return grammar.literal(forms[id].falsehood ? "f" : "t"); });
    static_cast<void>(items(ArrayForm{.length   = {least, Occurrences::unbounded},
                                      .contains = {{truth, {least, Occurrences::unbounded}}}}));
    return grammar.size();
  };
  CHECK(count_nodes(1000) < 11 * count_nodes(100));
}

TEST_CASE("ItemCounts throws for too many states") {
  Grammar grammar;
  FormAlgebra forms;
  ItemCounts items(grammar, forms, grammar.empty(), [&](FormId) { return grammar.empty(); });
  const ArrayForm form{.length = {0, 1'000'000'000}, .contains = {{any_form, {1}}}};
  CHECK_THROWS_AS(items(form), Error);
}

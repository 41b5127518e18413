#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <program/json.hpp>
#include <program/readings.hpp>

namespace program {

std::string readings_text(const tooldecode::ToolSet& tools) {
  if (tools.notes().empty()) return "";
  std::string text = "\nReadings of the tool documents\n";
  for (const auto& note : tools.notes()) {
    text += "  " + note.tool + ' ' + note.pointer + ": " + note.text + '\n';
  }
  return text;
}

void ReadingCounts::add(const tooldecode::ToolSet& tools) {
  for (const auto& note : tools.notes()) ++counts_[note.text];
}

std::string ReadingCounts::text() const {
  if (counts_.empty()) return "";
  std::vector<std::pair<std::size_t, std::string>> all;
  for (const auto& [what, count] : counts_) all.emplace_back(count, what);
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = "\nReadings of the tool documents\n";
  for (std::size_t i = 0; i < std::min(shown, all.size()); ++i) {
    text += "  " + std::to_string(all[i].first) + " times: " + all[i].second + '\n';
  }
  if (all.size() > shown) text += "  and " + std::to_string(all.size() - shown) + " more\n";
  return text;
}

std::string unexpected_readings(const tooldecode::ToolSet& tools) {
  constexpr std::size_t longest = 1000;  // longest header
  Json places                   = Json::array();
  std::size_t size              = 0;
  for (const auto& note : tools.notes()) {
    if (note.reading == tooldecode::tools::Reading::closed_object) continue;
    if (tooldecode::tools::is_given_up(note.reading)) continue;  // these have a separate header
    size += note.pointer.size();
    places.push_back(size > longest ? "..." : note.pointer.c_str());
    if (size > longest) break;
  }
  return places.empty() ? "" : places.text({.ascii = true});
}

}  // namespace program

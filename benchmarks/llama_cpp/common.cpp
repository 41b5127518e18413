// What json-schema-to-grammar.cpp and log.cpp need of llama.cpp's common.cpp, which would require
// another library.
#include <cstddef>
#include <string>
#include <vector>

std::string string_join(const std::vector<std::string>& values, const std::string& separator);
std::vector<std::string> string_split(const std::string& text, const std::string& delimiter);
std::string string_repeat(const std::string& text, std::size_t times);

bool tty_can_use_colors();
bool tty_can_use_colors() {
  return false;
}

std::string string_join(const std::vector<std::string>& values, const std::string& separator) {
  std::string all;
  for (std::size_t i = 0; i < values.size(); ++i) all += (i == 0 ? "" : separator) + values[i];
  return all;
}

std::vector<std::string> string_split(const std::string& text, const std::string& delimiter) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(delimiter, begin)) != std::string::npos;
       begin = end + delimiter.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

std::string string_repeat(const std::string& text, std::size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

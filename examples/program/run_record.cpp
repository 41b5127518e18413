#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/version.hpp>

#include <program/json.hpp>
#include <program/paths.hpp>
#include <program/run_record.hpp>
#include <program/system_files.hpp>
#include <sys/utsname.h>
#include <unistd.h>

namespace program {
namespace {

std::filesystem::path source_root() {
  return std::filesystem::path(data_folder).parent_path().parent_path();
}

std::string ask_git(const std::string& question) {
  std::string folder;
  for (const char c : source_root().string())
    folder += c == '\'' ? std::string("'\\''") : std::string(1, c);
  if (folder.empty()) return {};
  const std::string command = "git -C '" + folder + "' " + question + " 2> /dev/null";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) return {};
  std::array<char, 256> buffer{};
  std::string line;
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe.get()) != nullptr) {
    if (line.empty() || line.back() != '\n') line += buffer.data();
  }
  if (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

std::string commit() {
  if (const char* given = std::getenv("TOOLDECODE_COMMIT")) return given;
  const std::string head = ask_git("rev-parse --short=12 HEAD");
  if (head.empty()) return "unknown";
  const bool is_changed =
      !ask_git("status --porcelain -- . ':!benchmarks/results' ':!*.md'").empty();
  return head + (is_changed ? "+changes" : "");
}

std::string now_in_utc() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Json machine() {
  utsname system{};
  uname(&system);
  const double bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return {{"processor", find_line("/proc/cpuinfo", "model name", "\t :")},
          {"cores", std::thread::hardware_concurrency()},
          {"memory_gib", static_cast<int>(bytes / (1 << 30) * 10) / 10.0},
          {"system", std::string(system.sysname) + ' ' + system.release + ' ' + system.machine +
                         ", " + find_line("/etc/os-release", "PRETTY_NAME=", "\"")}};
}

std::string compiler() {
#ifdef __clang__
  return "clang++ " + std::string(__clang_version__);
#else
  return "g++ " + std::string(__VERSION__);
#endif
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string root = source_root().string() + '/';
  const char* given      = std::getenv("TOOLDECODE_SHARED_DATA");
  const std::string data =
      given != nullptr ? given : source_root().parent_path().string() + "/shared/data";
  std::string command;
  for (std::string word; std::getline(file, word, '\0');) {
    for (const auto& [folder, name] : {std::pair<std::string, std::string>{data, "DATA"},
                                       {root + "../shared/data", "DATA"},
                                       {"../shared/data", "DATA"},
                                       {root, ""}}) {
      if (word.starts_with(folder)) word.replace(0, folder.size(), name);
    }
    if (word.find_first_of(" '\"*$\\") != std::string::npos) {
      word = Json(word).text();
    }
    command += (command.empty() ? "" : " ") + word;
  }
  if (command.empty()) return "unknown";
  // A name that is not UTF-8 must not abort a run before its results are written.
  return tooldecode::text::parse_json(Json(command).text()).string();
}

}  // namespace
Json run_record(Json peers) {
#ifdef TOOLDECODE_COMPILER_FLAGS
  const std::string flags = TOOLDECODE_COMPILER_FLAGS;
#else
  const std::string flags = "unknown";
#endif
  return {{"commit", commit()},
          {"date", now_in_utc()},
          {"machine", machine()},
          {"compiler", compiler()},
          {"flags", flags},
          {"tooldecode", std::string(tooldecode::version)},
          {"peers", std::move(peers)},
          {"command", command_line()}};
}

}  // namespace program

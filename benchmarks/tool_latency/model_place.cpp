// In a separate file, because a macro of the HTTP library's headers breaks Eigen's, which models
// need.
#include "model_place.hpp"

#include <filesystem>
#include <string>

#include <program/assistant.hpp>
#include <program/models.hpp>

namespace tool_latency {

std::filesystem::path model_place(const std::string& model) {
  return model == "embedded" ? program::example_data("tiny") : program::model_file(model);
}

}  // namespace tool_latency

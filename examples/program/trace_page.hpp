/// \file
/// The page that shows a trace; its JSON is inserted.
#pragma once

namespace program {

extern const char* const trace_page;

}  // namespace program

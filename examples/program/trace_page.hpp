/// \file
/// The page that shows a trace, in which its JSON is to be put.
#pragma once

namespace program {

/// The text of trace_page.html.
extern const char* const trace_page;

}  // namespace program

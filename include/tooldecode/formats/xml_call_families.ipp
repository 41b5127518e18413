#pragma once

#include <string_view>

#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/xml_call.hpp>

namespace tooldecode {

TOOLDECODE_INLINE XmlCall XmlCall::qwen3_coder() {
  return {"<tool_call>",  "<function=", ">",           "<parameter=",  ">", "",
          "</parameter>", "\n",         "</function>", "</tool_call>", true};
}

TOOLDECODE_INLINE XmlCall XmlCall::glm() {
  return {"<tool_call>",  "", "", "<arg_key>",   "</arg_key>", "<arg_value>",
          "</arg_value>", "", "", "</tool_call>"};
}

TOOLDECODE_INLINE XmlCall XmlCall::glm_4_7() {
  XmlCall format = glm();
  format.gap = format.call_gap = "";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::iquest_q1() {
  XmlCall format = glm_4_7();
  format.begin   = "<iquest_tool_call>";
  format.end     = "</iquest_tool_call>";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::k2_horizon() {
  XmlCall format{"<ifm|tool_call>",  "", "", "<ifm|arg_key>",   "</ifm|arg_key>", "<ifm|arg_value>",
                 "</ifm|arg_value>", "", "", "</ifm|tool_call>"};
  format.section_begin = "<ifm|tool_calls>";
  format.section_end   = "</ifm|tool_calls>";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::hunyuan_3(std::string_view suffix) {
  XmlCall format    = hunyuan_4(suffix);
  format.after_name = "<tool_sep" + std::string(suffix) + '>';
  format.gap = format.call_gap = "\n";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::hunyuan_4(std::string_view suffix) {
  const auto token = [&](const char* name) { return '<' + (name + std::string(suffix)) + '>'; };
  XmlCall format{
      token("tool_call"),  "", "", token("arg_key"),   token("/arg_key"), token("arg_value"),
      token("/arg_value"), "", "", token("/tool_call")};
  format.section_begin = token("tool_calls");
  format.section_end   = token("/tool_calls");
  format.gap = format.call_gap = "";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::mimo() {
  XmlCall format = qwen3_coder();
  format.gap = format.call_gap = format.padding = "";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::seed_oss() {
  return {"<seed:tool_call>", "<function=", ">",           "<parameter=",      ">", "",
          "</parameter>",     "",           "</function>", "</seed:tool_call>"};
}

TOOLDECODE_INLINE XmlCall XmlCall::minimax_m2() {
  XmlCall format{"<invoke name=\"", "", "\">", "<parameter name=\"", "\">", "",
                 "</parameter>",    "", "",    "</invoke>"};
  format.section_begin = "<minimax:tool_call>";
  format.section_end   = "</minimax:tool_call>";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::dots() {
  XmlCall format       = minimax_m2();
  format.section_begin = "<dots_function_call>";
  format.section_end   = "</dots_function_call>";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::step_3() {
  XmlCall format{"<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"",
                 "",
                 "\">",
                 "<steptml:parameter name=\"",
                 "\">",
                 "",
                 "</steptml:parameter>",
                 "",
                 "",
                 "</steptml:invoke><｜tool_call_end｜>"};
  format.section_begin = "<｜tool_calls_begin｜>";
  format.section_end   = "<｜tool_calls_end｜>";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::minicpm5() {
  XmlCall format{"<function name=\"", "", "\">", "<param name=\"", "\">", "",
                 "</param>",          "", "",    "</function>"};
  format.gap = format.call_gap = "";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::of_style(std::string_view name) {
  XmlCall format;
  format.style          = *formats::find_element_style(name);
  format.style->padding = formats::ElementPadding::none;
  format.before_key     = format.style->before_key;
  format.after_key      = format.style->after_key;
  format.after_value    = format.style->after_value;
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::deepseek_v3_2() {
  XmlCall format       = of_style("deepseek_xml");
  format.begin         = "<｜DSML｜invoke name=\"";
  format.after_name    = "\">";
  format.end           = "</｜DSML｜invoke>";
  format.section_begin = "<｜DSML｜function_calls>";
  format.section_end   = "</｜DSML｜function_calls>";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::deepseek_v4() {
  XmlCall format       = deepseek_v3_2();
  format.section_begin = "<｜DSML｜tool_calls>";
  format.section_end   = "</｜DSML｜tool_calls>";
  format.ends_thought  = true;
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::deepseek_v4_1() {
  XmlCall format       = of_style("deepseek_v4_1_xml");
  format.begin         = "<｜DSML｜ invoke name=\"";
  format.after_name    = "\">";
  format.end           = "</｜DSML｜ invoke>";
  format.section_begin = "<｜DSML｜ calls>";
  format.section_end   = "</｜DSML｜ calls>";
  format.ends_thought  = true;
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::gigachat_3_5() {
  XmlCall format = deepseek_v4();
  for (std::string* text :
       {&format.begin, &format.end, &format.before_key, &format.after_value, &format.section_begin,
        &format.section_end, &format.style->before_key, &format.style->after_value}) {
    text->replace(text->find("DSML"), 4, "GCML");
  }
  format.style->name  = "gigachat_3_5";
  format.ends_thought = false;
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::kimi_k3() {
  XmlCall format       = of_style("kimi_k3_xml");
  format.begin         = "<|open|>call tool=\"";
  format.after_name    = "\" index=\"";
  format.number_end    = "\"<|sep|>";
  format.first_number  = 1;
  format.end           = "<|close|>call<|sep|>";
  format.section_begin = "<|open|>tools<|sep|>";
  format.section_end   = "<|close|>tools<|sep|><|close|>message<|sep|>";
  format.gap = format.call_gap = "";
  format.response              = {"<|open|>response<|sep|>", "<|close|>response<|sep|>",
                                  "<|close|>message<|sep|>"};
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::gemma_4() {
  XmlCall format;
  format.begin        = "<|tool_call>";
  format.before_name  = "call:";
  format.after_name   = "{";
  format.after_key    = ":";
  format.after_values = "}";
  format.end          = "<tool_call|>";
  format.gap = format.call_gap = "";
  format.style                 = formats::ElementStyle{.name          = "gemma_4",
                                                       .before_key    = "",
                                                       .after_key     = ":",
                                                       .after_value   = "",
                                                       .padding       = formats::ElementPadding::none,
                                                       .never_in_text = "<|\"|>",
                                                       .before_text   = "<|\"|>",
                                                       .after_text    = "<|\"|>",
                                                       .separator     = ",",
                                                       .before_list   = "[",
                                                       .after_list    = "]",
                                                       .before_object = "{",
                                                       .after_object  = "}"};
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::function_gemma() {
  XmlCall format           = gemma_4();
  format.begin             = "<start_function_call>";
  format.end               = "<end_function_call>";
  formats::ElementStyle& s = *format.style;
  s.name                   = "function_gemma";
  s.never_in_text = s.before_text = s.after_text = "<escape>";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::minimax_m3() {
  XmlCall format            = of_style("minimax_m3_xml");
  format.style->by_document = true;
  format.begin              = "]<]minimax[>[<invoke name=\"";
  format.after_name         = "\">";
  format.end                = "]<]minimax[>[</invoke>";
  format.section_begin      = "]<]minimax[>[<tool_call>";
  format.section_end        = "]<]minimax[>[</tool_call>";
  format.gap                = "";
  return format;
}

TOOLDECODE_INLINE XmlCall XmlCall::cohere() {
  XmlCall format       = of_style("cohere_xml");
  format.begin         = "<cofl:tool_call id=\"";
  format.number_end    = "\" name=\"";
  format.number_first  = true;
  format.after_name    = "\">";
  format.end           = "</cofl:tool_call>";
  format.section_begin = "<cofl:tool_calls>";
  format.section_end   = "</cofl:tool_calls>";
  format.gap = format.call_gap = "";
  return format;
}

}  // namespace tooldecode

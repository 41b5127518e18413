#include <utility>

#include <program/chat_engine.hpp>
#include <program/speculation.hpp>

namespace program {

namespace {

template <class M, class... Drafters>
std::unique_ptr<ChatEngine> make_engine(const M& model, tooldecode::ToolCache* cache,
                                        tooldecode::ResultTokens render,
                                        tooldecode::EngineOptions options, Drafters... drafters) {
  using Engine = tooldecode::EngineSpeculator<M, Drafters...>;
  struct EngineOfModel final : ChatEngine {
    EngineOfModel(const M& used, tooldecode::ToolCache* outputs, tooldecode::ResultTokens results,
                  tooldecode::EngineOptions settings, Drafters... given)
        : engine(used, outputs, std::move(results), settings, std::move(given)...) {}

    void submit(tooldecode::EngineRequest request, tooldecode::EngineListener listener) override {
      engine.submit(std::move(request), std::move(listener));
    }
    void cancel(std::string_view id) override { engine.cancel(id); }
    bool step() override { return engine.step(); }
    void wait(const std::stop_token& stop) override { engine.wait(stop); }
    [[nodiscard]] tooldecode::EngineCounts counts() const override { return engine.counts(); }

    Engine engine;
  };
  return std::make_unique<EngineOfModel>(model, cache, std::move(render), options,
                                         std::move(drafters)...);
}

}  // namespace

void with_engine_maker(const Assistant& assistant, const DraftOptions& drafts,
                       const std::function<void(const EngineMaker&)>& use) {
  const auto use_maker = [&](const auto& model, const auto&... drafter) {
    use([&](tooldecode::ToolCache* cache, tooldecode::ResultTokens render,
            tooldecode::EngineOptions options) {
      return make_engine(model, cache, std::move(render), options, drafter...);
    });
  };
  if (drafts.is_on()) return with_drafter(assistant, drafts, {}, use_maker);
  const tooldecode::ModelRef model = assistant.model_ref();
  use_maker(model);
}

}  // namespace program

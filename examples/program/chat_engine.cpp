#include <utility>

#include <program/chat_engine.hpp>
#include <program/speculation.hpp>

namespace program {

namespace {

// Adds each answer to the history when its response ends.
tooldecode::EngineListener remembering(tooldecode::EngineListener listener,
                                       const Assistant& assistant, const Drafting& drafting) {
  if (!drafting.history) return listener;
  listener.on_reply = [&assistant, &drafting,
                       then = std::move(listener.on_reply)](tooldecode::EngineReply reply) {
    for (const tooldecode::EngineTurn& turn : reply.turns) {
      drafting.add(assistant.tokenizer.vocabulary(), turn.output.tokens);
    }
    if (then) then(std::move(reply));
  };
  return listener;
}

template <class M, class... Drafters>
std::unique_ptr<ChatEngine> make_engine(const M& model, const Assistant& assistant,
                                        const Drafting& drafting, tooldecode::ToolCache* cache,
                                        tooldecode::ResultTokens render,
                                        tooldecode::EngineOptions options, Drafters... drafters) {
  using Engine = tooldecode::EngineSpeculator<M, Drafters...>;
  struct EngineOfModel final : ChatEngine {
    EngineOfModel(const M& used, const Assistant& of_model, const Drafting& shared,
                  tooldecode::ToolCache* outputs, tooldecode::ResultTokens results,
                  tooldecode::EngineOptions settings, Drafters... given)
        : assistant(of_model),
          drafting(shared),
          engine(used, outputs, std::move(results), settings, std::move(given)...) {}

    void submit(tooldecode::EngineRequest request, tooldecode::EngineListener listener) override {
      engine.submit(std::move(request), remembering(std::move(listener), assistant, drafting));
    }
    void cancel(std::string_view id) override { engine.cancel(id); }
    bool step() override { return engine.step(); }
    void wait(const std::stop_token& stop) override { engine.wait(stop); }
    [[nodiscard]] tooldecode::EngineCounts counts() const override { return engine.counts(); }

    const Assistant& assistant;
    const Drafting& drafting;
    Engine engine;
  };
  return std::make_unique<EngineOfModel>(model, assistant, drafting, cache, std::move(render),
                                         options, std::move(drafters)...);
}

}  // namespace

void with_engine_maker(const Assistant& assistant, const Drafting& drafting,
                       const std::function<void(const EngineMaker&)>& use) {
  const auto use_maker = [&](const auto& model, const auto&... drafter) {
    use([&](tooldecode::ToolCache* cache, tooldecode::ResultTokens render,
            tooldecode::EngineOptions options) {
      return make_engine(model, assistant, drafting, cache, std::move(render), options, drafter...);
    });
  };
  if (drafting.options.is_on()) return with_drafter(assistant, drafting, {}, use_maker);
  const tooldecode::ModelRef model = assistant.model_ref();
  use_maker(model);
}

}  // namespace program

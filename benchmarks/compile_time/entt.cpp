// EnTT, a header-only C++20 library: entities with two components, and a loop.
#include <entt/entt.hpp>

struct Position {
  float x, y;
};
struct Velocity {
  float dx, dy;
};

void step(entt::registry& registry) {
  const auto entity = registry.create();
  registry.emplace<Position>(entity, 0.0f, 0.0f);
  registry.emplace<Velocity>(entity, 1.0f, 1.0f);
  registry.view<Position, const Velocity>().each([](auto& position, const auto& velocity) {
    position.x += velocity.dx;
    position.y += velocity.dy;
  });
}

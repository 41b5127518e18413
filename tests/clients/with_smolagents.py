"""smolagents: a model of OpenAI's kind by itself, streamed, and under an agent that calls tools."""
import json

import common

common.need("smolagents")
import smolagents  # noqa: E402

MODEL = smolagents.OpenAIModel(model_id=common.MODEL, api_base=common.URL, api_key=common.KEY, temperature=0, max_tokens=100)
ASKED = []


@smolagents.tool
def get_weather(city: str, days: int = 3) -> str:
    """Get the weather forecast for a city.

    Args:
        city: the name of the city
        days: how many days
    """
    ASKED.append(city)
    return common.GOODBYE


def user(text):
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def test_chat():
    answer = MODEL.generate(user(common.GOODBYE))
    assert answer.content and answer.token_usage.output_tokens > 0, answer
    pieces = list(MODEL.generate_stream(user(common.GOODBYE)))
    assert "".join(piece.content or "" for piece in pieces) == answer.content, pieces


def test_tools():
    answer = MODEL.generate(user(common.WEATHER), tools_to_call_from=[get_weather], stop_sequences=["Observation:"])
    call, = answer.tool_calls
    assert call.function.name == "get_weather" and json.loads(call.function.arguments)["city"] == "Oslo", answer
    pieces = list(MODEL.generate_stream(user(common.WEATHER), tools_to_call_from=[get_weather]))
    whole = smolagents.models.agglomerate_stream_deltas(pieces)
    assert whole.tool_calls[0].function.arguments == call.function.arguments, (whole, call)


def test_agent():
    """Its own prompt does not fit the little model's context, so that it has a shorter one."""
    empty = smolagents.agents.EMPTY_PROMPT_TEMPLATES
    agent = smolagents.ToolCallingAgent(tools=[get_weather], model=MODEL, max_steps=2, verbosity_level=0,
                                        prompt_templates={**empty, "system_prompt": "Call tools."})
    list(agent.run(common.WEATHER, stream=True))
    assert "Oslo" in ASKED, ASKED
    steps = [step for step in agent.memory.steps if isinstance(step, smolagents.ActionStep)]
    assert steps and not any(isinstance(step.error, smolagents.AgentGenerationError) for step in steps), steps


if __name__ == "__main__":
    common.run(globals())

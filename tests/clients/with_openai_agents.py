"""OpenAI's agents package in its default mode, the Responses API: tools, streams, typed answers, handoffs, sessions."""
import asyncio
import typing

import common

common.need("agents")
import pydantic  # noqa: E402
from agents import (Agent, ModelSettings, RunConfig, Runner, function_tool,  # noqa: E402
                    set_default_openai_client, set_tracing_disabled)
from openai import AsyncOpenAI  # noqa: E402

set_tracing_disabled(True)  # which would be sent to OpenAI
set_default_openai_client(AsyncOpenAI(base_url=common.URL, api_key=common.KEY, max_retries=0), use_for_tracing=False)
LOOP = asyncio.new_event_loop()  # the client's connections are of one
SETTINGS = ModelSettings(temperature=0, max_tokens=100)
ASKED = []


@function_tool
def get_weather(city: str, days: int = 3) -> str:
    """Get the weather forecast for a city."""
    ASKED.append((city, days))
    return common.GOODBYE


class Report(pydantic.BaseModel):
    """A report of the weather."""
    sky: typing.Literal["clear", "grey"]
    degrees: int = pydantic.Field(ge=-30, le=40)


def agent(**more):
    return Agent(**{"name": "Forecaster", "instructions": "Be brief.", "model": common.MODEL, "model_settings": SETTINGS,
                    **more})


def run(*asked, **more):
    return LOOP.run_until_complete(Runner.run(*asked, **more))


def test_tools():
    ASKED.clear()
    result = run(agent(tools=[get_weather]), common.WEATHER, max_turns=3)
    assert ASKED and ASKED[0][0] == "Oslo" and isinstance(result.final_output, str) and result.final_output, result
    kinds = [item.type for item in result.new_items]
    assert kinds == ["tool_call_item", "tool_call_output_item", "message_output_item"], kinds
    assert result.context_wrapper.usage.total_tokens > 0 and result.context_wrapper.usage.requests == 2
    again = run(agent(tools=[get_weather]), [*result.to_input_list(), {"role": "user", "content": common.GOODBYE}])
    assert again.final_output, "what was said, called and returned goes back"


def test_streams():
    async def stream():
        result = Runner.run_streamed(agent(tools=[get_weather]), common.WEATHER, max_turns=3)
        text, kinds = "", []
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                kinds.append(event.data.type)
                text += event.data.delta if event.data.type == "response.output_text.delta" else ""
        return text, kinds, result.final_output
    ASKED.clear()
    text, kinds, final = LOOP.run_until_complete(stream())
    asked = list(ASKED)
    assert text == final and kinds.count("response.completed") == 2, (text, final, kinds)
    assert kinds.count("response.function_call_arguments.delta") > 1, kinds
    assert run(agent(tools=[get_weather]), common.WEATHER).final_output == final
    assert ASKED == asked * 2, ASKED


def test_schemas():
    result = run(agent(output_type=Report), common.WEATHER)
    assert isinstance(result.final_output, Report), result


def test_handoffs():
    """A handoff is a tool that must be called here; the other agent answers."""
    other = agent(name="Other", instructions="Say goodbye.")
    first = agent(handoffs=[other], model_settings=ModelSettings(temperature=0, max_tokens=100, tool_choice="required"))
    result = run(first, common.GOODBYE, max_turns=3, run_config=RunConfig(tracing_disabled=True))
    assert result.last_agent.name == "Other" and result.final_output, result


if __name__ == "__main__":
    common.run(globals())

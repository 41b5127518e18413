"""Pydantic AI: agents with tools, streams, typed answers by a schema and by a tool, histories."""
import asyncio
import typing

import common

common.need("pydantic_ai")
import pydantic  # noqa: E402
from pydantic_ai import Agent, NativeOutput, ToolOutput  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

MODEL = OpenAIChatModel(common.MODEL, provider=OpenAIProvider(base_url=common.URL, api_key=common.KEY))
RESPONSES = OpenAIResponsesModel(common.MODEL, provider=OpenAIProvider(base_url=common.URL, api_key=common.KEY))
SETTINGS = {"temperature": 0, "max_tokens": 100}


class Report(pydantic.BaseModel):
    """A report of the weather."""
    sky: typing.Literal["clear", "grey"]
    degrees: int = pydantic.Field(ge=-30, le=40)


def weather_agent(model=MODEL, **more):
    agent = Agent(model, model_settings=SETTINGS, **more)
    asked = []

    @agent.tool_plain
    def get_weather(city: str, days: int = 3) -> str:  # pylint: disable=unused-variable
        """Get the weather forecast for a city."""
        asked.append((city, days))
        return common.GOODBYE
    return agent, asked


def test_chat():
    result = Agent(MODEL, model_settings=SETTINGS, instructions="Be brief.").run_sync(common.GOODBYE)
    assert result.output and result.usage.output_tokens > 0, result


def test_tools():
    agent, asked = weather_agent()
    first = agent.run_sync(common.WEATHER)
    assert asked and asked[0][0] == "Oslo" and isinstance(first.output, str), (asked, first.output)
    again = agent.run_sync(common.GOODBYE, message_history=first.all_messages())
    assert again.output, "what it said and was told goes back"


def test_streams():
    async def stream():
        agent, asked = weather_agent()
        async with agent.run_stream(common.WEATHER) as result:
            pieces = [piece async for piece in result.stream_text(delta=True)]
        return asked, "".join(pieces)
    asked, text = asyncio.run(stream())
    agent, plain = weather_agent()
    assert agent.run_sync(common.WEATHER).output == text and asked == plain, (asked, plain, text)


def test_schemas():
    for output in (NativeOutput(Report), NativeOutput(Report, strict=True), ToolOutput(Report), Report):
        agent = Agent(MODEL, output_type=output, model_settings=SETTINGS)
        result = agent.run_sync(common.WEATHER)
        assert isinstance(result.output, Report), (output, result)
        again = agent.run_sync(common.GOODBYE, message_history=result.all_messages())
        assert isinstance(again.output, Report), (output, again)

    async def stream():
        async with Agent(MODEL, output_type=NativeOutput(Report), model_settings=SETTINGS).run_stream(
                common.WEATHER) as result:
            return [part async for part in result.stream_output()][-1]
    assert isinstance(asyncio.run(stream()), Report)


def test_responses():
    """The Responses API, which the package's `openai:` names mean: tools, histories, streams, typed answers."""
    agent, asked = weather_agent(model=RESPONSES)
    first = agent.run_sync(common.WEATHER)
    plain, told = weather_agent()
    assert first.output == plain.run_sync(common.WEATHER).output and asked == told, (first, asked, told)
    assert agent.run_sync(common.GOODBYE, message_history=first.all_messages()).output
    for output in (NativeOutput(Report), ToolOutput(Report)):
        result = Agent(RESPONSES, output_type=output, model_settings=SETTINGS).run_sync(common.WEATHER)
        assert isinstance(result.output, Report), (output, result)

    async def stream():
        async with Agent(RESPONSES, model_settings=SETTINGS).run_stream(common.GOODBYE) as result:
            return "".join([piece async for piece in result.stream_text(delta=True)])
    assert asyncio.run(stream()) == Agent(MODEL, model_settings=SETTINGS).run_sync(common.GOODBYE).output


if __name__ == "__main__":
    common.run(globals())

"""LangChain's ChatOpenAI: chat, bound tools, streams, structured answers, histories."""
import typing

import common

common.need("langchain_openai")
import pydantic  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

MODEL = ChatOpenAI(model=common.MODEL, base_url=common.URL, api_key=common.KEY, temperature=0, max_tokens=100,
                   max_retries=0, use_responses_api=False, stream_usage=True)


@tool
def get_weather(city: str, days: int = 3) -> str:
    """Get the weather forecast for a city."""
    return f"{city}: {common.GOODBYE}"


class Report(pydantic.BaseModel):
    """A report of the weather."""
    sky: typing.Literal["clear", "grey"]
    degrees: int = pydantic.Field(ge=-30, le=40)


def test_chat():
    answer = MODEL.invoke([SystemMessage("Be brief."), HumanMessage(common.GOODBYE)])
    assert isinstance(answer, AIMessage) and answer.content, answer
    assert answer.usage_metadata["total_tokens"] > 0 and answer.response_metadata["finish_reason"] == "stop", answer
    listed = MODEL.bind(logprobs=True, top_logprobs=2).invoke(common.GOODBYE)
    assert len(listed.response_metadata["logprobs"]["content"]) > 1, listed


def test_streams():
    pieces = list(MODEL.stream(common.GOODBYE))
    assert "".join(piece.content for piece in pieces) == MODEL.invoke(common.GOODBYE).content
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    assert whole.usage_metadata["output_tokens"] > 0, whole


def test_tools():
    for strict in (None, True):
        bound = MODEL.bind_tools([get_weather], **({} if strict is None else {"strict": strict}))
        asked = HumanMessage(common.WEATHER)
        answer = bound.invoke([asked])
        call, = answer.tool_calls
        assert call["name"] == "get_weather" and call["args"]["city"] == "Oslo" and not answer.invalid_tool_calls, answer
        whole = None
        for piece in bound.stream([asked]):
            whole = piece if whole is None else whole + piece
        assert whole.tool_calls[0]["args"] == call["args"], (whole, call)
        for said in (answer, whole):
            result = ToolMessage(common.GOODBYE, tool_call_id=said.tool_calls[0]["id"])
            assert bound.invoke([asked, said, result]).content, said
        told = get_weather.invoke(answer.tool_calls[0])
        assert isinstance(bound.invoke([asked, answer, told]), AIMessage)
    forced = MODEL.bind_tools([get_weather], tool_choice="get_weather", parallel_tool_calls=False).invoke(common.GOODBYE)
    assert [call["name"] for call in forced.tool_calls] == ["get_weather"], forced


def test_schemas():
    for method in ("json_schema", "function_calling"):
        for strict in (None, True):
            asked = MODEL.with_structured_output(Report, method=method, strict=strict, include_raw=True)
            answer = asked.invoke(common.WEATHER)
            assert isinstance(answer["parsed"], Report) and answer["parsing_error"] is None, (method, answer)
    last = list(MODEL.with_structured_output(Report, method="json_schema").stream(common.WEATHER))[-1]
    assert isinstance(last, Report), last


def test_responses():
    """The Responses API: the same texts and calls, histories, streams and schemas."""
    model = MODEL.model_copy(update={"use_responses_api": True})
    answer = model.invoke([SystemMessage("Be brief."), HumanMessage(common.GOODBYE)])
    assert answer.text == MODEL.invoke([SystemMessage("Be brief."), HumanMessage(common.GOODBYE)]).text, answer
    assert answer.usage_metadata["total_tokens"] > 0 and answer.response_metadata["status"] == "completed", answer
    bound, asked = model.bind_tools([get_weather]), HumanMessage(common.WEATHER)
    said, whole = bound.invoke([asked]), None
    for piece in bound.stream([asked]):
        whole = piece if whole is None else whole + piece
    assert said.tool_calls[0]["args"] == whole.tool_calls[0]["args"] == MODEL.bind_tools([get_weather]).invoke(
        [asked]).tool_calls[0]["args"], (said, whole)
    for turn in (said, whole):
        assert bound.invoke([asked, turn, ToolMessage(common.GOODBYE, tool_call_id=turn.tool_calls[0]["id"])]).text, turn
    for method in ("json_schema", "function_calling"):
        assert isinstance(model.with_structured_output(Report, method=method).invoke(common.WEATHER), Report), method


if __name__ == "__main__":
    common.run(globals())

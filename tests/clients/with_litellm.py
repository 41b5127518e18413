"""LiteLLM: chat, tools, streams and what it builds of their chunks, schemas, histories, errors."""
import json
import os
import typing

import common

common.need("litellm")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # the prices of others' models are of no use here
import litellm  # noqa: E402
import pydantic  # noqa: E402

litellm.suppress_debug_info = True

ASK = {"model": f"openai/{common.MODEL}", "api_base": common.URL, "api_key": common.KEY, "temperature": 0,
       "max_tokens": 100, "num_retries": 0}


class Report(pydantic.BaseModel):
    sky: typing.Literal["clear", "grey"]
    degrees: int = pydantic.Field(ge=-30, le=40)


def user(text):
    return [{"role": "user", "content": text}]


def test_chat():
    answer = litellm.completion(**ASK, messages=user(common.GOODBYE), user="Ann", metadata={"a": "b"})
    assert answer.choices[0].message.content and answer.choices[0].finish_reason == "stop", answer
    assert answer.usage.total_tokens > 0, answer


def test_streams():
    chunks = list(litellm.completion(**ASK, messages=user(common.GOODBYE), stream=True,
                                     stream_options={"include_usage": True}))
    built = litellm.stream_chunk_builder(chunks)
    whole = litellm.completion(**ASK, messages=user(common.GOODBYE))
    assert built.choices[0].message.content == whole.choices[0].message.content, built
    assert built.usage.total_tokens == whole.usage.total_tokens, (built.usage, whole.usage)


def test_tools():
    body = {**ASK, "messages": user(common.WEATHER), "tools": [common.WEATHER_TOOL]}
    message = litellm.completion(**body).choices[0].message
    call, = message.tool_calls
    assert call.function.name == "get_weather" and json.loads(call.function.arguments)["city"] == "Oslo", message
    built = litellm.stream_chunk_builder(list(litellm.completion(**body, stream=True)))
    streamed, = built.choices[0].message.tool_calls
    assert streamed.function.arguments == call.function.arguments, (streamed, call)
    for echo in (message, message.model_dump(), built.choices[0].message):
        calls = echo["tool_calls"]
        result = {"role": "tool", "tool_call_id": calls[0]["id"], "name": "get_weather", "content": common.GOODBYE}
        answer = litellm.completion(**{**body, "messages": [*body["messages"], echo, result]})
        assert answer.choices[0].message.content, answer


def test_schemas():
    answer = litellm.completion(**ASK, messages=user(common.GOODBYE), response_format=Report)
    assert Report.model_validate_json(answer.choices[0].message.content), answer


def test_errors():
    for change in ({"n": 99}, {"messages": []}):
        try:
            litellm.completion(**{**ASK, "messages": user("Hi"), **change})
        except litellm.BadRequestError as error:
            assert next(iter(change)) in str(error), error
        else:
            raise AssertionError(change)


def test_responses():
    ask = {key: value for key, value in ASK.items() if key not in ("max_tokens", "num_retries")}
    answer = litellm.responses(**ask, input=common.GOODBYE, max_output_tokens=100)
    text = litellm.completion(**ASK, messages=user(common.GOODBYE)).choices[0].message.content
    assert answer.output[0].content[0].text == text, answer
    events = list(litellm.responses(**ask, input=common.GOODBYE, max_output_tokens=100, stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == text, events
    assert events[-1].type == "response.completed", events[-1]


def test_completions():
    ask = {**ASK, "model": f"text-completion-openai/{common.MODEL}"}
    answer = litellm.text_completion(**ask, prompt=f"<|user|>{common.GOODBYE}<|assistant|>")
    assert answer.choices[0].text and answer.usage.total_tokens > 0, answer


if __name__ == "__main__":
    common.run(globals())

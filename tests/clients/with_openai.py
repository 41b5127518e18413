"""OpenAI's own package: chat, tools, streams with their events, strict schemas, histories, errors."""
import asyncio
import json
import typing

import common

common.need("openai")
import openai  # noqa: E402
import pydantic  # noqa: E402

CLIENT = openai.OpenAI(base_url=common.URL, api_key=common.KEY, max_retries=0)
ASK = {"model": common.MODEL, "temperature": 0, "max_tokens": 100}


def user(text):
    return [{"role": "user", "content": text}]


class GetWeather(pydantic.BaseModel):
    """Get the weather forecast for a city."""
    city: str
    days: int = 3


class Report(pydantic.BaseModel):
    sky: typing.Literal["clear", "grey"]
    degrees: int = pydantic.Field(ge=-30, le=40)
    note: typing.Optional[typing.Literal["snow"]]


def test_chat():
    assert [model.id for model in CLIENT.models.list()] == [common.MODEL]
    assert CLIENT.models.retrieve(common.MODEL).id == common.MODEL
    answer = CLIENT.chat.completions.create(**ASK, messages=user(common.GOODBYE))
    choice, = answer.choices
    assert choice.message.role == "assistant" and choice.message.content and choice.finish_reason == "stop", answer
    assert answer.object == "chat.completion" and answer.id and answer.created > 0 and answer.model == common.MODEL
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0

    async def ask():
        async with openai.AsyncOpenAI(base_url=common.URL, api_key=common.KEY) as client:
            return await asyncio.gather(*(client.chat.completions.create(**ASK, messages=user(common.GOODBYE))
                                          for _ in range(3)))
    assert {one.choices[0].message.content for one in asyncio.run(ask())} == {choice.message.content}
    raw = CLIENT.chat.completions.with_raw_response.create(**ASK, messages=user(common.GOODBYE), store=True, user="Ann",
                                                           metadata={"a": "b"})
    assert set(raw.headers["x-tooldecode-ignored"].split(", ")) == {"store", "user", "metadata"}, raw.headers
    assert raw.parse().choices[0].message.content == choice.message.content


def test_probabilities():
    answer = CLIENT.chat.completions.create(**ASK, messages=user(common.GOODBYE), logprobs=True, top_logprobs=2)
    tokens = answer.choices[0].logprobs.content
    assert "".join(token.token for token in tokens) == answer.choices[0].message.content
    assert all(token.top_logprobs[0].token == token.token and len(token.top_logprobs) <= 2 for token in tokens)


def test_streams():
    pieces = list(CLIENT.chat.completions.create(**ASK, messages=user(common.GOODBYE), stream=True,
                                                 stream_options={"include_usage": True}))
    assert pieces[-1].usage.total_tokens > 0 and pieces[-1].choices == [], pieces[-1]
    assert len({piece.id for piece in pieces}) == 1 and pieces[0].choices[0].delta.role == "assistant"
    assert [piece.choices[0].finish_reason for piece in pieces[:-1]].count("stop") == 1
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces[:-1])
    assert text == CLIENT.chat.completions.create(**ASK, messages=user(common.GOODBYE)).choices[0].message.content


def test_tools():
    """Strict tools, whole and streamed; the messages go back as the package has them."""
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    assert tool["function"]["strict"] is True
    body = {**ASK, "tools": [tool], "messages": user(common.WEATHER)}
    parsed = CLIENT.chat.completions.parse(**body)
    message = parsed.choices[0].message
    call, = message.tool_calls
    arguments = call.function.parsed_arguments
    assert isinstance(arguments, GetWeather) and arguments.city == "Oslo", call
    kinds = set()
    with CLIENT.chat.completions.stream(**body) as stream:
        for event in stream:
            kinds.add(event.type)
        final = stream.get_final_completion().choices[0]
    assert {"chunk", "tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds, kinds
    assert final.finish_reason == "tool_calls" and final.message.tool_calls[0].function.parsed_arguments == arguments
    assert final.message.tool_calls[0].function.arguments == call.function.arguments, "streams have the same text"
    result = {"role": "tool", "tool_call_id": call.id, "content": common.GOODBYE}
    contents = set()
    for echo in (message, message.model_dump(), message.model_dump(exclude_none=True), final.message,
                 message.model_dump(exclude={"parsed"})):
        mine = {**result, "tool_call_id": final.message.tool_calls[0].id} if echo is final.message else result
        answer = CLIENT.chat.completions.create(**{**body, "messages": [*body["messages"], echo, mine]})
        assert answer.choices[0].finish_reason == "stop", answer
        contents.add(answer.choices[0].message.content)
    assert len(contents) == 1, contents


def test_schemas():
    parsed = CLIENT.chat.completions.parse(**ASK, messages=user(common.GOODBYE), response_format=Report)
    report = parsed.choices[0].message.parsed
    assert isinstance(report, Report), parsed
    with CLIENT.chat.completions.stream(**ASK, messages=user(common.GOODBYE), response_format=Report) as stream:
        for event in stream:
            assert event.type != "error", event
        assert stream.get_final_completion().choices[0].message.parsed == report
    text = CLIENT.chat.completions.create(**ASK, messages=user(common.GOODBYE), response_format={"type": "json_object"})
    if text.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(text.choices[0].message.content), dict)


def responses_tool(tool):
    return {"type": "function", **tool["function"]}


def test_responses():
    """The Responses API: whole, streamed with the package's events, with what was called before as its items."""
    ask = {"model": common.MODEL, "temperature": 0, "max_output_tokens": 100}
    answer = CLIENT.responses.create(**ask, input=common.GOODBYE, instructions="Be brief.")
    assert answer.status == "completed" and answer.output_text and answer.error is None, answer
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens > 0, answer.usage
    assert answer.usage.output_tokens_details.reasoning_tokens == 0, answer.usage
    assert 0 <= answer.usage.input_tokens_details.cached_tokens < answer.usage.input_tokens, answer.usage
    with CLIENT.responses.stream(**ask, input=common.GOODBYE, instructions="Be brief.") as stream:
        deltas = [event for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert final.output_text == answer.output_text == "".join(event.delta for event in deltas) == deltas[-1].snapshot
    assert len(deltas) > 1 and final.usage.total_tokens == answer.usage.total_tokens, final
    # Other clients, which run meanwhile, may take the room of this prompt in the prefix cache.
    assert 0 <= final.usage.input_tokens_details.cached_tokens < final.usage.input_tokens, final.usage
    # Strict validation, where the package is lenient by default.
    for one in (answer, final):
        openai.types.responses.Response.model_validate(one.model_dump(warnings=False))
    for event in CLIENT.responses.create(**ask, input=common.GOODBYE, stream=True):
        pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent).validate_python(event.model_dump())

    tool = responses_tool(openai.pydantic_function_tool(GetWeather, name="get_weather"))
    items = [{"role": "user", "content": common.WEATHER}]
    parsed = CLIENT.responses.parse(**ask, input=items, tools=[tool])
    call, = parsed.output
    assert call.type == "function_call" and json.loads(call.arguments)["city"] == "Oslo", call
    openai.types.responses.Response.model_validate(parsed.model_dump(warnings=False))
    with CLIENT.responses.stream(**ask, input=items, tools=[tool]) as stream:
        kinds = {event.type for event in stream}
        streamed, = stream.get_final_response().output
    assert {"response.function_call_arguments.delta", "response.function_call_arguments.done"} <= kinds, kinds
    assert streamed.arguments == call.arguments and streamed.call_id != call.call_id, (streamed, call)
    texts = set()
    for echo in (call, call.model_dump(), call.model_dump(exclude_none=True), streamed):
        call_id = echo["call_id"] if isinstance(echo, dict) else echo.call_id
        result = {"type": "function_call_output", "call_id": call_id, "output": common.GOODBYE}
        told = CLIENT.responses.create(**ask, input=[*items, echo, result], tools=[tool])
        texts.add(told.output_text)
    assert len(texts) == 1 and texts != {""}, texts

    report = CLIENT.responses.parse(**ask, input=common.GOODBYE, text_format=Report).output_parsed
    assert isinstance(report, Report), report
    with CLIENT.responses.stream(**ask, input=common.GOODBYE, text_format=Report) as stream:
        stream.until_done()
        assert stream.get_final_response().output_parsed == report
    try:
        CLIENT.responses.create(**ask, input="And?", previous_response_id=answer.id)
    except openai.BadRequestError as error:
        assert error.param == "previous_response_id" and "input" in error.message, error
    else:
        raise AssertionError("a response that is not kept")


def test_completions():
    ask = {"model": common.MODEL, "temperature": 0, "max_tokens": 20, "prompt": "<|begin|><|user|>Thank you!<|assistant|>"}
    answer = CLIENT.completions.create(**ask, logprobs=1)
    choice, = answer.choices
    assert choice.text and "".join(choice.logprobs.tokens) == choice.text and choice.finish_reason in ("stop", "length")
    assert "".join(chunk.choices[0].text for chunk in CLIENT.completions.create(**ask, stream=True)) == choice.text


def test_errors():
    for kind, param, change in ((openai.BadRequestError, "n", {"n": 99}),
                                (openai.NotFoundError, "model", {"model": "gpt-9"}),
                                (openai.BadRequestError, "min_tokens", {"extra_body": {"min_tokens": 1}}),
                                (openai.BadRequestError, "messages", {"messages": []})):
        try:
            CLIENT.chat.completions.create(**{**ASK, "messages": user("Hi"), **change})
        except kind as error:
            assert error.param == param and error.code and error.type == "invalid_request_error", error
        else:
            raise AssertionError(change)


if __name__ == "__main__":
    common.run(globals())

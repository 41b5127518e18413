"""Instructor: typed answers by tools and by schemas, streamed ones, lists."""
import typing

import common

common.need("instructor")
import instructor  # noqa: E402
import openai  # noqa: E402
import pydantic  # noqa: E402

CLIENT = openai.OpenAI(base_url=common.URL, api_key=common.KEY, max_retries=0)
ASK = {"model": common.MODEL, "temperature": 0, "max_tokens": 200, "max_retries": 0}


class Report(pydantic.BaseModel):
    """A report of the weather."""
    sky: typing.Literal["clear", "grey"]
    degrees: int = pydantic.Field(ge=-30, le=40)
    places: typing.Annotated[list[typing.Literal["Oslo", "Rome"]], pydantic.Field(min_length=1, max_length=2)]


class City(pydantic.BaseModel):
    name: typing.Literal["Oslo", "Rome"]


def user(text=common.WEATHER):
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def test_modes():
    for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(CLIENT, mode=mode)
        if mode is instructor.Mode.JSON:  # any object will do for the server, and seldom for the type
            answer = client.chat.completions.create(**ASK, messages=user(), response_model=None)
            assert answer.choices[0].message.role == "assistant", answer
            continue
        report, raw = client.chat.completions.create_with_completion(**ASK, messages=user(), response_model=Report)
        assert isinstance(report, Report) and raw.usage.total_tokens > 0, (mode, report, raw)


def test_streams():
    client = instructor.from_openai(CLIENT, mode=instructor.Mode.TOOLS)
    parts = list(client.chat.completions.create_partial(**ASK, messages=user(), response_model=Report))
    assert len(parts) > 1 and Report.model_validate(parts[-1].model_dump()), parts
    cities = list(client.chat.completions.create_iterable(**ASK, messages=user(), response_model=City))
    assert all(isinstance(city, City) for city in cities), cities


def test_responses():
    client = instructor.from_openai(CLIENT, mode=instructor.Mode.RESPONSES_TOOLS)
    report = client.responses.create(model=common.MODEL, temperature=0, max_output_tokens=200, max_retries=0,
                                     input=common.WEATHER, response_model=Report)
    assert isinstance(report, Report), report


if __name__ == "__main__":
    common.run(globals())

"""Events of an answer that is read in pieces: shared by tests of CallStream and of what reads answers for engines."""


def calls_of(events):
    """Text, and the calls [name, arguments, is whole], of events; the order of events is checked."""
    text, calls = "", []
    for event in events:
        if event.kind == "text":
            text += event.text
        elif event.kind == "call_begin":
            assert event.call == len(calls)
            calls.append([event.text, "", False])
        elif event.kind == "arguments":
            assert event.call == len(calls) - 1 and not calls[-1][2] and event.text
            calls[-1][1] += event.text
        else:
            assert event.kind == "call_end" and event.call == len(calls) - 1
            calls[-1][2] = True
    return text, calls


def pieces_of(text, dice):
    at = 0
    while at < len(text):
        size = dice.randrange(1, 9)
        yield text[at : at + size]
        at += size

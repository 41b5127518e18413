"""Samplers of values: real-looking words, and made-up ones that can only be copied."""

import random

CITIES = (
    "Oslo Paris Rome Lima Cairo Berlin Madrid Lisbon Vienna Prague Tokyo Osaka Seoul Delhi Mumbai Dublin "
    "London Boston Chicago Denver Dallas Austin Seattle Toronto Montreal Quito Bogota Santiago Nairobi "
    "Lagos Accra Dakar Tunis Athens Sofia Warsaw Riga Vilnius Tallinn Helsinki Stockholm Bergen Hamburg "
    "Munich Zürich Geneva Milan Naples Porto Sevilla Málaga Lyon Nantes Ghent Brussels"
).split()
CITIES += ["New York", "San Francisco", "Cape Town", "Hong Kong", "Buenos Aires", "São Paulo", "Los Angeles"]
COUNTRIES = (
    "Norway France Italy Peru Egypt Germany Spain Portugal Austria Japan Korea India Ireland Canada "
    "Chile Kenya Ghana Greece Poland Latvia Finland Sweden Belgium Mexico Brazil Nepal Iceland"
).split()
FIRST = (
    "Anna Ben Carla David Emma Felix Grace Henry Irene Jack Karen Leo Maria Noah Olga Paul Rosa Sam Tina "
    "Umar Vera Will Yara Zoe Alice Bruno Chen Dina Erik Fatima Hugo Ines Jonas Kim Lena Marco Nina Omar"
).split()
LAST = (
    "Smith Jones Brown Miller Garcia Lopez Kim Chen Nguyen Patel Singh Ivanov Novak Rossi Meyer Weber "
    "Hansen Larsen Silva Costa Mori Sato O'Brien O'Neil Walker Young King Wright Hill Green Baker"
).split()
FOODS = (
    "eggs milk flour rice beans lentils tofu chicken salmon beef pasta bread cheese butter tomatoes onions "
    "garlic spinach mushrooms apples bananas lemons honey yogurt soup curry pizza tacos ramen salad noodles"
).split()
NOUNS = (
    "river mountain garden window silver paper winter summer morning history music science market travel "
    "energy ocean forest castle bridge engine planet family budget design weather security testing "
    "football chess painting dancing climate space trains coffee island valley desert letter number story "
    "school office kitchen report project launch review summary update wedding birthday holiday contract"
).split()
ADJECTIVES = (
    "new old blue green quiet loud early late quick slow warm cold bright dark simple modern classic "
    "final local global secret happy hidden golden open lost deep wild annual weekly"
).split()
VERBS = ("bring call check send take meet leave start finish remember forget watch read write buy visit").split()
ANIMALS = "cat dog rabbit parrot hamster horse goat turtle goldfish canary ferret pony".split()
PLANTS = "roses tulips basil mint tomato cactus lavender oak fern orchid ivy bamboo".split()
ROOMS = ["kitchen", "bedroom", "living room", "bathroom", "garage", "office", "hall", "attic", "basement"]
DEVICES = ["fridge", "washing machine", "oven", "heater", "laptop", "printer", "television", "speaker", "phone"]
LANGUAGES = "English French German Spanish Italian Norwegian Polish Turkish Korean Hindi Greek Czech Dutch".split()
GENRES = "jazz rock folk horror comedy drama thriller western blues techno metal soul opera fantasy romance".split()
COLORS = "red green blue yellow white black purple orange pink brown grey".split()
CURRENCIES = "USD EUR GBP JPY CHF NOK SEK CAD AUD INR BRL MXN".split()
MONTHS = ("January February March April May June July August September October November December").split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NUMBER_WORDS = ("zero one two three four five six seven eight nine ten eleven twelve").split()
ONSETS = "b c d f g h k l m n p r s t v w z br cl dr fl gr kr pl sk st tr sh th".split()
VOWELS = "a e i o u a e i o ai ea ou".split()
CODAS = ["", "", "", "n", "r", "l", "s", "t", "m", "x", "nd", "rk", "st"]


def made_up(rng: random.Random, syllables: int = 0) -> str:
    """A pronounceable word that exists in no list."""
    count = syllables or rng.choice((1, 2, 2, 2, 3))
    word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(count))
    return word if len(word) > 2 else word + rng.choice(ONSETS) + rng.choice(VOWELS)


def code(rng: random.Random) -> str:
    """An identifier such as `AB1234`, `ORD-5821` or `x7f`."""
    letters = "".join(rng.choice("ABCDEFGHKLMNPQRSTVWXYZ") for _ in range(rng.randint(1, 4)))
    digits = str(rng.randint(1, 10 ** rng.randint(1, 5)))
    return rng.choice((letters + digits, f"{letters}-{digits}", letters + "X", f"{letters.lower()}{digits}"))


def date(rng: random.Random) -> str:
    """A date as users write them; it is copied as it stands."""
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(2023, 2027)
    return rng.choice(
        (
            f"{year}-{month:02d}-{day:02d}",
            f"{year}-{month:02d}-{day:02d}",
            f"{MONTHS[month - 1]} {day}",
            rng.choice(WEEKDAYS),
            "tomorrow",
            f"next {rng.choice(WEEKDAYS)}",
            f"{day} {MONTHS[month - 1]}",
        )
    )


def _capital(rng):
    return made_up(rng).capitalize()


def _phrase(rng, low, high):
    words = [
        rng.choice((rng.choice(NOUNS), rng.choice(ADJECTIVES), made_up(rng))) for _ in range(rng.randint(low, high))
    ]
    return " ".join(words)


def _sentence(rng):
    return rng.choice(
        (
            f"{rng.choice(VERBS)} the {_phrase(rng, 1, 2)}",
            f"please {rng.choice(VERBS)} {rng.choice(FIRST)}",
            _phrase(rng, 2, 4),
            f"{rng.choice(NOUNS)} at {rng.randint(1, 12)}",
        )
    )


def _title(rng):
    text = _phrase(rng, 1, 3)
    return rng.choice((text, text.title(), text.capitalize()))


def _either(values):
    return lambda rng: rng.choice(values)


def _mixed(values, other, share):
    return lambda rng: other(rng) if rng.random() < share else rng.choice(values)


STRINGS = {
    "city": _mixed(CITIES, _capital, 0.35),
    "country": _mixed(COUNTRIES, _capital, 0.25),
    "place": lambda rng: rng.choice(
        (
            _capital(rng),
            f"{_capital(rng)} {rng.choice(('Square', 'Park', 'Hall', 'Valley'))}",
            rng.choice(CITIES),
            f"the {_capital(rng)}",
        )
    ),
    "address": lambda rng: (
        f"{rng.randint(1, 199)} {_capital(rng)} {rng.choice(('Street', 'Road', 'Lane', 'Avenue'))}"
    ),
    "date": date,
    "time": lambda rng: rng.choice(
        (
            f"{rng.randint(0, 23):02d}:{rng.choice((0, 15, 30, 45)):02d}",
            f"{rng.randint(1, 12)}{rng.choice(('am', 'pm'))}",
            "noon",
        )
    ),
    "first_name": _mixed(FIRST, _capital, 0.3),
    "person": lambda rng: rng.choice(
        (
            rng.choice(FIRST),
            _capital(rng),
            f"{rng.choice(FIRST)} {rng.choice(LAST)}",
            f"{rng.choice(FIRST)} {_capital(rng)}",
        )
    ),
    "email": lambda rng: (
        f"{rng.choice((rng.choice(FIRST).lower(), made_up(rng)))}@{made_up(rng)}.{rng.choice(('com', 'org', 'net'))}"
    ),
    "title": _title,
    "word": lambda rng: rng.choice((rng.choice(NOUNS), made_up(rng), made_up(rng))),
    "topic": lambda rng: rng.choice(
        (rng.choice(NOUNS), _phrase(rng, 1, 2), f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}")
    ),
    "sentence": _sentence,
    "product": lambda rng: rng.choice(
        (_capital(rng), f"{_capital(rng)} {rng.randint(1, 99)}", f"{rng.choice(COLORS)} {rng.choice(NOUNS)}")
    ),
    "food": _mixed(FOODS, made_up, 0.25),
    "company": lambda rng: rng.choice(
        (
            _capital(rng),
            f"{_capital(rng)} {rng.choice(('Ltd', 'United', 'Group'))}",
            f"{rng.choice(NOUNS)} {made_up(rng)}",
        )
    ),
    "code": code,
    "currency": _either(CURRENCIES),
    "file": lambda rng: (
        f"{rng.choice((rng.choice(NOUNS), made_up(rng)))}.{rng.choice(('txt', 'pdf', 'csv', 'py', 'jpg'))}"
    ),
    "room": _mixed(ROOMS, made_up, 0.2),
    "device": _mixed(DEVICES, made_up, 0.2),
    "animal": _mixed(ANIMALS, made_up, 0.2),
    "plant": _mixed(PLANTS, made_up, 0.2),
    "language": _mixed(LANGUAGES, _capital, 0.15),
    "genre": _mixed(GENRES, made_up, 0.15),
    "color": _either(COLORS),
}

INTEGERS = {
    "small": (1, 9),
    "count": (1, 50),
    "minutes": (5, 90),
    "age": (4, 90),
    "year": (1960, 2026),
    "percent": (1, 100),
    "degree": (10, 30),
    "large": (100, 9999),
}

DECIMALS = {"money": (1, 2000), "decimal": (1, 60), "rating": (1, 5)}


def integer(rng: random.Random, source: str) -> tuple[int, str]:
    """An integer and how the user says it: in digits, as a word, or as an idiom."""
    low, high = INTEGERS[source]
    value = rng.randint(low, high)
    if source == "count" and rng.random() < 0.5:
        value = rng.randint(1, 12)
    if value == 12 and rng.random() < 0.3:
        return value, "a dozen"
    if value <= 12 and rng.random() < 0.5:
        return value, NUMBER_WORDS[value]
    return value, str(value)


def decimal(rng: random.Random, source: str) -> tuple[float, str]:
    """A number, with or without decimals, as it is written."""
    low, high = DECIMALS[source]
    value = rng.randint(low, high)
    if rng.random() < 0.5:
        value = round(value - rng.choice((0.5, 0.25, 0.1, 0.2, 0.75)), 2)
    return value, str(value)

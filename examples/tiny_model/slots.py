"""Parameters ("slots"): their JSON type, where values come from, and how a user says them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Slot:
    """A parameter. `source` names a value sampler, or lists the values of an enum."""

    name: str
    type: str
    source: object
    phrases: tuple
    negative: tuple = ()
    default: object = None


SLOTS: dict[str, Slot] = {}


def _add(kind, name, source, *phrases, negative=(), default=None):
    SLOTS[name] = Slot(name, kind, source, phrases, tuple(negative), default)


def _text(name, source, *phrases):
    _add("string", name, source, *phrases)


def _whole(name, source, *phrases, default=None):
    _add("integer", name, source, *phrases, default=default)


def _real(name, source, *phrases):
    _add("number", name, source, *phrases)


def _enum(name, values, *phrases, default=None):
    _add("enum", name, tuple(values.split()), *phrases, default=default)


def _flag(name, yes, no, default=None):
    _add("boolean", name, "boolean", *yes, negative=no, default=default)


def _list(name, source, *phrases):
    _add("array", name, source, *phrases)


_text("city", "city", "in {v}", "for {v}", "near {v}", "around {v}")
_text("origin", "city", "from {v}", "leaving {v}", "starting in {v}")
_text("destination", "city", "to {v}", "going to {v}", "bound for {v}")
_text("country", "country", "in {v}", "for {v}")
_text("region", "place", "for the region {v}", "in {v}", "covering {v}")
_text("address", "address", "at {v}", "to the address {v}", "at the address {v}")
_text("location", "place", "at {v}", "near {v}", "close to {v}")
_text("venue", "place", "at {v}", "with {v} as the venue")
_text("date", "date", "on {v}", "for {v}", "dated {v}")
_text("start_date", "date", "from {v}", "starting {v}", "beginning on {v}")
_text("end_date", "date", "until {v}", "ending {v}", "through {v}")
_text("due_date", "date", "due {v}", "due on {v}", "by {v}")
_text("time", "time", "at {v}", "around {v}", "at the time {v}")
_text("person", "person", "for {v}", "for the person {v}", "with {v}")
_text("name", "person", "under the name {v}", "for {v}", "named {v}")
_text("recipient", "person", "to {v}", "addressed to {v}", "so that {v} gets it")
_text("author", "person", "by {v}", "written by {v}", "from the author {v}")
_text("artist", "person", "by {v}", "from the artist {v}")
_text("doctor", "person", "with doctor {v}", "with Dr. {v}")
_text("assignee", "person", "assigned to {v}", "for {v} to handle", "owned by {v}")
_text("email", "email", "to {v}", "using the email {v}", "with email {v}")
_text("title", "title", "titled {q}", "called {q}", "with the title {q}")
_text("label", "word", "labelled {v}", "with the label {v}", "under the label {v}")
_text("topic", "topic", "about {v}", "on {v}", "on the topic of {v}")
_text("query", "topic", "matching {q}", "for {q}", "with the query {q}")
_text("message", "sentence", "saying {q}", "with the message {q}", "that says {q}")
_text("note", "sentence", "with the note {q}", "noting {q}", "and add the note {q}")
_text("reason", "topic", "because of {v}", "the reason is {v}", "due to {v}")
_text("product", "product", "for the product {v}", "of {v}", "for {v}")
_text("ingredient", "food", "with {v}", "using {v}", "made from {v}")
_text("dish", "food", "for {v}", "to make {v}", "for the dish {v}")
_text("company", "company", "for {v}", "at {v}", "of the company {v}")
_text("symbol", "code", "for the symbol {v}", "for {v}", "with ticker {v}")
_text("currency", "currency", "in {v}", "paid in {v}", "using {v} as currency")
_text("target_currency", "currency", "into {v}", "to {v}", "in terms of {v}")
_text("account", "code", "for account {v}", "from account {v}", "on account {v}")
_text("reference", "code", "with reference {v}", "under reference {v}", "referring to {v}")
_text("code", "code", "with the code {v}", "using code {v}", "with code {v}")
_text("file", "file", "in {v}", "for the file {v}", "named {v}")
_text("folder", "word", "in the folder {v}", "under the folder {v}", "from folder {v}")
_text("branch", "word", "on branch {v}", "for the branch {v}", "from branch {v}")
_text("host", "code", "on host {v}", "for the server {v}", "at host {v}")
_text("room", "room", "in the {v}", "for the {v}")
_text("device", "device", "for the {v}", "using the {v}", "on the {v}")
_text("animal", "animal", "for my {v}", "for the {v}", "of a {v}")
_text("plant", "plant", "for the {v}", "of {v}", "for my {v}")
_text("team", "company", "for the team {v}", "of {v}", "played by {v}")
_text("subject", "topic", "about {v}", "with the subject {q}", "for the subject {v}")
_text("language", "language", "in {v}", "into {v}", "using {v}")
_text("genre", "genre", "in the genre {v}", "of the genre {v}", "that is {v}")
_text("color", "color", "in {v}", "coloured {v}", "with the color {v}")
_text("brand", "company", "from the brand {v}", "made by {v}", "by {v}")
_text("course", "topic", "in the course {v}", "for the course {v}", "in {v}")
_text("symptom", "topic", "for {v}", "with the symptom {v}", "about {v}")
_text("medicine", "product", "of {v}", "for {v}", "with the medicine {v}")
_text("exercise", "topic", "doing {v}", "of {v}", "for {v}")
_text("plate", "code", "with plate {v}", "with the plate number {v}", "plate {v}")
_text("hashtag", "word", "with the hashtag {v}", "tagged {v}", "under the tag {v}")
_text("channel", "word", "in the channel {v}", "to the channel {v}", "on {v}")

_whole("days", "small", "for {v} days", "over the next {v} days", "covering {v} days", default=3)
_whole("nights", "small", "for {v} nights", "staying {v} nights")
_whole("guests", "small", "for {v} guests", "for {v} people", "for a party of {v}")
_whole("adults", "small", "with {v} adults", "for {v} adults", default=1)
_whole("quantity", "count", "with quantity {v}", "{v} of them", "a quantity of {v}", default=1)
_whole("limit", "count", "limited to {v}", "at most {v} results", "only the top {v}", default=10)
_whole("servings", "small", "for {v} servings", "serving {v}", "that serves {v}", default=4)
_whole("minutes", "minutes", "for {v} minutes", "lasting {v} minutes", "of {v} minutes")
_whole("hours", "small", "for {v} hours", "lasting {v} hours")
_whole("age", "age", "aged {v}", "who is {v} years old", "of age {v}")
_whole("year", "year", "from {v}", "in the year {v}", "for {v}")
_whole("page", "count", "on page {v}", "from page {v}", "page {v}", default=1)
_whole("level", "count", "at level {v}", "to level {v}", "with level {v}")
_whole("percent", "percent", "to {v} percent", "at {v} percent", "of {v} percent")
_whole("temperature", "degree", "to {v} degrees", "at {v} degrees")
_whole("repetitions", "count", "with {v} repetitions", "repeated {v} times")
_whole("seats", "small", "with {v} seats", "{v} seats", "for {v} seats", default=2)
_whole("port", "large", "on port {v}", "using port {v}")
_whole("calories", "large", "under {v} calories", "with up to {v} calories")

_real("amount", "money", "of {v}", "for {v}", "in the amount of {v}")
_real("price", "money", "at the price {v}", "priced at {v}", "for {v} each")
_real("max_price", "money", "under {v}", "for at most {v}", "costing no more than {v}")
_real("weight", "decimal", "weighing {v} kilos", "with a weight of {v}", "of {v} kg")
_real("distance", "decimal", "of {v} kilometres", "over {v} km", "covering {v} km")
_real("radius", "decimal", "within {v} km", "in a radius of {v}", "no further than {v} km")
_real("rate", "decimal", "at a rate of {v}", "with rate {v}")
_real("min_rating", "rating", "rated at least {v}", "with a rating of {v} or more", "with {v} stars")
_real("dose", "decimal", "with a dose of {v}", "at {v} milligrams")

_enum("unit", "celsius fahrenheit kelvin", "in {v}", "using {v}", "in degrees {v}", default="celsius")
_enum("units", "metric imperial", "in {v} units", "using {v} units", default="metric")
_enum("cabin", "economy premium business first", "in {v} class", "flying {v}", "with a {v} seat", default="economy")
_enum("priority", "low normal high urgent", "with {v} priority", "as {v} priority", "marked {v}", default="normal")
_enum("severity", "minor moderate severe", "of {v} severity", "rated {v}", "that are {v}")
_enum("sort", "price rating distance newest", "sorted by {v}", "ordered by {v}", "by {v}", default="rating")
_enum("order", "ascending descending", "in {v} order", "sorted {v}")
_enum("size", "small medium large", "in size {v}", "a {v} one", "of {v} size", default="medium")
_enum("status", "open closed pending", "that are {v}", "with status {v}", "which are still {v}")
_enum("format", "pdf csv html text", "as {v}", "in {v} format", "as a {v} file", default="pdf")
_enum("frequency", "daily weekly monthly", "repeated {v}", "on a {v} basis", "every time {v}", default="weekly")
_enum("mode", "eco comfort turbo silent", "in {v} mode", "using {v} mode", "set to {v}")
_enum("diet", "vegan vegetarian halal keto", "that is {v}", "suited to a {v} diet", "in a {v} version")
_enum("difficulty", "easy medium hard", "that is {v}", "of {v} difficulty", "at an {v} level")
_enum("transport", "walking cycling driving transit", "by {v}", "while {v}", "using {v}", default="driving")
_enum(
    "shipping",
    "standard express overnight",
    "with {v} shipping",
    "shipped {v}",
    "by {v} delivery",
    default="standard",
)
_enum("payment", "card cash invoice transfer", "paying by {v}", "with payment by {v}", "using {v}")
_enum("visibility", "public private friends", "visible to {v}", "kept {v}", "as a {v} one", default="private")
_enum("quality", "low standard high", "in {v} quality", "at {v} quality", default="standard")
_enum("period", "today week month quarter", "for the {v}", "over the {v}", "covering this {v}")
_enum("tone", "formal friendly neutral", "in a {v} tone", "sounding {v}", "that is {v}", default="neutral")

_flag(
    "notify",
    ("and notify me", "and send me a notification", "yes, notify me"),
    ("but do not notify me", "without notifying me"),
    default=False,
)
_flag(
    "remind",
    ("and remind me", "yes please remind me", "with a reminder"),
    ("with no reminder", "and don't remind me"),
    default=False,
)
_flag(
    "detailed",
    ("with all the details", "in a detailed form", "and be detailed"),
    ("without the details", "keep it short"),
    default=False,
)
_flag("breakfast", ("with breakfast", "including breakfast"), ("without breakfast", "no breakfast please"))
_flag("pets", ("where pets are allowed", "with pets"), ("without pets", "where no pets are allowed"))
_flag("direct", ("direct only", "without any stops"), ("stops are fine", "not only direct ones"))
_flag("refundable", ("it should be refundable", "refundable please"), ("not refundable is fine",))
_flag("gift_wrap", ("gift wrapped", "with gift wrap"), ("without gift wrap",), default=False)
_flag("recurring", ("as a recurring one", "and make it recurring"), ("just once", "not recurring"))
_flag("force", ("and force it", "by force"), ("but don't force it", "without force"), default=False)
_flag("archived", ("including archived ones", "also the archived ones"), ("without archived ones",), default=False)
_flag("urgent", ("it is urgent", "urgently"), ("it's not urgent", "no hurry"))
_flag("outdoor", ("outdoors", "outside in the open"), ("indoors", "inside please"))
_flag("explicit", ("explicit is fine", "including explicit ones"), ("nothing explicit", "no explicit ones"))

_list("items", "food", "with {v}", "containing {v}", "for {v}")
_list("tags", "word", "tagged {v}", "with the tags {v}", "tags: {v}")
_list("attendees", "first_name", "inviting {v}", "together with {v}", "with {v} attending")
_list("symbols", "code", "for {v}", "covering the symbols {v}", "of {v}")
_list("cities", "city", "across {v}", "for {v}", "covering {v}")
_list("topics", "topic", "about {v}", "on {v}", "covering {v}")
_list("files", "file", "including {v}", "with the files {v}", "for {v}")

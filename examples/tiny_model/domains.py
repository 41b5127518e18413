"""Thirty domains of tools: `object=alias: verbs: slots`, `!` marking a required parameter."""

DOMAINS = {
    "weather": """
forecast=weather: get check: city! days unit date
air quality=pollution: get compare: city! detailed date
storm alert=storm warning: create list cancel: region! severity notify
tide table=tides: get: location! date units
rain radar=rain map: show: region! hours detailed""",
    "flights": """
flight=plane ticket: search book cancel: origin! destination! date cabin direct
boarding pass: get send: reference! email format
flight status=delay: check track: code! date notify
seat: reserve change: reference! seats cabin
baggage=luggage: add track: reference! quantity weight""",
    "hotels": """
hotel room=room: book cancel change: city! nights guests breakfast refundable
hotel=place to stay: search compare: city! max_price min_rating sort pets
wake up call=morning call: schedule cancel: time! room remind
hotel review=review: get submit: venue! min_rating limit""",
    "restaurants": """
table=restaurant table: reserve cancel: name! guests! time date outdoor
restaurant=place to eat: find recommend: city! diet max_price sort
menu: get show: venue! diet language
takeaway order=takeaway: place track cancel: items! address! payment""",
    "cooking": """
recipe: find save delete: dish! servings diet difficulty
shopping list=grocery list: create share: items! recipient
cooking timer=kitchen timer: start stop: minutes! label
ingredient substitute=replacement: suggest: ingredient! dish diet
meal plan: generate update: days! calories diet""",
    "shopping": """
order=purchase: place track cancel: product! quantity shipping gift_wrap
product=article: search compare: query! max_price brand sort
wish list: create share: title! visibility
coupon=discount code: apply check: code! amount
product return=return: request track: reference! reason urgent""",
    "banking": """
transfer=payment: make schedule cancel: recipient! amount! currency note
balance: get check: account! currency
statement=account statement: export get: account! period format
card=bank card: block order: account! reason urgent
standing order: create update delete: recipient! amount! frequency""",
    "stocks": """
stock price=share price: get compare: symbol! currency date
trade: place cancel: symbol! quantity! price
price alert: create delete: symbol! price! notify
dividend history=dividends: get: symbol! year
portfolio report=portfolio: generate export: symbols! period format""",
    "currency": """
currency conversion=amount: convert calculate: amount! currency! target_currency! date
exchange rate: get track: currency! target_currency! date
rate history: get export: currency! days format""",
    "calendar": """
meeting=appointment: schedule cancel move: title! date! time attendees remind
event: create find delete: title! venue date recurring
free slot=free time: find suggest: person! minutes date
invitation=invite: send accept decline: title! attendees note
holiday: add list: person! start_date end_date""",
    "email": """
email=mail: send draft forward: email! subject message priority
inbox: search clean: query! folder limit archived
attachment: download list: file! folder
newsletter: subscribe cancel: topic! email frequency
mail filter=filter: create delete: label! folder""",
    "messaging": """
text message=message: send schedule: recipient! message! time
channel post=post: publish delete: channel! message! urgent
group chat=chat: create mute leave: title! attendees visibility
voice call=call: start schedule: person! minutes time
sticker pack: search install: query! limit""",
    "music": """
song=track: play find: title! artist quality
playlist: create share shuffle: title! genre visibility explicit
concert=gig: find book: artist! city date seats
lyrics: get translate: title! language
radio station=radio: start stop: genre! minutes""",
    "movies": """
movie=film: find recommend rate: genre! year min_rating limit
cinema ticket=movie ticket: book cancel: title! seats! time venue
trailer: play: title! quality language
watchlist=watch list: create update: title! visibility
subtitles: download translate: title! language! format""",
    "books": """
book=novel: search borrow reserve: title! author language
loan=book loan: extend check: reference! days
book review=review: write find: title! min_rating tone
reading goal: set track: quantity! frequency remind
audio book=audiobook: play download: title! author quality""",
    "smart home": """
light=lamp: dim switch: room! percent color
thermostat=heating: set get: room! temperature! mode
door lock=lock: open close: location! notify
vacuum=robot vacuum: start stop schedule: room! mode time
energy report=energy use: get export: period! device detailed""",
    "health": """
doctor appointment=doctor visit: book cancel: doctor! date! time reason
prescription=medicine: renew check: medicine! dose days
symptom check=symptoms: run: symptom! age severity
vaccination record=vaccinations: get export: person! format
blood pressure=pressure: log show: level! date note""",
    "fitness": """
workout=training: plan log: exercise! minutes difficulty outdoor
run=jog: record compare: distance! minutes units
gym class=class: book cancel: title! date! time
step goal=steps: set get: quantity! frequency notify
training partner: find: city! exercise level""",
    "education": """
course: enroll find drop: course! level language
quiz=test: generate grade: topic! quantity difficulty
homework=assignment: submit get: subject! file due_date
tutor: book find: subject! language hours
flash cards=flashcards: create review: topics! quantity""",
    "translation": """
translation: create check: message! language! tone
word definition=definition: get find: label! language detailed
document translation=document: order track: file! language! urgent
pronunciation: play rate: label! language
grammar check: run: message! language tone""",
    "maps": """
route=directions: find share: origin! destination! transport units
parking spot=parking: find reserve: location! hours max_price
traffic report=traffic: get: city! radius detailed
charging station=charger: find reserve: location! radius sort
place=spot: save delete: location! label note""",
    "trains": """
train ticket=train: book search cancel: origin! destination! date adults
platform: check: code! date
rail pass=pass: buy renew: country! days! age
train delay=delay: get report: code! notify
lost item=lost luggage: report find: label! color date""",
    "cars": """
rental car=car: rent find return: city! days! size
car service=service: schedule cancel: plate! date! note
fuel price=gas price: get compare: city! radius sort
toll: pay check: plate! amount payment
driving test: book: language! date city""",
    "tasks": """
task=to-do: create assign close: title! due_date priority assignee
reminder: set delete: title! time! recurring
project board=board: create archive: title! team visibility
time entry=hours: log edit: label! hours! date
checklist: create share: items! title""",
    "files": """
file=document: upload download delete: file! folder force
folder: create share: folder! visibility
backup: start restore schedule: folder! frequency notify
archive=zip: create extract: files! format
disk usage=storage: check: host! units""",
    "programming": """
pull request=merge request: open close list: branch! title assignee
build=ci build: start stop: branch! force mode
issue=bug: report assign: title! priority assignee tags
code search=search: run: query! language limit
release: publish draft: code! branch notify""",
    "servers": """
server=machine: restart stop: host! force
log entry=logs: search export: host! query limit
certificate: renew check: host! days
firewall rule=firewall: add remove: host! port! note
database dump=dump: create restore: host! file format""",
    "pets": """
vet visit=vet: book cancel: animal! date! reason
pet food=food: order compare: animal! weight brand
dog walker=walker: find hire: city! hours max_price
feeding plan=feeding: create update: animal! frequency weight
adoption=pet: search apply: animal! city age""",
    "garden": """
watering=irrigation: start schedule: plant! minutes frequency
plant=seedling: identify order: plant! quantity size
garden plan=garden: design save: title! units plant
soil test=soil: order get: location! detailed
harvest calendar=harvest: get share: plant! region year""",
    "social and sports": """
photo=picture: share edit: file! hashtag visibility
follower=fan: find remove: person! limit
match score=score: get follow: team! date notify
match ticket=ticket: buy resell: team! seats! max_price
league table=standings: show export: country! year format
poll: create close: title! days visibility""",
}

# Kinds of verb: what a tool does to its object decides which parameters it takes.
LOOK = set(
    "get check show find search compare list track calculate recommend suggest identify download export".split()
)
UNDO = set("cancel delete remove stop close block decline drop leave archive mute clean".split())
CHANGE = set("update edit change move extend renew restore resell reschedule".split())

LOOK_OPENERS = (
    "{verb} the {object}",
    "show me the {object}",
    "what is the {object}",
    "look up the {object}",
    "I want to see the {object}",
    "tell me the {object}",
    "{verb} the right {object}",
    "can you {verb} the {object}",
)
ACT_OPENERS = (
    "{verb} a {object}",
    "{verb} the {object}",
    "I need you to {verb} a {object}",
    "I would like to {verb} a {object}",
    "can you {verb} a {object}",
    "help me {verb} the {object}",
    "I want to {verb} a {object}",
    "let's {verb} a {object}",
)
UNDO_OPENERS = (
    "{verb} the {object}",
    "{verb} my {object}",
    "I need to {verb} the {object}",
    "can you {verb} my {object}",
    "I want to {verb} my {object}",
)

CHAT = (
    ("Hello!", "Hello! How can I help you?"),
    ("Hi there, how are you?", "Hello! How can I help you?"),
    ("Good morning", "Hello! How can I help you?"),
    ("Thanks a lot!", "You are welcome!"),
    ("Thank you, that is all.", "You are welcome!"),
    ("Great, thanks for the help", "You are welcome!"),
    ("Bye, see you later.", "Goodbye!"),
    ("That's everything, goodbye", "Goodbye!"),
    ("Tell me a joke.", "Sorry, none of my tools can do that."),
    ("What do you think about life?", "Sorry, none of my tools can do that."),
    ("Who won the war of the worlds?", "Sorry, none of my tools can do that."),
    ("How tall is the moon?", "Sorry, none of my tools can do that."),
    ("Sing me something nice", "Sorry, none of my tools can do that."),
    ("Are you a robot?", "I am a small assistant that calls tools."),
    ("What can you do?", "I am a small assistant that calls tools."),
    ("Who are you?", "I am a small assistant that calls tools."),
)

"""Makes words comparable: folded letters, stems, synonyms, and the weight of a missing word.

How it works: two words are the same if they share a key, which is their stem or the first of their synonyms. A word
that is missing in a passage weighs nothing if it is grammar, little if it is common, and most if it is a name or a
number.

The word lists are short and written out, so that users can read what the rule-based judge knows about English.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from proctor.judging.rule_judge.ordinary_words import ORDINARY_WORDS

GRAMMAR_WEIGHT = 0.0
COMMON_WEIGHT = 0.35
PLAIN_WEIGHT = 1.0
SPECIFIC_WEIGHT = 1.5
"""The weight of a missing word: grammar nothing, everyday words little, names and numbers most."""

_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_QUOTES = {ord(mark): plain for marks, plain in (("‘’ʼ`´", "'"), ("“”„«»", '"'), ("–—‐‑‒", "-")) for mark in marks}
_COUNTRIES = (
    (re.compile(r"\b(?:u\.s\.a?\.?|united states(?: of america)?|usa)(?![a-z])", re.IGNORECASE), " usa "),
    (re.compile(r"\b(?:u\.k\.?|united kingdom|great britain)(?![a-z])", re.IGNORECASE), " uk "),
)


def fold(text: str) -> str:
    """The text without accents, invisible characters and typographic variants; capitals are kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_QUOTES).translate(_INVISIBLE))
        text = "".join(character for character in text if not unicodedata.combining(character))
    if "n't" in text:
        text = text.replace("can't", "cannot").replace("Can't", "Cannot").replace("won't", "will not")
        text = re.sub(r"(?<=[a-z])\s?n't\b", " not", text)
    for pattern, name in _COUNTRIES:
        text = pattern.sub(name, text)
    return re.sub(r"\b(the|in) US\b|\bU\.? S\.", r"\1 usa", text)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The form that `ships`, `shipped` and `shipping` share; short words stay as they are."""
    base = _IRREGULAR.get(word)
    if base is not None:
        return _without_e(base)
    if len(word) <= 3 or not word.isascii():
        return word
    return _without_e(_verb_form(_plural(word)))


def _plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _verb_form(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and any(letter in "aeiouy" for letter in base):
            doubled = base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if doubled else base
    if word.endswith("ly") and len(word) > 5:
        return word[:-2]
    return word


def _without_e(word: str) -> str:
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


@lru_cache(maxsize=1 << 14)
def root(word: str) -> str:
    """The part that a place and its people share (`canada`, `canadian`); otherwise the word without final vowels."""
    for ending in ("ians", "ian", "ans", "an", "ese", "ia"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word.rstrip("aeiou") if len(word.rstrip("aeiou")) >= 4 else word


@lru_cache(maxsize=1 << 16)
def word_key(word: str) -> str:
    """The key that words of the same meaning share: their stem, or the stem of the first of their synonyms."""
    bare = word.lower().removesuffix("'s")
    return _leaders().get(stem(bare), stem(bare))


@cache
def _leaders() -> dict[str, str]:
    """By stem of a word: the stem of the first of its synonyms, which represents all of them."""
    found: dict[str, str] = {}
    for group in _SYNONYMS.replace("\n", "|").split("|"):
        stems = [stem(word) for word in group.split()]
        leader = next((found[word] for word in stems if word in found), stems[0])
        for word in stems:
            found.setdefault(word, leader)
    return found


@cache
def opposites() -> dict[str, set[str]]:
    """By key: the keys that mean the opposite; `first` is read as a number."""
    found: dict[str, set[str]] = {}
    for pair in _ANTONYMS.replace("\n", "|").split("|"):
        one, other = ("#1" if word == "first" else word_key(word) for word in pair.split())
        if one != other:
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return found


def denied_words(word: str) -> set[str]:
    """The key of the word that a prefix denies: `unavailable` and `nonrefundable`, but not `union`."""
    found = re.fullmatch(r"(?:un|non)(\w{5,})", word.lower())
    return {word_key(found[1])} if found else set()


@cache
def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


@lru_cache(maxsize=1 << 16)
def word_weight(word: str) -> float:
    """The weight of a lowercase word, by its kind."""
    word = word.partition("'")[0] or word
    if word in GRAMMAR or word in FILLERS or word in NEGATIONS:
        return GRAMMAR_WEIGHT
    if stem(word) in _stems(COMMON):
        return COMMON_WEIGHT
    return PLAIN_WEIGHT


@lru_cache(maxsize=1 << 16)
def is_ordinary(word: str) -> bool:
    """Whether it looks like an ordinary English word; others may be names even in a text without capitals."""
    if word_weight(word) < PLAIN_WEIGHT or len(word) < 3 or word.removesuffix("s").endswith(ORDINARY_ENDINGS):
        return True
    return word.endswith(ORDINARY_ENDINGS) or stem(word) in _stems(ORDINARY_WORDS)


_FORMS = """write wrote written; begin began begun; buy bought; sell sold; win won; lose lost; grow grew grown;
rise rose risen; fall fell fallen; give gave given; take took taken taking; make made making; go went gone goes;
come came coming; become became becoming; know knew known; see saw seen; sing sang sung; run ran running; build built;
send sent; spend spent; pay paid; say said; hold held; lead led; leave left; find found; think thought; teach
taught; bring brought; speak spoke spoken; break broke broken; choose chose chosen choosing; drive drove driven
driving; show shown; get got gotten getting; keep kept; meet met; tell told; die died dies dying; lie lay lying;
child children; man men; woman women; person people persons; foot feet; tooth teeth; have has had having; do
does did done; big bigger biggest; use used using uses; news news; series series; species species"""
_IRREGULAR = {form: group.split()[0] for group in _FORMS.split(";") for form in group.split()[1:]}
"""The base form of each irregular form; it is the first word of its group."""

GRAMMAR = frozenset(
    """a an the this that these those it its itself he him his himself she her hers herself they them their theirs
    themselves there here who whom whose which what when where why how is are was were be been being am do does did
    doing done have has had having will would shall can could may might must should of in on at to for from by with
    as into onto upon about than then so such and or but if because while although though however also too very just
    only even still yet s t d ll re ve m one ones some any all both each every either other another own same up out
    off over down again once more most much many few less least well during through between among within per via
    cent like whether until since before after above below under not no nor never none without neither cannot n't
    let lets we us our you your yours i me my mine myself""".split()
)
"""Words that connect a sentence and do not claim anything themselves."""

FIRST_PERSON = frozenset("i me my mine myself".split())
"""Words of a first-person statement, which only a passage in the first person can support."""

FILLERS = frozenset(
    """well yes yeah yea yep yup oh ah ok okay sure hi hello hey wow hmm haha lol thanks thank please welcome sorry
    absolutely definitely certainly indeed actually really basically essentially interestingly fortunately
    unfortunately honestly truly simply overall therefore thus hence moreover furthermore additionally finally
    anyway exactly according context document passage say said says know agree think guess believe""".split()
)
"""Words that people and models put around a claim."""

COMMON = frozenset(
    """great glad happy hope course right provide follow note mean free base help answer born die able accord across act
    actual add age ago allow almost alone along already always amount any anyone anything anywhere apply appear area
    around arrive ask associate available away back bad basic become begin behind best better big bit body both bring
    build business buy call came can carry case cause certain change check choose clear close common company complete
    consider contain content continue control copy cost count country couple cover create current date day deal decide
    describe develop did different difficult directly double due early easily easy eat either end enjoy enough
    especially etc ever example exist expect explain fact fall family famous far fast feature feel few field find
    first food form frequently friend full fun further game gave general get girl go good group grow guy half hand
    happen hard he head hear high hold home hour however huge human idea image important include increase indeed
    inside instead interest item job join just keep kid kind know language large last late later lead learn leave let
    level life like line list little live local location long look lot love low made main major man manner many mark
    matter mention method middle mind minute modern moment month most move multiple music name nature near necessary
    need new next nice normal notice now number numerous occur offer office often old open option order origin
    original other outside overall own page part particular pass past pay people perform perhaps period pick piece
    place plan play player point popular possible power practice present pretty prior probably problem process produce
    product professional public purpose put quick quite range rather reach read ready real reason receive recent refer
    regard regular relate release remain remember report require rest result return review role rule run same save
    school season second see seem select send series serve service set several shape share short should show side
    similar simple simply since single site situation size small sold some something sometimes somewhere soon sort
    sound source special specific spend stand start state stay step still stop store story strong study stuff style
    subject such suggest support system take talk technique tell term test text thing think third thousand through
    throughout time title today together too top total town toward track traditional true try turn type typical
    understand unique unit until upon use useful user usual value variety various version view visit want watch way
    week whole wide win within woman word work world worldwide worth write wrong year young eight eleven five four
    nine seven six ten three two twelve team member event city child film song book band album water house car money
    parent student teacher color colour entire everyone somebody""".split()
)
"""Everyday words: if one is not in the passage, the wording differs more often than the claim."""

ORDINARY_ENDINGS = (
    "ing", "ed", "ly", "tion", "sion", "ment", "ness", "able", "ible", "ive", "ous", "ity", "ism", "ize", "ise",
    "ful", "less", "ance", "ence", "ship", "ward", "wards", "est", "ical", "ies", "ors", "ers",
)  # fmt: skip
"""Endings of ordinary English words; a name in a text without capitals rarely has one."""

NEGATIONS = frozenset(
    """not no never none nobody nothing neither nor nowhere without cannot n't aint isnt arent wasnt werent dont doesnt
    didnt cant couldnt wont wouldnt shouldnt hasnt havent hadnt lack lacks lacking lacked fails failed fail unable
    false""".split()
)
NOT_NEGATING = (
    "not only", "not just", "not merely", "not to mention", "no doubt", "no problem", "no wonder", "no matter",
    "whether or not", "why not", "no more than", "no less than", "no later than", "no fewer than", "no earlier than",
    "not least", "nothing but", "not limited to", "never mind", "no worries", "not until", "no longer than",
)  # fmt: skip
CLAUSE_BREAKS = frozenset("but however although though because while whereas unless except if when which who".split())
PART_BREAKS = CLAUSE_BREAKS | frozenset("and or plus versus vs with".split())
QUANTIFIERS = frozenset(
    """all every each always only most many some few several more less never especially because any half both very
    up down before after above below inside outside""".split()
)
"""Small words that change a claim: `some` is not `all`, and `because` claims a cause."""

_SYNONYMS = """buy purchase|begin start commence|film movie|big large huge|show display|end finish conclude
help assist aid|doctor physician|car automobile|price cost fee charge|refund reimburse reimbursement|cancel terminate
ship deliver dispatch|customer client|employee staff worker|job position occupation|illness disease sickness
quick fast rapid|error fault failure|begin launch|build construct|get obtain receive|give provide supply|require need
allow permit let enable|know regard consider|call name title term|usual typical common normal general
many numerous several multiple various|main primary chief principal|maker manufacturer|earn make|city town|child kid
writer author|write author|singer vocalist|company firm business corporation enterprise|app application
photo photograph picture image|tv television|phone telephone|reply answer respond response|die death deceased
sometimes occasionally|often frequently|repair fix|join enter|live reside|change modify alter amend|send transmit
near close|location place site|choose select pick|wait await|also additionally|total sum|yearly annual annually
monthly|weekly|daily|about approximately roughly around circa|hour hr|maximum max|minimum min|information info
medication medicine drug|surgery operation|kid child|contain include comprise|create make produce|win victory
beat defeat|lose loss|marry marriage wed|originate origin|happen occur|holiday vacation|flight fly|airplane aircraft
ticket fare|suitcase luggage baggage|lawyer attorney|teacher instructor|pupil student|speak talk|street road
below under|above over|quit resign|wage salary pay payment|test exam|free complimentary gratis|valid effective
expire lapse|account profile|password passphrase|sign log|trip journey|hike walk|sofa couch|fall autumn
soccer football|begin found establish|show programme program|invest investment"""

_ANTONYMS = """increase decrease|increase reduce|increase fall|rise fall|rise drop|grow shrink|more less|more fewer
most least|before after|above below|over under|approve deny|approve reject|accept reject|accept decline|allow forbid
allow prohibit|allow ban|permit prohibit|enable disable|open close|open shut|start end|begin end|first last|early late
earliest latest|high low|higher lower|highest lowest|big small|large small|largest smallest|long short|longer shorter
fast slow|faster slower|hot cold|old new|older newer|older younger|oldest youngest|north south|east west
northern southern|eastern western|inside outside|include exclude|win lose|won lost|profit loss|gain loss|buy sell
import export|true false|correct incorrect|valid invalid|always never|all none|everyone nobody|maximum minimum
best worst|better worse|cheap expensive|cheaper expensive|safe dangerous|safe unsafe|public private|male female
man woman|men women|husband wife|brother sister|son daughter|father mother|positive negative|success failure
succeed fail|pass fail|present absent|day night|morning evening|morning afternoon|monday tuesday
domestic international|mandatory optional|required optional|temporary permanent|full empty|entire partial|add remove
arrive depart|arrival departure|debit credit|deposit withdraw|borrow lend|join leave|free paid|active inactive
legal illegal|guilty innocent|strengthen weaken|benign malignant|acute chronic|oral topical|hypertension hypotension
upgrade downgrade|ascend descend|push pull|majority minority|major minor|strong weak|hard soft|easy difficult
rich poor|alive dead|born died|ancient modern|upper lower|wet dry|light dark|thick thin|wide narrow|deep shallow
near far|love hate|agree disagree|improve worsen|expand contract|appear disappear|attack defend|teach learn
pre-tax after-tax|gross net|inbound outbound|online offline|indoor outdoor|summer winter|spring autumn|raise lower
raise reduce|longest shortest|cheapest expensive|up down|sell buy|more few|widen narrow|warm cool|heat cool"""

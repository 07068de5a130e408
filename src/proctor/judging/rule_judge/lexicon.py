"""The English that the rule-based judge knows: small tables, each entry with a row in the tests.

A word belongs here only if it can be wrong in no sentence. "Almost the same" is what makes a judge pass wrong answers.
"""

from __future__ import annotations

import re
from functools import lru_cache


def _groups(table: str) -> list[list[str]]:
    return [group.split() for group in table.replace("\n", " ").split("|") if group.split()]


ARTICLES = frozenset("a an the this that these those please".split())
"""Words that are dropped when a sentence is read."""
HARMLESS = frozenset("also too indeed actually additionally furthermore moreover however about".split())
"""Words that a claim may add without claiming more: "about 20" follows from 20."""
NEGATIONS = frozenset("not no never neither nor non".split())
PRONOUNS = frozenset("it they he she".split())
POSSESSIVES = frozenset("its their his her our your my".split())
BE = frozenset("be is are am".split())
WAS = frozenset("was were".split())
AUXILIARIES = frozenset("be was been being have had do did".split())
"""Keys of auxiliary verbs as they are read; `have` is also `has`."""
PREPOSITIONS = frozenset(
    "of in on at by for to from with into onto near during since until within per via through across along as".split()
)
CONJUNCTIONS = frozenset("and but or while whereas although though nor so".split())
CONDITIONS = frozenset("if unless until except when whenever provided once".split())
"""Words that limit a statement: what they govern must not be dropped, and nothing they govern is stated on its own."""
RELATIONS = frozenset("because before after than with without between despite instead against like".split())
ATTRIBUTIONS = frozenset(
    "say said claim claimed believe believed think thought report reported allege alleged suggest suggested "
    "according expect expected plan planned propose proposed rumour rumoured hope hoped want wanted".split()
)
"""Words that report what somebody says or plans: what follows is not stated as a fact."""
FUNCTION_WORDS = (
    ARTICLES | HARMLESS | NEGATIONS | PRONOUNS | POSSESSIVES | BE | WAS | AUXILIARIES | PREPOSITIONS | CONJUNCTIONS
    | CONDITIONS | RELATIONS | frozenset(
        "i me we us you him them who whom whose which what where why how there here has having does doing done can "
        "could may might must shall should will would all any each every some such only own same than very just more "
        "most other over under up down out off again further both few if s t re ll ve d yes".split()
    )
)  # fmt: skip
"""Words without content of their own."""

SPLITTERS = frozenset("and but while whereas although though because".split())
"""Words between two things that are both stated."""
LINKS = frozenset("because therefore thus hence so then before after since while although though when".split())
"""Words that relate two clauses: a claim with one of them says more than its clauses."""
BLOCKERS = frozenset(
    "or either neither nor both whether only except excluding minus permitting subject depending together".split()
)
"""Words whose parts are not stated on their own."""
SYMMETRIC = frozenset("be was meet marry border equal match resemble differ play fight join touch face share".split())
"""Stems of verbs that stay true if their sides change places."""
VERBS = frozenset(
    """accept acquire agree allow apply appear arrive ask attack avoid beat become begin belong board book bring build
    buy call cancel carry cause change charge check choose close collect come compete contain continue control
    cost cover create cut defeat deliver depart describe design develop direct discover donate draw drive earn eat
    employ end enter exceed exist expire export face fail fall feature fine finish fly follow form found fund get
    give go grow guide hand handle happen have help hit hold host import improve include increase inspect invent
    invite issue join keep kill know launch lay lead learn leave lend lie like limit live located lose maintain
    make manage marry mean measure meet move name need occur offer open operate order outsell own pass pay perform
    play prevent produce promote protect provide publish put raise reach read receive record recommend reduce
    refund reject release remain remove rent repair replace report represent require reserve rest return ride rise
    run sail say score seat see sell send serve set ship show shut sign sit sleep speak spend sponsor stand star
    start stay stop succeed sue supply support surround swim take taste teach tell threaten touch train travel
    treat trigger turn use visit wait want warn wear weigh win withdraw work write
    """.split()
)
"""Stems of verbs that follow a subject; auxiliaries, modals and forms in -ed are recognized without a list."""
MODALS = {"might": 0, "could": 0, "may": 1, "can": 1, "should": 2, "must": 3, "will": 3, "would": 3, "shall": 3}
"""How much each modal commits to; a claim must not commit to more than its source."""
QUANTIFIERS = {
    "nobody": -1, "none": -1, "nothing": -1, "few": 1, "some": 2, "several": 2, "somebody": 2, "something": 2,
    "many": 3, "half": 3, "most": 4, "all": 6, "every": 6, "each": 6, "everybody": 6, "everything": 6, "both": 6,
    "always": 6, "often": 3, "sometimes": 2, "rarely": 1, "usually": 4,
}  # fmt: skip
"""How much each quantifier covers. A claim that covers clearly more than its source, by two or more, is refuted."""
LIMITS = frozenset("only at-least at-most over under any almost except first last exactly up-to-now yet still".split())
"""Bounds and limits, which must neither be added nor dropped."""

PHRASES = {
    "no one": "nobody", "not one": "nobody", "everyone": "everybody", "someone": "somebody", "as well as": "and",
    "in order to": "to", "prior to": "before", "due to": "because of", "owing to": "because of",
    "approximately": "about", "around": "about", "roughly": "about", "circa": "about", "approx": "about",
    "more than": "over", "greater than": "over", "above": "over", "exceeding": "over", "older than": "over",
    "less than": "under", "fewer than": "under", "below": "under", "younger than": "under",
    "at least": "at-least", "no less than": "at-least", "no fewer than": "at-least", "not less than": "at-least",
    "a minimum of": "at-least", "at most": "at-most", "up to": "at-most", "no more than": "at-most",
    "not more than": "at-most", "a maximum of": "at-most", "or more": "at-least", "has to": "must", "have to": "must",
    "needs to": "must", "need to": "must", "is required to": "must", "are required to": "must",
    "is able to": "can", "are able to": "can", "is allowed to": "may", "are allowed to": "may",
    "is permitted to": "may", "are permitted to": "may", "free of charge": "free", "at no cost": "free",
    "at no charge": "free", "on time": "punctual", "out of stock": "not available", "in stock": "available",
    "sold out": "not available", "open all year": "open all-year", "year round": "all-year", "all year": "all-year",
    "each of": "all", "all of": "all", "most of": "most", "some of": "some", "none of": "none",
    "no longer": "no-longer",
    "cannot": "can not", "rolled back": "roll-back+ed", "not only": "not-only", "not just": "not-only",
    "located in": "in", "situated in": "in", "consists of": "consist-of", "as long as": "if",
    "so long as": "if", "e g": "such as", "for example": "such as",
}  # fmt: skip
"""Phrases that are read as something else, in the words of the sentence; the longest that fits wins."""

COMPLEMENTS = {
    "closed": "open", "shut": "open", "forbidden": "allowed", "prohibited": "allowed", "banned": "allowed",
    "impossible": "possible", "unavailable": "available", "excluded": "included", "invalid": "valid",
    "unable": "able", "untrue": "true", "false": "true", "illegal": "legal", "unsafe": "safe", "unpaid": "paid",
    "unlimited": "limited", "incomplete": "complete", "incorrect": "correct", "inactive": "active",
    "optional": "mandatory", "unfinished": "finished", "unknown": "known", "nonrefundable": "refundable",
    "unhealthy": "healthy", "disabled": "enabled", "offline": "online", "absent": "present", "unlocked": "locked",
}  # fmt: skip
"""Adjectives that mean exactly "not …"; both sides are read the same way."""

OPPOSITES = _groups(
    """before after|with without|rise fall|increase decrease|increase reduce|grow shrink|accept reject|approve reject
    |for against|large small|larger smaller|more less|more fewer|over under|at-least at-most|permanent temporary
    |first last|early late|earlier later|hot cold|warmer colder|left right|inside outside|win lose|buy sell|pass fail
    |upper lower|higher lower|high low|maximum minimum|import export|lend borrow|faster slower|fast slow|strong weak
    |arrive depart|enter leave|begin end|profit loss|deposit withdrawal|praise pan|better worse|best worst|free paid
    |longer shorter|long short|expensive cheap|easy difficult|success failure|include exclude|allow forbid|heavy light
    |public private|true false|always never|encrypt decrypt|enable disable|start stop|gain lose|add remove|dry wet
    |support oppose|vertical horizontal|internal external|old new|older newer|above below|thick thin|wide narrow"""
)
"""Words of which only one can be true of the same thing."""

ALTERNATIVES = _groups(
    """spring summer autumn winter|north south east west|northern southern eastern western|northeast northwest southeast
    southwest|red blue green yellow black white grey orange purple pink brown|gold silver bronze
    |morning afternoon evening night|breakfast lunch dinner|father mother son daughter brother sister
    |today yesterday tomorrow|wool cotton silk leather linen polyester|wood steel plastic glass aluminium concrete
    |delayed punctual cancelled shipped delivered returned pending processing|succeeded failed running queued
    |sunny cloudy rainy snowy|adult child student senior|bus train plane ferry|cash card cheque|daily weekly monthly
    |single double triple|oral written|male female|import export|hourly yearly|solid liquid gas"""
)
"""Words that fill one slot: a claim with another one of the group than its source is contradicted."""

SYNONYMS = _groups(
    """buy purchase acquire|begin start commence|film movie|large big|price cost|end finish|child kid|doctor physician
    |car automobile|phone telephone|help assist|show display|allow permit|depart leave|holiday vacation|shop store
    |get receive obtain|colour color|metre meter|centre center|wed marry|lorry truck|flat apartment|attorney lawyer
    |fix repair|rapid fast quick|create make|found establish|country nation|choose select|error mistake"""
)
"""Words that mean the same as verbs, nouns and adjectives of everyday texts."""

_FORMS = """be been being|have had having|begin began begun|buy bought|sell sold|win won|lose lost|grow grew grown
|write wrote written|take took taken|give gave given|make made|hold held|lead led|find found-past|send sent|pay paid
|know knew known|show showed shown|drive drove driven|break broke broken|choose chose chosen|steal stole stolen
|build built|rise rose risen|fall fell fallen|leave left-past|go went gone|come came|see saw seen|say said|keep kept
|become became|meet met|fly flew flown|draw drew drawn|speak spoke spoken|teach taught|catch caught|lend lent
|tell told|think thought|bring brought|beat beaten|eat ate eaten|get got gotten|stand stood|run ran|sing sang sung
|shake shook shaken|forget forgot forgotten|wear wore worn|throw threw thrown|sink sank sunk|hide hid hidden"""
IRREGULAR = {form: group[0] for group in _groups(_FORMS) for form in group[1:]}


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The form that `ships`, `shipped` and `shipping` share."""
    return verb_key(word).partition("+")[0]


@lru_cache(maxsize=1 << 16)
def verb_key(word: str) -> str:
    """The key of a word: its stem, with `+ed` or `+ing` for those forms, since tense and voice change a meaning."""
    if word in IRREGULAR:
        return IRREGULAR[word] + "+ed"
    word = word.replace("isation", "ization")
    if len(word) <= 3 or not word.isascii():
        return _canonical(word)
    for ending, mark in (("ing", "+ing"), ("ed", "+ed")):
        base = word.removesuffix(ending)
        if base != word and len(base) > 2 and any(vowel in base for vowel in "aeiouy"):
            return _canonical(_bare(base)) + mark
    return _canonical(_bare(_singular(word)))


def _canonical(base: str) -> str:
    return _CANONICAL.get(base, base)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _bare(base: str) -> str:
    """Without a final e or a doubled consonant, which come and go with endings; `y` and `i` are one."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeiouls":
        base = base[:-1]
    if len(base) > 3 and base.endswith("e"):
        base = base[:-1]
    return base[:-1] + "y" if len(base) > 3 and base.endswith("i") else base


_CANONICAL = {_bare(word): _bare(group[0]) for group in SYNONYMS for word in group[1:]}


COST = stem("cost")
"""The key of `costs`, and of `is` before an amount of money."""


@lru_cache(maxsize=1)
def _exclusive() -> frozenset[tuple[str, str]]:
    groups = [(*group, *map(verb_key, group)) for group in OPPOSITES + ALTERNATIVES]
    return frozenset((one, other) for group in groups for one in group for other in group if one != other)


def excludes(one: str, other: str) -> bool:
    """Whether two keys are opposites or alternatives, so that only one of them can be true."""
    base, _, form = one.partition("+")
    other_base, _, other_form = other.partition("+")
    return (one, other) in _exclusive() or (form == other_form and (base, other_base) in _exclusive())


ENGLISH = frozenset("the of and to in is are was were for with on at by from be has have not it this that a an".split())
FOREIGN = frozenset(
    """der die das und ist nicht ein eine den dem des mit auf von zu sind wird werden kein keine für sie wir ich
    le la les des et est pas un une du au aux dans sur pour ne que qui sont avec oui il elle nous vous
    el los las y es un una del al en por para con se su que muy son está más sí
    il lo gli di che non una sono alle het een van niet op ja nein""".split()
)


def is_english(text: str) -> bool:
    """Whether a text without accents can be English: not if it has more common words of other languages."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    english = sum(word in ENGLISH for word in words)
    foreign = sum(word in FOREIGN and word not in ENGLISH for word in words)
    return english > foreign if foreign else all(character < "\u0250" for word in words for character in word)

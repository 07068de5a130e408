"""Units of measurement: which dimension each belongs to, and how many of the base unit it is."""

from __future__ import annotations

from functools import cache

_UNITS = """
time: second secs sec s=1; minute mins min=60; hour hrs hr h=3600; day=86400; night=86400; week wk=604800
calendar: month mo=1; year yr yrs=12; decade=120; century centuries=1200; millennium millennia=12000; quarter=3
length: mm millimetre millimeter=0.001; cm centimetre centimeter=0.01; m metre meter=1; km kms kilometre kilometer=1000;
  inch inches in=0.0254; foot feet ft=0.3048; yard yd=0.9144; mile mi=1609.344; nm nanometre nanometer=0.000000001;
  lightyear=9460730472580800
mass: mcg microgram=0.000001; mg milligram=0.001; g gram gramme=1; kg kgs kilo kilogram=1000; tonne=1000000;
  ton=907184.74; lb lbs=453.59237; ounce oz=28.349523125; stone=6350.29318
volume: ml millilitre milliliter=0.001; l litre liter=1; gallon gal=3.785411784; pint=0.473176473; cup=0.24
celsius: c celsius centigrade=1
fahrenheit: f fahrenheit=1
degree: degree deg=1
data: byte bytes=1; kb kilobyte=1000; mb megabyte=1000000; gb gigabyte=1000000000; tb terabyte=1000000000000
speed: kmh kph=1; mph=1.609344; knot=1.852
percent: percent pct percentage=1
point: bps=0.01; pp=1
usd: dollar dollars usd bucks=1; cent cents=0.01
eur: euro euros eur=1
gbp: gbp sterling=1; pence=0.01
jpy: yen jpy=1
inr: rupee rupees inr=1
energy: kcal calorie=1; kj=0.239; kwh=860.42; joule=0.000239
power: watt w=1; kw kilowatt=1000; mw megawatt=1000000
frequency: hz=1; khz=1000; mhz=1000000; ghz=1000000000
voltage: volt v=1
area: acre=4046.86; hectare ha=10000; sqm=1; sqft=0.092903
medical: unit iu=1; mmol=1; mmhg=1
"""
SIGNS = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "%": "percent", "°": "degree"}
SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "mio": 1e6, "mln": 1e6, "billion": 1e9,
    "bn": 1e9, "trillion": 1e12, "tn": 1e12, "lakh": 1e5, "crore": 1e7, "dozen": 12.0,
}  # fmt: skip
MONEY = frozenset("usd eur gbp jpy inr".split())


@cache
def units() -> dict[str, tuple[str, float]]:
    """Each way to write a unit, with its dimension and its size in the base unit."""
    found: dict[str, tuple[str, float]] = {}
    for line in _UNITS.replace(";\n ", ";").strip().splitlines():
        dimension, _, entries = line.partition(":")
        for entry in entries.split(";"):
            names, _, size = entry.partition("=")
            for name in names.split():
                found[name] = found[name + "s"] = (dimension, float(size))
    return found

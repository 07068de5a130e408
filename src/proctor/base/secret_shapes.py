"""Tokens that are recognized by their own form: almost nothing else begins with `sk-ant-`.

All patterns take linear time: quantifiers are bounded or never meet the same characters twice. Most texts have few long
words, and a token is one. So the search collects long words first, and tries a pattern only if one of them contains the
characters that the pattern begins with, which is many times quicker than trying all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from proctor.base.secret_names import can_be_secret, looks_like_credential, looks_random

MAX_PEM_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is in a text."""

    kind: str
    """Whose token it is, in words; empty if only the name before it says that it is a secret."""
    start: int
    end: int
    by_name: bool = False
    """Whether it was found by the name before it, and not by its shape."""


URL_PASSWORD = "URL password"
"""The kind that says where a secret is and not whose it is; elsewhere the same secret has none."""
_SHAPES: tuple[tuple[str, str], ...] = (
    ("Anthropic key", r"sk-ant-[\w*-]{8,}"),
    ("OpenAI key", r"sk-(?:proj|svcacct|admin|None)-[\w*-]{6,}"),
    ("API key", r"sk-(?:live|test)-[\w*-]{6,}"),
    ("OpenRouter key", r"sk-or-[\w-]{16,}"),
    ("Langfuse key", r"sk-lf-[\w-]{16,}"),
    ("OpenAI key", r"sk-(?=[A-Za-z*]{0,99}[0-9*])[A-Za-z0-9*]{20,}"),
    ("Stripe key", r"sk_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    ("Stripe key", r"rk_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    ("API key", r"sk_[a-f0-9]{40,}(?![0-9a-z])"),
    ("Stripe webhook secret", r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("GitHub token", r"gh[pousr]_[A-Za-z0-9]{16,}"),
    ("GitHub token", r"github_pat_\w{22,}"),
    (
        "GitLab token",
        r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|agent|oas|imt|ffct|wt)-[\w-]{16,}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
    ),
    ("GitLab token", r"GR1348941[\w-]{16,}"),
    ("Grafana token", r"gls?[ac]_[\w+/=]{20,}"),
    ("Grafana key", r"eyJrIjoi[\w+/=-]{40,}"),
    ("Groq key", r"gsk_[A-Za-z0-9]{16,}"),
    ("Hugging Face token", r"hf_[A-Za-z0-9]{16,}"),
    ("Hugging Face token", r"api_org_[A-Za-z0-9]{30,}"),
    ("Vault token", r"hv[sbr]\.[\w-]{20,}"),
    ("Slack webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[TE]\w{6,20}/\w{6,24}/[\w/]{16,60}"),
    (
        "Teams webhook",
        r"webhook\.office\.com/webhookb2/[0-9a-f@-]{36,80}/IncomingWebhook/[0-9a-f]{20,40}/[0-9a-f-]{20,40}",
    ),
    (
        "Teams webhook",
        r"outlook\.office\.com/webhook/[0-9a-f@-]{36,80}/IncomingWebhook/[0-9a-f]{20,40}/[0-9a-f-]{20,40}",
    ),
    ("xAI key", r"xai-[A-Za-z0-9]{20,}"),
    ("Slack token", r"xox[abcdeoprs](?:\.xox[bp])?-[\w-]{10,}"),
    ("Slack token", r"xapp-[\w-]{10,}"),
    ("Brevo key", r"xkeysib-[a-f0-9]{24,}-?[A-Za-z0-9]{0,20}"),
    ("Brevo key", r"xsmtpsib-[a-f0-9]{24,}-?[A-Za-z0-9]{0,20}"),
    ("Perplexity key", r"pplx-[A-Za-z0-9]{20,}"),
    ("PyPI token", r"pypi-[\w-]{30,}"),
    ("Pinecone key", r"pcsk_\w{20,}"),
    ("PlanetScale token", r"pscale_(?:tkn|pw|oauth|app_secret)_[\w.=-]{16,}"),
    ("Pulumi token", r"pul-[a-f0-9]{32,}"),
    ("PostHog key", r"ph[xs]_[A-Za-z0-9]{20,}"),
    ("Prefect key", r"pn[ub]_[A-Za-z0-9]{30,}"),
    ("Airtable token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{24,64}"),
    ("HubSpot token", r"pat-(?:na|eu|ap)[0-9]-[0-9a-f-]{30,}"),
    ("Replicate token", r"r8_[A-Za-z0-9]{20,}"),
    ("Resend key", r"re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}"),
    ("RubyGems key", r"rubygems_[a-f0-9]{24,}"),
    ("ReadMe key", r"rdme_[a-z0-9]{24,}"),
    ("Render key", r"rnd_[A-Za-z0-9]{24,}"),
    ("Razorpay key", r"rzp_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("NVIDIA key", r"nvapi-[\w-]{20,}"),
    ("npm token", r"npm_[A-Za-z0-9]{24,}"),
    ("Neon key", r"napi_[a-z0-9]{24,}"),
    ("Netlify token", r"nfp_[A-Za-z0-9]{24,}"),
    ("Notion token", r"ntn_[A-Za-z0-9]{24,}"),
    ("Notion token", r"secret_(?=[A-Za-z]{0,42}[0-9])[A-Za-z0-9]{24,}"),
    ("NuGet key", r"oy2[a-z0-9]{43}(?![a-z0-9])"),
    ("Cerebras key", r"csk-[a-z0-9]{20,}"),
    ("crates.io token", r"cio(?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("CircleCI token", r"CCIP(?:AT|RJ)_\w{20,}"),
    ("Clojars token", r"CLOJARS_[a-f0-9]{24,}"),
    ("Contentful token", r"CFPAT-[\w-]{20,}"),
    ("Fireworks key", r"fw_[A-Za-z0-9]{20,}"),
    ("Fly token", r"fm[12][ar]?_[\w+/=,-]{16,}"),
    ("Fly token", r"fo1_[\w-]{20,}"),
    ("Figma token", r"fig[dur]h?_[\w-]{16,}"),
    ("Flutterwave key", r"FLWSECK(?:_TEST)?-[A-Za-z0-9-]{20,}"),
    ("Tavily key", r"tvly-[\w-]{16,}"),
    ("Tailscale key", r"tskey-[a-z]{2,10}-[\w-]{20,}"),
    ("Typeform token", r"tfp_[\w.=-]{24,}"),
    ("LangSmith key", r"ls(?:v2_(?:pt|sk)|__)_?\w{20,}"),
    ("Linear key", r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{20,}"),
    ("DigitalOcean token", r"do[opr]_v1_[a-f0-9]{24,}"),
    ("Databricks token", r"dapi[a-f0-9]{32}(?:-\d)?"),
    ("Docker token", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    ("Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{16,}"),
    ("Dynatrace token", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{16,30}\.[A-Z0-9]{20,70}"),
    ("Duffel token", r"duffel_(?:live|test)_[\w-]{20,}"),
    ("Feishu webhook", r"open\.(?:feishu|larksuite)\.c[no]m?/open-apis/bot/v2/hook/[\w-]{20,60}"),
    ("Zapier webhook", r"hooks\.zapier\.com/hooks/catch/\d{4,12}/\w{5,20}"),
    ("IFTTT key", r"maker\.ifttt\.com/trigger/\w{1,60}/(?:json/)?with/key/[\w-]{16,60}"),
    ("wallet key", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{90,120}"),
    ("Discord webhook", r"discord(?:app)?\.com/api/webhooks/\d{10,25}/[\w-]{40,100}"),
    ("Shopify token", r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{24,}"),
    ("Shippo token", r"shippo_(?:live|test)_[a-f0-9]{24,}"),
    ("Sentry token", r"sntry[sua]_[\w+/=-]{16,}"),
    ("Supabase token", r"sbp_(?:v0_)?[A-Za-z0-9]{16,}"),
    ("Supabase key", r"sb_secret_[\w-]{16,}"),
    ("Sourcegraph token", r"sgp_[A-Za-z0-9_]{24,}"),
    ("SonarQube token", r"sq[apu]_[a-f0-9]{24,}"),
    ("Square token", r"sq0(?:atp|csp|idp)-[\w-]{16,}"),
    ("OpenShift token", r"sha256~[\w-]{43}"),
    ("Dropbox token", r"sl\.(?:u\.)?(?=[A-Za-z_-]{0,99}[0-9])[\w-]{24,}"),
    ("Azure shared access signature", r"sig=[A-Za-z0-9%+/]{40,}={0,2}"),
    ("Mailgun key", r"key-[0-9a-f]{32}(?![0-9a-f])"),
    ("MongoDB Atlas secret", r"mdb_sa_sk_[\w-]{16,}"),
    ("Buildkite token", r"bk[ua]a_[a-f0-9]{24,}"),
    ("E2B key", r"e2b_[a-f0-9]{24,}"),
    ("Infracost key", r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("MailerSend key", r"mlsn\.[a-f0-9]{40,}"),
    ("Firecrawl key", r"fc-[a-f0-9]{32}(?![a-z0-9-])"),
    ("ClickUp key", r"pk_[0-9]{5,12}_[A-Z0-9]{24,}"),
    ("Trello token", r"ATTA[a-fA-F0-9]{48,}"),
    ("Nostr key", r"nsec1[a-z0-9]{50,}"),
    ("Amazon key", r"amzn\.(?:mws|sp)\.[0-9a-f-]{36}"),
    ("Braintree token", r"access_token\$(?:production|sandbox)\$[a-z0-9]{10,}\$[a-f0-9]{20,}"),
    ("Yandex token", r"y0_(?:_)?[\w-]{40,}"),
    ("Firebase key", r"AAAA[\w-]{7}:APA91b[\w-]{100,}"),
    ("Stytch secret", r"secret-(?:live|test)-[\w-]{30,}=?"),
    ("Jina key", r"jina_[\w-]{24,}"),
    ("Vercel token", r"vercel_blob_rw_\w{20,}"),
    ("Cloudflare key", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    ("Voyage key", r"pa-(?=[A-Za-z_-]{0,99}[0-9])[\w-]{43}(?![\w-])"),
    ("Plaid token", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}"),
    ("Google refresh token", r"1//0[\w-]{16,}"),
    ("Google token", r"ya29\.[\w.*-]{10,}"),
    ("Google key", r"AIza[\w*-]{20,}"),
    ("Google key", r"AQ\.(?=[A-Za-z_-]{0,99}[0-9])[\w-]{20,}"),
    ("Google client secret", r"GOCSPX-[\w-]{20,}"),
    ("AWS access key", r"A(?:KIA|SIA|ROA|IDA|BIA|CCA)[A-Z0-9*]{16}(?![A-Z0-9])"),
    ("AWS Bedrock key", r"ABSK[A-Za-z0-9+/]{80,}={0,2}"),
    ("Alibaba key", r"LTAI(?=[A-Za-z]{0,19}[0-9])[A-Za-z0-9]{16,26}(?![A-Za-z0-9])"),
    ("Artifactory key", r"AKCp[A-Za-z0-9]{30,}"),
    ("Artifactory token", r"cmVmdGtu[A-Za-z0-9]{40,}"),
    ("Atlassian token", r"AT(?:ATT|CTT)3[\w=-]{24,}"),
    ("Bitbucket token", r"ATBB(?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9_=.-]{24,}"),
    ("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{24,60}"),
    ("Square or Facebook token", r"EAA[A-Z](?=[A-Za-z_-]{0,99}[0-9])[\w-]{24,}"),
    ("EasyPost key", r"EZ[AT]K(?=[A-Za-z]{0,49}[0-9])[A-Za-z0-9]{50,}"),
    ("Heroku key", r"HRKU-[\w-]{20,}"),
    ("Postman key", r"PMAK-[a-f0-9-]{24,}"),
    ("New Relic key", r"NRAK-[A-Z0-9]{20,}"),
    ("New Relic key", r"NRI[IQ]-[\w-]{20,}"),
    ("New Relic key", r"NRRA-[a-f0-9]{40,}"),
    ("SendGrid key", r"SG\.[\w-]{16,64}\.[\w-]{16,64}"),
    ("Twilio key", r"SK[0-9a-f]{32}(?![0-9a-f])"),
    ("Yandex key", r"AQVN[\w-]{35,}"),
    ("JWT", r"eyJ(?<![\w-]eyJ)[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"),
    ("Weights and Biases key", r"wandb_v1_\w{40,}"),
    ("Modal token", r"ak-(?=[A-Za-z]{0,21}[0-9])[A-Za-z0-9]{22}(?![\w-])"),
    ("Modal token", r"as-(?=[A-Za-z]{0,21}[0-9])[A-Za-z0-9]{22}(?![\w-])"),
    ("Infisical token", r"st\.[0-9a-f]{20,}\.[0-9a-f]{24,}\.[0-9a-f]{24,}"),
    ("1Password key", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("Yandex token", r"t1\.[A-Za-z0-9_-]{20,}={0,2}\.[\w-]{80,90}={0,2}"),
    ("Docker Swarm token", r"SWMTKN-[0-9]-[a-z0-9]{40,}-[a-z0-9]{20,}"),
    ("Salesforce session", r"00D[A-Za-z0-9]{9,15}![\w.-]{40,}"),
    ("Axiom token", r"xa[ap]t-[0-9a-f-]{36}"),
    ("Amazon secret", r"amzn1\.oa2-cs\.v1\.[0-9a-f]{40,}"),
    ("Amazon token", r"Atz[ar]\|[\w-]{40,}=*"),
    ("eBay token", r"v\^1\.1#[\w^#+/]{40,}={0,2}"),
    ("Discord token", r"M[DTjz][AEIMQUYcgk][wxyz0-5][\w-]{19,26}\.[\w-]{6}\.[\w-]{27,40}"),
    ("Discord token", r"N[DTjz][AEIMQUYcgk][wxyz0-5][\w-]{19,26}\.[\w-]{6}\.[\w-]{27,40}"),
    ("Discord token", r"O[DTjz][AEIMQUYcgk][wxyz0-5][\w-]{19,26}\.[\w-]{6}\.[\w-]{27,40}"),
)
"""Kind and shape. Each shape begins with plain characters, by which the search finds places worth a closer look."""


def _anything(value: str) -> bool:
    return True


def _is_random_and_no_hash(value: str) -> bool:
    return looks_random(value) and any(character not in "0123456789abcdefABCDEF" for character in value)


def _can_be_password(value: str) -> bool:
    return can_be_secret(value, "password")


_AZURE_SIGNATURES = (
    *("AZDO", "ACDb", "AzCa", "AzSe", "AzFu", "APIM", "JQQJ99"),
    *("+ASb", "+AEh", "+ARm", "+ACR", "+AMC", "+ABa", "+ASt"),
)
"""Microsoft writes one of these near the end of its random keys, so that scanners find them."""
_LOOSE_SHAPES = tuple(
    (kind, hint, re.compile(shape), is_token)
    for kind, hint, shape, is_token in (
        ("Telegram token", ":AA", r"(?<![0-9])[0-9]{8,10}:AA[\w-]{33}(?![\w-])", _anything),
        ("Mailchimp key", "-us", r"(?<![0-9a-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])", _anything),
        ("New Relic key", "NRAL", r"(?<![0-9a-zA-Z])[0-9a-f]{36}FFFFNRAL(?![0-9a-zA-Z])", _anything),
        ("Azure client secret", "Q~", r"(?<![\w~.-])[\w~.]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~-])", _anything),
        ("HCP Terraform token", ".atlasv1.", r"(?<![\w.])[A-Za-z0-9]{4,20}\.atlasv1\.[\w-]{16,}", _anything),
        ("Asana token", ":", r"(?<![\w/])[012]/[0-9]{12,20}(?:/[0-9]{12,20})?:[0-9a-f]{24,}", _anything),
        ("Asana token", "0/", r"(?<![\w/.])0/[0-9a-f]{32}(?![0-9a-z])", _anything),
        ("Vault token", "s.", r"(?<![\w.])s\.[A-Za-z0-9]{24}(?![\w(.])", looks_random),
        (
            "LaunchDarkly key",
            "-",
            r"(?<![\w-])sdk-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            _anything,
        ),
        ("Zhipu key", ".", r"(?<![\w./-])[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![\w.])", looks_random),
        ("Mailgun key", "-", r"(?<![\w-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])", _anything),
        ("API token", "_eyJ", r"(?<![A-Za-z0-9])[a-z]{2,12}_eyJ[\w+/=-]{30,}", _anything),
        *(
            (
                "Azure key",
                signature,
                rf"(?<![\w+/-])[A-Za-z0-9+/]{{30,80}}{re.escape(signature)}[A-Za-z0-9+/]{{4,40}}={{0,2}}(?![\w+/-])",
                looks_random,
            )
            for signature in _AZURE_SIGNATURES
        ),
        (
            URL_PASSWORD,
            "@",
            r"(?<=//)[^\s:/@\"'<>]{0,100}:([^\s/@\"'<>]{1,200}(?:@[^\s/@\"'<>.:]{1,60}){0,2})(?=@)",
            _can_be_password,
        ),
        (
            URL_PASSWORD,
            "%40",
            r"(?<=%3[Aa]%2[Ff]%2[Ff])[^\s%]{0,100}%3[Aa]([^\s/@\"'<>&]{1,200}?)(?=%40)",
            _can_be_password,
        ),
        (
            URL_PASSWORD,
            "@",
            r"(?<![\w:/.@-])[\w.-]{1,40}:([^\s:/@\"'<>]{6,200})@"
            r"(?=(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.])|[A-Za-z][\w-]{0,60}(?:\.[\w-]{1,60}){0,6}:[0-9]{2,5}(?!\w))",
            looks_like_credential,
        ),
        (URL_PASSWORD, "@", r"(?<=://)([^\s:/@\"'<>]{12,200})(?=@)", looks_like_credential),
        (
            "API key",
            "_",
            r"(?<![A-Za-z0-9_-])(?!pk_|pub|cs_)(?:[a-z0-9]{1,12}_){0,2}"
            r"(?:key|[a-z]?secret|token|tkn|pat|sk|pw|apikey|api|live|prod)_(?:live_|test_|prod_|v[0-9]_)?"
            r"([\w-]{20,})",
            looks_random,
        ),
        (
            "password hash",
            "$",
            r"(?<!\w)\$(?:[156y]|2[abxy]|apr1|argon2i?d?|scrypt|pbkdf2[\w-]{0,12})\$[\w./,=$+-]{22,200}",
            _anything,
        ),
        (
            "API key",
            "-",
            r"(?<![\w-])(?:[a-z0-9]{1,12}-){0,3}(?:api|secret|access)-(?:key|token)-([\w+/-]{20,})",
            looks_random,
        ),
        (
            "API key",
            "key-",
            r"(?<![\w-])[a-z]{0,8}key-(?:live|test|prod|branch)[-_]([A-Za-z0-9]{24,})(?![\w-])",
            looks_random,
        ),
        (
            "API key",
            "_",
            r"(?<![\w./-])(?!pk_|pub|cs_)[a-z][a-z0-9]{1,7}_(?:v[0-9]_)?(?=[a-z0-9]{0,99}[A-Z]|[A-Za-z]{0,39}[0-9])([A-Za-z0-9]{40,}|[\w-]{43})(?![\w-])",
            _is_random_and_no_hash,
        ),
    )
)
"""Kind, a text without which there is none, shape, and a check of it, or of its group.

Most new vendors choose one of two forms: a word for a secret before the token, or a short name before more characters
than an id has.
"""


def find_shapes(text: str) -> Iterator[Secret]:
    """Each token and each private key in a text."""
    if "-----BEGIN" in text:
        for match in _PRIVATE_KEY.finditer(text):
            yield Secret("private key", match.start(), _pem_end(text, match.end()))
    if "PRIVATE KEY-----" in text:
        yield from (Secret("private key", *match.span(1)) for match in _PEM_TAIL.finditer(text))
    if "Private-Lines:" in text:
        yield from (Secret("private key", *match.span(1)) for match in _PUTTY_LINES.finditer(text))
    words = list(_LONG_WORD.finditer(text))
    joined = "\n".join(word[0] for word in words)
    if not joined:
        return
    for kind, head, shape in _HEADS:
        if head in joined:
            yield from (Secret(kind, *match.span()) for match in shape.finditer(text))
    for kind, hint, loose_shape, is_token in _LOOSE_SHAPES:
        if hint not in joined:
            continue
        for word in words:
            if hint in word[0]:
                for match in loose_shape.finditer(text, *word.span()):
                    group = match.lastindex or 0
                    if is_token(match[group]):
                        yield Secret(kind, *match.span(group))


def _with_head(kind: str, shape: str) -> tuple[str, str, re.Pattern[str]]:
    """The plain characters that a shape begins with, and a pattern for the shape at the beginning of a word.

    The first character comes before the look-behind, so that the search skips to the next place that has it.
    """
    head = re.match(r"[A-Za-z0-9_-]+(?![?*+{])|[A-Za-z]", shape)
    return kind, "" if head is None else head[0], re.compile(rf"{shape[0]}(?<![A-Za-z0-9]{shape[0]}){shape[1:]}")


_HEADS = tuple(_with_head(kind, shape) for kind, shape in _SHAPES)
_LONG_WORD = re.compile(r"[^\s\"'<>]{12,}")
_PUTTY_LINES = re.compile(r"Private-Lines: [0-9]{1,3}((?:(?:\\{1,4}[nr]|\s){1,4}[A-Za-z0-9+/=]{8,80}(?![\w:-]))+)")
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_TAIL = re.compile(r"((?:^[A-Za-z0-9+/=]{16,80}\r?\n){1,200})-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY", re.M)
"""A private key that was cut off at its beginning."""
_PEM_LINES = re.compile(r"(?:(?:\\{1,4}[nr]|\s){1,4}[A-Za-z0-9+/=]{40,80})+")


def _pem_end(text: str, start: int) -> int:
    """Where a private key ends whose first line ends at `start`; one that is cut off ends with its last whole line."""
    dashes = text.find("-----", start, start + MAX_PEM_LENGTH)
    if dashes < 0 or not text.startswith("-----END", dashes):
        rest = _PEM_LINES.match(text, start, start + MAX_PEM_LENGTH)
        return start if rest is None else rest.end()
    close = text.find("-----", dashes + 8, dashes + 80)
    return dashes + 8 if close < 0 else close + 5

"""HoloDeck's enumerations. Each member is also the text that stands in a file: `ProviderEnum.OPENAI == "openai"`."""

from __future__ import annotations

import enum


class ProviderEnum(enum.StrEnum):
    """The providers of HoloDeck; files may name any other provider that Proctor can call."""

    OPENAI = "openai"
    AZURE_OPENAI = "azure_openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"


class AuthProvider(enum.StrEnum):
    """How an Anthropic model is paid for and reached."""

    api_key = "api_key"
    oauth_token = "oauth_token"
    bedrock = "bedrock"
    vertex = "vertex"
    foundry = "foundry"
    custom = "custom"


class PermissionMode(enum.StrEnum):
    """What a Claude agent may do without asking a person."""

    manual = "manual"
    acceptEdits = "acceptEdits"  # noqa: N815  HoloDeck's name
    acceptAll = "acceptAll"  # noqa: N815


class RAGMetricType(enum.StrEnum):
    FAITHFULNESS = "faithfulness"
    CONTEXTUAL_RELEVANCY = "contextual_relevancy"
    CONTEXTUAL_PRECISION = "contextual_precision"
    CONTEXTUAL_RECALL = "contextual_recall"
    ANSWER_RELEVANCY = "answer_relevancy"


class TransportType(enum.StrEnum):
    """How an MCP server is reached."""

    STDIO = "stdio"
    SSE = "sse"
    WEBSOCKET = "websocket"
    HTTP = "http"


class CommandType(enum.StrEnum):
    """The usual programs that start an MCP server; files may name any other."""

    NPX = "npx"
    NODE = "node"
    UVX = "uvx"
    DOCKER = "docker"


class SearchMode(enum.StrEnum):
    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    EXACT = "exact"
    HYBRID = "hybrid"


class ChunkingStrategy(enum.StrEnum):
    STRUCTURE = "structure"
    TOKEN = "token"


class DocumentDomain(enum.StrEnum):
    NONE = "none"
    US_LEGISLATIVE = "us_legislative"
    AU_LEGISLATIVE = "au_legislative"
    ACADEMIC = "academic"
    TECHNICAL = "technical"
    LEGAL_CONTRACT = "legal_contract"


class KeywordIndexProvider(enum.StrEnum):
    IN_MEMORY = "in-memory"
    OPENSEARCH = "opensearch"


class ToolStatus(enum.StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class ToolEventType(enum.StrEnum):
    STARTED = "started"
    PROGRESS = "progress"
    COMPLETED = "completed"
    FAILED = "failed"

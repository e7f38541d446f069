"""The operator's settings: `EngineSettings` and its parts, and sources of secrets."""

from treadle.actions.llm.profiles import LlmSettings, Price, Profile
from treadle.actions.mcp.servers import McpServer, McpSettings
from treadle.actions.net import NetPolicy
from treadle.actions.outside import OutsideSettings, Subscription
from treadle.actions.secrets import DictSecrets, EnvironmentSecrets, FileSecrets, SecretProvider
from treadle.actions.shell import ShellPolicy
from treadle.runtime.engine import EngineSettings
from treadle.runtime.operate.retention_setting import Keep

__all__ = [
    "DictSecrets",
    "EngineSettings",
    "EnvironmentSecrets",
    "FileSecrets",
    "Keep",
    "LlmSettings",
    "McpServer",
    "McpSettings",
    "NetPolicy",
    "OutsideSettings",
    "Price",
    "Profile",
    "SecretProvider",
    "ShellPolicy",
    "Subscription",
]

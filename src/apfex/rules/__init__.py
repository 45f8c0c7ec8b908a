"""Decision rules on one joint model: what they are, what they are judged by, and their search."""

from apfex.rules._model import RuleModel, rule_scores, rules_at_rate
from apfex.rules._problem import RuleProblem
from apfex.rules._search import ExploredRules, explore_rules

__all__: list[str] = []

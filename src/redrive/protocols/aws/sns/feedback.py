"""Which deliveries their owner wants written down: all that failed, and of the others so many percent."""

import random
from collections.abc import Mapping
from typing import NamedTuple


class Feedback(NamedTuple):
    """The names of three attributes that ask for it; with a role it is asked for, and without a rate for no success."""

    success_role: str
    failure_role: str
    sample_rate: str

    def wants(self, attributes: Mapping[str, str], chance: random.Random, *, delivered: bool) -> bool:
        """Whether an attempt is written down, by what the owner's attributes say and chance."""
        if not delivered:
            return bool(attributes.get(self.failure_role))
        if not attributes.get(self.success_role):
            return False
        return chance.random() * 100 < float(attributes.get(self.sample_rate) or 0)


def feedback(beginning: str = "") -> Feedback:
    """The attributes as SNS calls them, for topics behind the name of a protocol."""
    kinds = ("SuccessFeedbackRoleArn", "FailureFeedbackRoleArn", "SuccessFeedbackSampleRate")
    return Feedback(*(f"{beginning}{kind}" for kind in kinds))

"""Story 7: a policy is tried against an afternoon's outage, kept, and used on another server."""

import json
import shlex
from pathlib import Path
from typing import Any, Final

from selenium.webdriver.common.keys import Keys

from tests.browser.screen import Screen
from tests.cli.telling import confirmed
from tests.console.world import TRIED
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.services.clients import cli
from tests.services.server import Server, serving

_REFUSED: Final = "input[name=numRetries][aria-invalid=true]"


def test_a_policy_is_tried_saved_and_used_on_another_server(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook, tmp_path: Path
) -> None:
    topic = sns.topic()
    subscription = confirmed(topic, webhook)
    arn = f"{topic.arn}:{subscription}"
    rooms = f"/_redrive/console/{sns.account}/{sns.region}"
    screen.open(f"{server.url}{rooms}/topics/{topic.arn.rpartition(':')[2]}/{subscription}")
    screen.press("Simulate other values")
    screen.run("window.sameDocument = true")
    _the_curve_follows(screen)
    _an_afternoon_is_answered(screen)
    _a_number_is_refused_at_its_field(screen)
    command = screen.text("#shown-command")
    _copied(screen, "shown-policy")
    assert screen.run("return window.sameDocument")
    screen.size(320)
    assert screen.run("return document.documentElement.scrollWidth") <= 320
    screen.press("Save as the policy")
    screen.wait_for("is retried by this policy from now on")
    assert _policy_of(sns, arn) == TRIED
    with serving("sqlite://:memory:", directory=tmp_path) as elsewhere:
        screen.open(f"{elsewhere.url}/_redrive/console/schedules")
        _the_policy_is_pasted(screen)
        other = Sns(elsewhere)
        its_topic = other.topic()
        its_arn = f"{its_topic.arn}:{confirmed(its_topic, webhook)}"
        words = shlex.split(command.replace(arn, its_arn))
        keys, called = words[: words.index("aws")], words[words.index("aws") :]
        assert keys == [f"AWS_ACCESS_KEY_ID={sns.account}", "AWS_SECRET_ACCESS_KEY=any"]
        assert called[:3] == ["aws", "--endpoint-url", server.url]
        cli(elsewhere, tmp_path, "sns")(*words[words.index("sns") + 1 :])
        assert _policy_of(other, its_arn) == TRIED
        screen.leave()


def test_a_number_beyond_its_bounds_is_marked_before_the_server_has_answered(
    screen: Screen, server: Server
) -> None:
    screen.before_each_page("window.fetch = () => new Promise(() => {});")
    screen.open(f"{server.url}/_redrive/console/schedules")
    screen.fill("input[name=numRetries]", "1e9")
    screen.find(_REFUSED)
    assert screen.run("return document.getElementById('refused').textContent") == ""


def _the_curve_follows(screen: Screen) -> None:
    """Each number that is typed changes the curve and its sentence, on the same page."""
    assert "4 attempts" in screen.text("#live [role=status]")
    before = screen.find("svg.waits polyline").get_attribute("points")
    for name, value in TRIED.items():
        if name == "backoffFunction":
            screen.find(f"select[name={name}]").send_keys(str(value))
        else:
            screen.fill(f"input[name={name}]", str(value))
    screen.wait_for("11 attempts", "#live [role=status]")
    screen.until(lambda: screen.find("svg.waits polyline").get_attribute("points") != before)
    shown = "return document.getElementById('shown-policy').textContent"
    screen.until(lambda: json.loads(screen.run(shown)) == {"healthyRetryPolicy": TRIED})


def _an_afternoon_is_answered(screen: Screen) -> None:
    screen.fill("input[name=outage]", "4h")
    screen.fill("input[name=attempt]", "15s")
    screen.wait_for("after attempt 11, 15 min 39 s after publication", ".cards")
    given_up, rested = (card.text for card in screen.all(".cards .card")[:2])
    assert given_up.startswith("given up")
    assert "17 attempts fail in all, whatever waits; at most 1 delivery is given up" in rested


def _a_number_is_refused_at_its_field(screen: Screen) -> None:
    """A refusal is told at its field, the last curve stays, and a number that is taken ends it."""
    curve = screen.find("svg.waits polyline").get_attribute("points")
    screen.fill("input[name=numRetries]", "1e9")
    screen.find(_REFUSED)
    assert "numRetries" in screen.text("#refused")
    described = screen.find(_REFUSED).get_attribute("aria-describedby")
    assert described == "refused"
    assert screen.find("svg.waits polyline").get_attribute("points") == curve
    screen.fill("input[name=numRetries]", "10")
    screen.until(lambda: not screen.all(_REFUSED))
    assert "11 attempts" in screen.text("#live [role=status]")


def _copied(screen: Screen, what: str) -> None:
    screen.click(f"button[data-copies={what}]")
    screen.until(lambda: screen.text(f"button[data-copies={what}]") == "Copied")


def _the_policy_is_pasted(screen: Screen) -> None:
    """The copied JSON goes into the lab of the other server, whose numbers and curve it becomes."""
    screen.click("#lab summary")
    screen.find("#policy").send_keys("{")
    screen.find("#policy[aria-invalid=true]")
    screen.find("#policy").send_keys(Keys.BACKSPACE, Keys.CONTROL, "v")
    screen.wait_for("11 attempts", "#live [role=status]")


def _policy_of(sns: Sns, arn: str) -> Any:
    attributes = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    return json.loads(attributes["DeliveryPolicy"])["healthyRetryPolicy"]

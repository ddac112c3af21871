"""Templates made to cost much, or of another form than templates have: refused in words, and no turn is long."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from redrive.azure.arm.planning import PlannedResource, by_name
from tests.azure.test_complete_deployments import names_in, topic
from tests.azure.test_deployments import DEPLOYMENTS, Answers, deployment, played

INNER: Final = {"type": "Microsoft.Resources/deployments", "name": "inner"}
EMPTY: Final = {"template": {"resources": []}}
UNFIT: Final[Mapping[str, Any]] = {
    "resources that are a number": 5,
    "children that are a number": [topic("orders", resources=5)],
    "a dependency that is a number": [topic("orders", dependsOn=5)],
    "a property's loop that is a number": [topic("orders", properties={"copy": [5]})],
    "a property's loop without an input": [topic("orders", properties={"copy": [{"name": "a", "count": 1}]})],
    "properties of a nested one that are a text": [{**INNER, "properties": "x"}],
    "options of a nested one that are a list": [
        {**INNER, "properties": {"expressionEvaluationOptions": [1], **EMPTY}}
    ],
    "resources of a nested one that are a number": [{**INNER, "properties": {"template": {"resources": 7}}}],
}


@pytest.mark.parametrize("mode", ["Incremental", "Complete"])
@pytest.mark.parametrize("case", UNFIT)
def test_a_template_of_another_form_is_refused(case: str, mode: str) -> None:
    async def play(ask: Answers) -> None:
        document = deployment({"resources": UNFIT[case]})
        document["properties"]["mode"] = mode
        status, answer = await ask("PUT", f"{DEPLOYMENTS}/first", document)
        assert (status, answer["error"]["code"]) == (400, "InvalidTemplate")
        status, _ = await ask("POST", f"{DEPLOYMENTS}/first/whatIf", document)
        assert status in (200, 400)
        assert await names_in(ask) == []

    played(play)


def test_a_whole_number_keeps_its_digits_or_is_refused() -> None:
    """Digits beyond the 19th were cut off, and a product of more than 64 bits read as a store that did not answer."""

    async def play(ask: Answers) -> None:
        async def ask_with(expression: str) -> int:
            template = {"resources": [], "outputs": {"sum": {"type": "int", "value": expression}}}
            status, _ = await ask("PUT", f"{DEPLOYMENTS}/first", deployment(template))
            return status

        assert await ask_with(f"[{-(2**63)}]") == 201
        _, answer = await ask("GET", f"{DEPLOYMENTS}/first")
        assert answer["properties"]["outputs"]["sum"]["value"] == -(2**63)
        assert await ask_with(f"[{10**20}]") == 400
        assert await ask_with(f"[createArray(mul({2**40}, {2**40}))]") == 400

    played(play)


def test_400_resources_may_need_each_other_in_turn() -> None:
    """They were made in each other's calls, which end at a thousand."""

    async def play(ask: Answers) -> None:
        resources = [
            topic(f"abc{number}", tags={"next": f"[reference('abc{number + 1}').endpoint]"})
            for number in range(399)
        ]
        status, _ = await ask(
            "PUT", f"{DEPLOYMENTS}/first", deployment({"resources": [*resources, topic("abc399")]})
        )
        assert status == 201
        assert len(await names_in(ask)) == 400

    played(play)


def test_a_resource_is_known_by_the_ends_of_its_id() -> None:
    group = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.EventGrid/domains"
    child = PlannedResource(f"{group}/Dom/topics/Top", "topics", {"symbol"}, {})
    other = PlannedResource(f"{group}/Other", "domains", set(), {})
    known = by_name([child, other])
    assert known["symbol"] == known["top"] == known["topics/top"] == known["dom/topics/top"] == [child]
    assert known[child.id.lower().removeprefix("/subscriptions/")] == [child]
    assert "dom" not in known
    assert known["other"] == [other]

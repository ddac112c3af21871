"""Mapping templates: what they say, and that none of them costs more than it may."""

import contextlib
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.apigateway.mapping.sources import json_text
from redrive.aws.apigateway.mapping.velocity.template import render, render_within
from redrive.aws.apigateway.mapping.velocity.values import TemplateFailed
from redrive.model.budget import Budget, OverBudgetError

CARS = [{"make": "Volvo", "doors": 5}, {"make": "Mini", "doors": 3}]


def rendered(template: str, **names: Any) -> str:
    return render_within(template, names, Budget())


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Action=Publish&Message=$text", "Action=Publish&Message=a&b"),
        ("${text}s $!{nobody}$!nobody$nobody.of.that.name.", "a&bs ."),
        ("$cars[0].make ${cars.get(1).make}", "Volvo Mini"),
        ("$cars[7].make$cars.size()", "2"),
        ("costs $5 in #fff and # $", "costs $5 in #fff and # $"),
        (r"\$text \\$text", "$text \\a&b"),
        ("a## a comment\nb", "ab"),
        ("a#* a\ncomment *#b", "ab"),
        ("#[[ $text #if ]]#", " $text #if "),
        ("#set($x = 1 + 2 * 3)$x", "7"),
        ("#set( $x = 7 / 2 )\n$x #set($y = 7 % 4)$y", "3 3"),
        ("#set($x = -7 / 2)$x", "-3"),
        ("#set($x = 9223372036854775807 + 1)$x", "-9223372036854775808"),
        ("#set($x = 'it''s $text')$x", "it's $text"),
        ('#set($x = "it is ""$text"" #if(true)so#end")$x', 'it is "a&b" so'),
        ("#set($m = {})#set($m['k'] = 'v')#set($m.l = [1, true])$m", "{k=v, l=[1, true]}"),
        ("#set($m = {'a': 1, 'b': null})$m.containsKey('b') $m.size()", "true 2"),
        ("#set($cars[0].make = 'Saab')$cars[0].make", "Saab"),
        ("#if($text == 'a&b' && !$nobody)yes#{else}no#end", "yes"),
        ("#if($zero)a#elseif($text)b#else c#end", "b"),
        ("#if(3 > 2 and 2 ge 2 or false)yes#end", "yes"),
        ('#if($cars.isEmpty())a#end#if("")b#end#if([])c#end', ""),
        ("#foreach($car in $cars)$foreach.index:$car.make#if($foreach.hasNext),#end#end", "0:Volvo,1:Mini"),
        ("#foreach($n in [1..3])$n#end#foreach($n in [2..1])$n#end$n", "12321"),
        ("#foreach($n in [1..9])#if($n > 2)#break#end$n#end", "12"),
        ("#foreach($key in $cars[0].keySet())$key #end", "make doors "),
        ("#foreach($e in $cars[0].entrySet())$e.key=$e.getValue();#end", "make=Volvo;doors=5;"),
        ("before#stop after", "before"),
        ("$text.toUpperCase().replace('&', ' ').length()", "3"),
        ("$text.substring(0, 1)$text.contains('&')$text.equals('a&b')", "atruetrue"),
        ("#set($q = $text.split('&'))$q.size()$q[1]", "2b"),
        ("#set($q = $text.split('(&)'))$q", "[a, b]"),
        ("#set($x = ',a,,b,,')$x.split(',') #set($x = ',')$x.split(',').size()", "[, a, , b] 0"),
        ("$text.split('') $text.split('x') $text.substring(3).split(',').size()", "[a, &, b] [a&b] 1"),
        ("#set($x = 'polygenelubricants')$text.hashCode() $x.hashCode()", "94493 -2147483648"),
        ("$text.indexOf('a', -1) $text.indexOf('b', -1) $text.indexOf('b', 9)", "0 2 -1"),
        ("$text.replaceAll('[ab]', '<$0>')", "<a>&<b>"),
        ("  #set($x = 1)  \n|", "  |"),
        ("$text.class $text.__class__ $cars.__init__", "  "),
    ],
)
def test_a_template_is_rendered_as_velocity_renders_it(template: str, expected: str) -> None:
    cars = [dict(car) for car in CARS]
    assert rendered(template, text="a&b", cars=cars, zero=0) == expected


@pytest.mark.parametrize(
    "template",
    [
        "#if(true)",
        "#end",
        "#else",
        "#set($x)",
        "#set(x = 1)",
        "#foreach($x of $y)#end",
        "#set($x = 'open)",
        "${open",
        "$text.substring(9)",
        "$text.substring('a')",
        "$text.charAt(-1)",
        "#set($l = [1, 2])$l.get(-1)",
        "#set($l = [1, 2])$l.set(-1, 3)",
        "#set($l = [1, 2])$l.add(-1, 3)",
        "#set($l = [1, 2])$l.add(3, 3)",
        "#set($l = [1, 2])$l.remove(-1)",
        "#macro(m)#end",
        "#parse('/etc/passwd')",
        "#include('/etc/passwd')",
        "#evaluate('$text')",
        "#set($x = {'a' 1})",
        "#* open",
        "(" * 50 + "#set($x = " + "(" * 100_000,
        "#if(true)" * 50,
        "$text" + ".concat($text" * 100,
    ],
)
def test_a_template_that_cannot_be_read_or_carried_out_is_refused(template: str) -> None:
    with pytest.raises(TemplateFailed):
        rendered(template, text="a&b")


@pytest.mark.parametrize(
    "template",
    [
        "#set($s = 'x')#foreach($i in [1..99])#set($s = $s + $s)#end",
        "#set($s = 'x')#foreach($i in [1..99])#set($s = \"$s$s\")#end",
        "#set($s = 'xx')#foreach($i in [1..99])#set($s = $s.replace('x', $s))#end",
        "#set($s = 'xx')#foreach($i in [1..99])#set($s = $s.replaceAll('x', $s))#end",
        "#foreach($i in [1..99999999999999])x#end",
        "#foreach($a in [1..999])#foreach($b in [1..999])#foreach($c in [1..999])#end#end#end",
        "#set($l = [1])#foreach($i in [1..99])#set($l = [$l, $l])#end$l",
        "#set($l = [1])#foreach($i in [1..40])#set($l = [$l, $l])#end#if($l == $l)#end",
        "#set($l = [1])#foreach($i in [1..99])#set($x = $l.addAll($l))#end",
        "#set($l = [])#set($x = $l.add($l))$l",
        "#set($l = [])#foreach($i in [1..50])#set($l = [$l, $l])#end#set($m = {$l: 1})",
    ],
)
def test_a_hostile_template_ends(template: str) -> None:
    with pytest.raises((TemplateFailed, OverBudgetError)):
        rendered(template)


BODY = "x" * 1_000_000


@pytest.mark.parametrize(
    "template",
    [
        "#set($l = [])#foreach($i in [1..300])#set($x = $l.add($body))#end$l",
        "#set($l = [])#foreach($i in [1..300])#set($x = $l.add($body))#end#set($s = $l.toString())",
        "#set($m = {})#foreach($i in [1..300])#set($x = $m.put($i, $body))#end$m",
        "#set($s = $body.replaceFirst('^.*$', '" + "$0" * 500 + "'))",
        "#set($s = $body.replace('', $body))",
        "$body.matches('(a|b){500}')",
    ],
)
def test_a_text_is_paid_for_before_it_is_put_together(template: str) -> None:
    """Each of them would be 0.3 to 1,000 GB, of a budget of 26 MB, or a search of a second."""
    with pytest.raises(OverBudgetError):
        render_within(template, {"body": BODY}, Budget())


def test_a_value_that_a_path_finds_many_times_is_paid_for_as_often() -> None:
    """A body of 1 MB that lies 60 levels deep was answered as 60 MB, 1,800 MB with one wildcard more."""
    document: Any = BODY
    for _ in range(60):
        document = [document]
    with pytest.raises(OverBudgetError):
        json_text(Budget(), document, "$..*")
    assert json_text(Budget(), {"a": [1, {"b": 2}]}, "$..b") == "[2]"


def test_the_last_index_is_found_in_time_by_the_sum_of_both_lengths() -> None:
    """Python's `rfind` takes 6 s for these, and the budget sees nothing of it."""
    names = {"text": "a" * 400_000, "part": "b" + "a" * 200_000}
    began = time.process_time()
    assert render_within("$text.lastIndexOf($part)", names, Budget()) == "-1"
    assert time.process_time() - began < 0.5


@given(st.text("ab", max_size=12), st.text("ab", max_size=3))
def test_the_last_index_is_that_of_python(text: str, part: str) -> None:
    assert rendered("$text.lastIndexOf($part)", text=text, part=part) == str(text.rfind(part))


@given(st.text(alphabet="$#!{}[]()'\".,=ab01 \n\\setifnddforachlsin", max_size=60))
def test_no_template_fails_in_a_way_of_its_own(template: str) -> None:
    with contextlib.suppress(TemplateFailed, OverBudgetError):
        render_within(template, {"a": {"b": ["c"]}, "b": "text"}, Budget(2_000))


async def test_a_costly_template_is_rendered_beside_the_loop() -> None:
    made = []

    def variables() -> dict[str, Any]:
        made.append({"n": 0})
        return made[-1]

    template = "#foreach($i in [1..20000])#set($n = $n + 1)#end$n"
    text, names = await render("1" * 12, template, variables)
    assert text == "20000"
    assert len(made) == 2, "it begins anew, with variables of its own"
    assert names is made[1]


async def test_a_template_that_is_too_costly_is_given_up() -> None:
    template = "#foreach($a in [1..9999])#foreach($b in [1..9999])x#end#end"
    with pytest.raises(TemplateFailed, match="too many steps"):
        await render("1" * 12, template, dict)

"""The error about arguments: its sentence, its parts, and that it survives pickling."""

import copy
import pickle

import pytest

import optdesign as od
from optdesign.errors import InputError

PARTS = ("argument", "rule", "value", "remedy", "row", "place")


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (("tol", "must be positive"), "tol must be positive."),
        (("tol", "must be positive", "got -1"), "tol must be positive; got -1."),
        (("tol", "must be positive", "", "Leave it out."), "tol must be positive. Leave it out."),
        (
            ("x", "must be finite", "'a' is nan", "Fill it in.", 0),
            "x must be finite; 'a' is nan in row 1. Fill it in.",
        ),
        (
            ("x", "must be finite", "'a' is nan", "Fill it in.", 3, "line 5 of f.csv"),
            "x must be finite; 'a' is nan in line 5 of f.csv. Fill it in.",
        ),
    ],
)
def test_the_message_is_made_of_the_parts(parts, sentence):
    error = InputError(*parts)
    assert str(error) == sentence
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert str(again) == sentence
        assert [getattr(again, name) for name in PARTS] == [getattr(error, name) for name in PARTS]


def test_parts_are_replaced_in_a_new_error():
    error = InputError("tol", "must be positive", "got -1")
    assert (
        str(error.replace(argument="--tol", remedy="Leave it out."))
        == "--tol must be positive; got -1. Leave it out."
    )
    assert str(error) == "tol must be positive; got -1."


def test_it_is_public_and_a_value_error():
    assert od.InputError is InputError
    with pytest.raises(ValueError, match="must be enough runs") as caught:
        od.exact(od.DesignProblem([[1.0, 0.0], [0.0, 1.0]], budgets=1))
    assert isinstance(caught.value, od.InputError)
    assert (caught.value.argument, caught.value.value) == ("budgets", "1 were given")

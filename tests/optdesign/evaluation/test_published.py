"""Figures of published examples, to the last digit that is printed."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from published import EXAMPLES, Row

import optdesign as od


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_published_figures(example):
    found = example()
    assert found.rows
    assert not [row for row in found.rows if not row.agrees]


def test_a_figure_agrees_within_half_a_unit_of_its_last_digit():
    assert Row("", "0.893", 0.8929).agrees
    assert not Row("", "0.893", 0.8936).agrees
    assert Row("", "8.904e+05", 890420.4).agrees
    assert not Row("", "8.904e+05", 890460.0).agrees


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R")
def test_r_itself():
    """Standard errors and leverages of R's lm for its own data set npk."""
    script = (
        'options(contrasts = c("contr.sum", "contr.poly")); f <- lm(yield ~ block + N*P, npk); '
        'cat(sprintf("[%s]", paste(sprintf("%.17g", c(coef(summary(f))[, 2] / sigma(f), hatvalues(f))), '
        'collapse = ", ")))'
    )
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
    theirs = np.array(json.loads(done.stdout))
    table = {
        "block": np.repeat(list("123456"), 4),
        "N": list("010111000110110010101100"),
        "P": list("110001011100010110010110"),
    }
    e = od.evaluate(table, "~ block + N*P")
    np.testing.assert_allclose(np.concatenate([e.standard_errors, e.leverages]), theirs, rtol=1e-12)

"""Reasons for which experimenters would leave, each with the tests that show that it is gone."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
REASONS = {
    "the demo has no experiment": ("optdesign/cli/test_cli_demo.py::test_demo_solves_verifies_and_draws",),
    "a run list cannot be certified or verified": (
        "optdesign/design/test_run_lists.py::test_verification_of_runs",
        "optdesign/cli/test_cli_run_lists.py::test_a_list_is_verified_as_it_is",
        "optdesign/cli/test_cli_run_lists.py::test_a_colleagues_list_has_the_efficiency_of_python",
    ),
    "a run list cannot be saved": ("optdesign/design/test_run_lists.py::test_runs_come_back_from_a_file",),
    "a run list has no HTML and no frame": ("optdesign/design/test_run_lists.py::test_html_and_frames",),
    "pictures do not show in notebooks": (
        "optdesign/plot/test_plotting_notebook.py::test_pictures_are_shown",
    ),
    "no standard errors, aliases, correlations, leverages": (
        "optdesign/evaluation/test_evaluation.py::test_figures_are_those_of_plain_least_squares",
        "optdesign/evaluation/test_evaluation.py::test_alias_matrix_is_the_regression_of_terms_left_out",
    ),
    "no power": (
        "optdesign/evaluation/test_evaluation_power.py::test_power_is_that_of_the_noncentral_distributions",
        "optdesign/evaluation/test_evaluation_power.py::test_power_agrees_with_100_000_simulated_experiments",
    ),
    "figures are not those of R": (
        "optdesign/evaluation/test_published.py::test_published_figures",
        "optdesign/evaluation/test_published.py::test_r_itself",
    ),
    "no efficiency against the optimum but for D": (
        "optdesign/evaluation/test_linear_criteria.py::test_bounds_are_below_and_close_to_cvxpy",
        "optdesign/evaluation/test_linear_criteria.py::test_a_quadratic_on_three_levels",
    ),
    "no pictures of evaluations": (
        "optdesign/plot/test_plotting_evaluations.py::test_correlations",
        "optdesign/plot/test_plotting_evaluations.py::test_design_space",
        "optdesign/plot/test_plotting_evaluations.py::test_profiles",
        "optdesign/plot/test_plotting_evaluations.py::test_power",
    ),
    "two lists cannot be compared": (
        "optdesign/cli/test_cli_evaluate.py::test_two_designs_side_by_side",
        "optdesign/cli/test_cli_evaluate.py::test_two_lists_are_compared_on_the_levels_of_both",
    ),
    "evaluate asks for the model that solve knew": (
        "optdesign/cli/test_cli_evaluate.py::test_a_run_list_with_a_recipe_needs_no_model",
    ),
    "efficiency has two meanings": (
        "optdesign/design/test_run_lists.py::test_the_efficiency_of_counts_is_that_of_the_search",
        "optdesign/evaluation/test_linear_criteria.py::test_groups_and_parameter_blocks",
    ),
    "groups are torn apart, or out of order": (
        "optdesign/design/test_run_lists.py::test_groups_are_listed_as_given_and_stay_together",
    ),
    "settings have 17 digits": (
        "optdesign/design/test_run_lists.py::test_settings_are_shown_and_written_as_given",
    ),
    "claims do not name their candidates": (
        "test_language.py::test_bounds_against_all_designs_name_the_candidates",
        "optdesign/plot/test_plotting_labels.py::test_titles_name_the_scope_of_an_efficiency",
    ),
    "a coarse grid hides a better design": (
        "optdesign/runs/test_refinement.py::test_a_cubic_finds_the_known_optimum",
        "optdesign/runs/test_refinement.py::test_a_claim_on_a_lattice_of_50_points_against_finer_mixtures",
        "optdesign/cli/test_cli_evaluate.py::test_finer_grids_are_offered",
    ),
    "labels overlap or are cut in words": (
        "optdesign/plot/test_plotting_labels.py::test_long_names_are_legible_over_factors",
        "optdesign/plot/test_plotting_labels.py::test_long_names_are_legible_in_an_overview",
        "optdesign/plot/test_plotting_labels.py::test_labels_are_cut_between_words",
    ),
    "formulas and conditions of R fail": (
        "optdesign/factors/test_notation.py::test_formulas_of_r",
        "optdesign/factors/test_notation.py::test_conditions_of_r",
        "optdesign/factors/test_notation.py::test_spellings_that_are_not_evaluated_name_the_one_that_is",
    ),
    "categories of whole numbers have decimals": (
        "optdesign/factors/test_notation.py::test_categories_of_whole_numbers_are_named_as_such",
    ),
    "workbooks are not read": ("optdesign/factors/test_notation.py::test_workbooks_are_read",),
    "rows are counted in two ways": (
        "optdesign/factors/test_notation.py::test_rows_count_from_one_in_words_and_from_zero_in_brackets",
    ),
    "MainEffects get an error that is not true": (
        "optdesign/factors/test_notation.py::test_main_effects_have_no_weights",
    ),
    "usual efficiencies are computed by hand": (
        "optdesign/design/test_run_lists.py::test_usual_efficiencies",
    ),
    "blocking is not explained": ("test_readme.py::test_blocks_run_and_print_what_they_show",),
}


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_its_tests(reason: str) -> None:
    assert REASONS[reason]
    for node in REASONS[reason]:
        path, _, name = node.partition("::")
        tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
        assert name in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}, node

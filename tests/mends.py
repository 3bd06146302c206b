"""Every attack that was mended, the test that stands for it, and how the mend is taken out.

    python -m tests.mends [TEXT ...]     takes each mend out and shows that its test fails; those with a TEXT in them

A test that passes shows that an attack fails today. That it would see the attack come back is shown by taking its mend
out: in a copy of the tree one piece of source is put back to what it was, and the test has to fail there. Where a test
takes the mend out by itself (`Attack.itself`), it asserts that the attack works without it, so it has to pass.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mend:
    """A piece of source, which stands once in its file, and what it is without the mend."""

    file: str
    source: str
    without: str

    def taken_out(self, text: str) -> str:
        """The file's text without the mend. Errors: AssertionError where the piece does not stand there once."""
        assert text.count(self.source) == 1, f"{self.file} has {text.count(self.source)} times: {self.source}"
        return text.replace(self.source, self.without)


@dataclass(frozen=True)
class Attack:
    """`what` somebody did, or two neighbours differed in; the `test` (a pytest node) that stands for it; its mends."""

    what: str
    test: str
    mends: tuple[Mend, ...] = ()

    @property
    def itself(self) -> bool:
        """Whether the test takes the mend out by itself."""
        return not self.mends


_STRUCTURED = "tests/mpc/test_structured.py::test_"
_LYING = "tests/flower/test_lying_servers.py::test_"
_STOPS = "tests/learning/test_no_record_stops.py::test_"
_ONE_FIELD = "tests/intake/test_one_field_one_reading.py::test_"
_DECIMALS = "tests/synthesis/test_synthetic_decimals.py::test_"
_SYNTH = "dpmpc/tables/synth_columns.py"
_UNITS = "tests/local/test_units_of_sources.py::test_each_source_for_each_unit_by_each_command"

ATTACKS = (
    # -- two servers ---------------------------------------------------------------------------------------------------
    Attack("all trees of keys grow from one root (ot, garbled)",
           f"{_STRUCTURED}without_places_and_tweaks_one_root_shows_strings_and_delta"),
    Attack("a tree has equal halves", f"{_STRUCTURED}without_places_a_tree_with_equal_halves_has_every_key_twice"),
    Attack("instances are alike, and one of both walls is gone",
           f"{_STRUCTURED}either_wall_alone_keeps_strings_apart"),
    Attack("a dealer deals equal keys to several subsets",
           f"{_STRUCTURED}without_the_subset_equal_keys_are_equal_streams"),
    # -- checked parties -----------------------------------------------------------------------------------------------
    Attack("a wrong AND of one segment is made up for in the sums of a later one",
           "tests/mpc/test_checked_segments.py::test_without_fresh_coins_one_segment_makes_up_for_another",
           (Mend("dpmpc/mpc/checked/fold.py", "gammas = coin.words((len(parts),))",
                 "gammas = np.ones(len(parts), dtype=field.dtype)"),)),
    # -- Flower --------------------------------------------------------------------------------------------------------
    Attack("a server makes one client all owners", f"{_LYING}one_client_is_not_made_all_owners"),
    Attack("a cheap plan's ledger line pays for a dear release", f"{_LYING}a_cheap_line_pays_for_no_dear_release"),
    Attack("errors tell exact counts", f"{_LYING}refusals_answer_no_question"),
    Attack("each mend of Flower's clients, alone", f"{_LYING}the_generator_sees_that_a_mend_is_missing"),
    Attack("a bound that no rounds lead to", f"{_LYING}a_bound_that_no_rounds_lead_to_is_refused"),
    Attack("a client answers in another owner's place, and is quicker",
           "tests/flower/test_lying_clients.py::test_of_two_that_come_as_one_owner_the_known_one_counts_or_neither",
           (Mend("dpmpc/flower/messages.py", "src_node_id in before]", "src_node_id in before] or each[:1]"),)),
    Attack("a client's reply ends the round of all",
           "tests/flower/test_lying_clients.py::test_whatever_a_reply_holds_it_is_left_out_or_it_is_shares",
           (Mend("dpmpc/flower/messages.py", "isinstance(shares, ArrayRecord)", "shares is not None"),)),
    # -- who stops, and who goes on ------------------------------------------------------------------------------------
    Attack("a long step has some records overflow: who stops tells of them exactly, and nothing is spent",
           f"{_STOPS}a_large_mean_ends_all_owners_alike_by_what_was_opened",
           (Mend("dpmpc/learning/method.py", "after = check_near(carried(self.learning, taken, self._moved))",
                 "after = carried(self.learning, taken, self._moved)"),)),
    Attack("a tolerance that some records' optimum does not reach: who stops tells of them exactly",
           f"{_STOPS}every_optimum_is_reached_at_the_least_tolerance",
           (Mend("dpmpc/learning/output.py", "if not learning.solver_tolerance >= (least := reached(learning)):",
                 "if (least := reached(learning)) < 0:"),)),
    # -- types of columns ----------------------------------------------------------------------------------------------
    Attack("one record of a frame's column of objects decides how others are read",
           "tests/neighbours/test_neighbours_of_sources.py::test_a_record_that_once_decided_for_others"
           "[pandas objects-whole where looked at-fraction]",
           (Mend("dpmpc/intake/objects.py", "odd[name] = texts_of(frame[name].to_numpy())", "pass"),
            Mend("dpmpc/intake/table.py", "\"pandas_analyze_sample\": 0,", "\"pandas_analyze_sample\": 1000,"))),
    Attack("whether a column holds dates is decided by 1,000 fields",
           f"{_ONE_FIELD}with_the_mend_of_dates_taken_out_one_field_decides"),
    Attack("a text of SQLite ends in a carriage return, or has more than 2 MB",
           f"{_ONE_FIELD}texts_of_a_database_and_their_mends"),
    Attack("a key of JSON that one record alone has becomes a column",
           "tests/neighbours/test_neighbours_at_entries.py::"
           "test_a_key_of_one_record_is_found_with_the_margin_taken_out"),
    Attack("one target of an estimator is a text, and others are read otherwise",
           "tests/estimators/test_targets_of_texts.py::test_quantities_of_every_kind_are_numbers",
           (Mend("dpmpc/estimators/targets.py", "    if values.dtype.kind == \"O\":\n        values = _each",
                 "    if False:\n        values = _each"),)),
    # -- what a promise rests on ---------------------------------------------------------------------------------------
    Attack("a survey of columns that were read off the records takes the if away",
           "tests/records/test_origins.py::test_with_the_join_taken_out_a_survey_takes_the_if_away"),
    Attack("classes that were read off are lost when their schema is asked questions",
           "tests/records/test_origins.py::test_all_that_follows_rests_on_what_its_schema_does",
           (Mend("dpmpc/records/origins.py", "in_order((*read, *(SCHEMA if bounds == \"data\" else ())))",
                 "in_order(SCHEMA if bounds == \"data\" else ())"),)),
    Attack("one record decides whether a column holds dates",
           f"{_DECIMALS}no_single_record_decides_whether_a_column_holds_dates",
           (Mend(_SYNTH, "decided(2 * dates - there, 2 * touched, 2 * touched)", "2 * dates > there"),)),
    Attack("a person's records decide whether a column holds dates",
           "tests/synthesis/test_persons_decide_nothing.py::test_no_person_decides_whether_a_column_holds_dates",
           (Mend(_SYNTH, "decided(2 * dates - there, 2 * touched, 2 * touched)", "decided(2 * dates - there, 2, 2)"),)),
    Attack("one record decides with how many decimals numbers are written",
           f"{_DECIMALS}no_single_record_decides_how_many_decimals_a_column_has",
           (Mend(_SYNTH, "decided(there - _FEW * finer_than, sure, sure)", "there > _FEW * finer_than"),)),
    Attack("42 or 43 numbers decide whether a column has decimals",
           f"{_DECIMALS}no_single_record_decides_how_many_decimals_a_column_has",
           (Mend(_SYNTH, "decided(there, 2 * sure, touched)", "there > 2 * sure"),)),
    Attack("a class that one record alone has is public",
           "tests/records/test_classes.py::test_with_the_margin_taken_out_a_record_decides"),
    Attack("a file without a line of names publishes its first record",
           "tests/intake/test_head.py::test_a_first_line_that_is_a_record_gives_no_names",
           (Mend("dpmpc/intake/head.py", "    if doubt := _doubt(rows, kinds, width):\n",
                 "    if doubt := \"\":\n"),)),
    Attack("the promise of a meeting about records is added to one about whole owners or persons",
           "tests/meeting/test_found_schemas.py::test_a_records_promise_is_never_one_of_persons_or_owners",
           (Mend("dpmpc/records/origins.py", "return self.neighbours == neighbours or (self.neighbours == \"owner\"",
                 "return self.neighbours != \"\" or (self.neighbours == \"owner\""),)),
    Attack("what a meeting's promise holds under is lost when its schema is used",
           "tests/meeting/test_found_schemas.py::test_what_the_release_holds_under_is_said_with_it",
           (Mend("dpmpc/aggregation/plan/guarantee.py", "if assumptions else \"\"\n\n\ndef neighbours_of",
                 "if False else \"\"\n\n\ndef neighbours_of"),)),
    Attack("a schema's promise is lost where questions are asked by it, or rows are drawn",
           "tests/meeting/test_found_schemas.py::test_questions_rows_and_figures_by_a_found_schema_join_its_promise",
           (Mend("dpmpc/tables/stats.py", "        found=origin.found,\n", ""),)),
    Attack("a survey's own schema is used again, and what both promise is not said",
           "tests/local/test_schemas_used_again.py::test_every_reader_of_a_surveys_schema_joins_its_promise[machines]",
           (Mend("dpmpc/aggregation/plan/stages.py", "_found(plan, made.schema, released, opened)\n",
                 "made.schema\n"),)),
    Attack("the terminal and the officer's page leave out the release that found the schema",
           "tests/local/test_schemas_used_again.py::test_every_reader_of_a_surveys_schema_joins_its_promise[train]",
           (Mend("dpmpc/aggregation/plan/guarantee.py", '        "earlier": list(promise.earlier),\n', ""),)),
    # -- values of one record ------------------------------------------------------------------------------------------
    Attack("a schema's range makes features of some records no numbers",
           "tests/records/test_hostile_ranges.py::test_every_column_is_refused_or_its_records_are_in_the_unit_ball",
           (Mend("dpmpc/records/columns.py", "        _check_told_apart(self)\n", ""),)),
    Attack("a target at the end of the widest range is infinite",
           "tests/records/test_hostile_ranges.py::test_targets_lie_in_their_interval_however_wide_the_range",
           (Mend("dpmpc/records/targets.py", "2 * ((values - self.low) / (self.high - self.low)) - 1",
                 "2 * (values - self.low) / (self.high - self.low) - 1"),)),
    Attack("one huge value among a column's numbers is a warning of its own",
           "tests/intake/test_giving.py::test_no_value_is_a_warning_of_its_own",
           (Mend("dpmpc/intake/giving.py", "values / (np.abs(values).max() or 1.0)", "values"),)),
    # -- one book ------------------------------------------------------------------------------------------------------
    Attack("the officer's page reads the ledgers of one folder",
           "tests/dossier/test_page.py::test_the_page_reads_the_account_and_says_how"),
    Attack("another spelling of a name has a budget of its own",
           "tests/privacy/test_data_names.py::test_another_spelling_of_a_name_has_no_budget_of_its_own"),
    Attack("a budget is compared at another delta",
           "tests/privacy/test_data_names.py::test_a_budget_is_compared_at_its_own_delta_and_everything_is_said",
           (Mend("cli/budget.py", "delta if budget is None else budget[1]", "delta"),)),
    # -- defaults ------------------------------------------------------------------------------------------------------
    Attack("to say the iterations turns weights equal",
           "tests/planning/test_defaults.py::test_owners_weigh_by_their_sizes_unless_somebody_says_otherwise",
           (Mend("dpmpc/privacy/sensitivity.py",
                 "return said or (\"equal\" if len({int(size) for size in sizes}) == 1 else \"size\")",
                 "return said or \"equal\""),)),
    Attack("a default hangs on another setting",
           "tests/planning/test_defaults.py::test_the_draws_find_a_default_that_hangs_on_another_setting"),
    Attack("what equal weights cost in noise is not said before anything is spent",
           "tests/planning/test_defaults.py::test_it_is_said_before_anything_is_spent_on_every_surface",
           (Mend("dpmpc/aggregation/plan/guarantee.py", "    if plan.scale is not None:\n        return []\n    uneven",
                 "    if plan.scale is not None or plan:\n        return []\n    uneven"),)),
    # -- evidence ------------------------------------------------------------------------------------------------------
    Attack("noise is cut at some deviations",
           "tests/verify/test_tails_and_lags.py::test_a_cut_is_seen_where_the_line_says_and_no_further",
           (Mend("dpmpc/verify/tails.py", "float(bdtr(found, n, low))", "1.0"),)),
    Attack("noise is a sum of a few uniforms, or of another shape",
           "tests/verify/test_tails_and_lags.py::test_another_shape_is_seen_over_all_numbers_of_owners",
           (Mend("dpmpc/verify/tails.py", "        log_p = math.log(2 * len(_MOMENTS)) + bound(abs(total))\n",
                 "        log_p = 0.0\n"),)),
    Attack("a release is a public map of an earlier one",
           "tests/verify/test_tails_and_lags.py::test_a_release_that_is_a_public_map_of_others_is_seen",
           (Mend("dpmpc/verify/dependence.py",
                 "best = max(best, (_chaos(G[np.ix_(a, a)] * G[np.ix_(a + lag, a + lag)]), f\"{lag} places later\"))",
                 "best = max(best, (0.0, f\"{lag} places later\"))"),)),
    Attack("these tests are not among those that are run",
           "tests/verify/test_tails_and_lags.py::test_they_are_among_the_statistics",
           (Mend("dpmpc/verify/statistics.py", ", missing(tails_check(law, same), _TAIL)]", "]"),)),
    # -- who signs -----------------------------------------------------------------------------------------------------
    Attack("the authority signs a second key for a party",
           "tests/mpc/test_site_keys.py::test_a_second_key_that_the_authority_signs_for_a_party_is_nobodys"),
    Attack("an authority takes a party's place in a run",
           "tests/consortium/test_listed_keys.py::test_an_authority_that_takes_a_partys_place"),
    Attack("a kit that does without keys takes a site's list away",
           "tests/consortium/test_listed_keys.py::test_a_kit_that_does_without_keys_takes_no_list_away",
           (Mend("dpmpc/consortium/joining.py", "if (keys / LIST).exists():", "if False:"),)),
    Attack("a list of keys that names no plan is taken for any",
           "tests/mpc/test_site_keys.py::"
           "test_a_list_of_no_plan_is_none_and_one_of_another_plan_is_refused_wherever_a_plan_is_begun",
           (Mend("dpmpc/mpc/transport/site_keys.py", "if not _PLAN.fullmatch(f\"plan {self.plan}\"):",
                 "if not self.keys:"),)),
    Attack("a program's own party takes the list of keys of another plan",
           "tests/mpc/test_site_keys.py::"
           "test_a_list_of_no_plan_is_none_and_one_of_another_plan_is_refused_wherever_a_plan_is_begun",
           (Mend("dpmpc/mpc/transport/site_keys.py", "        found.check_plan(plan)\n", "        pass\n"),)),
    Attack("an account is several owners",
           "tests/aggregation/test_standing_of_accounts.py"),
    Attack("a run of several stages gives a cheat more tries than its plan is held to",
           "tests/aggregation/test_attempts_of_stages.py::"
           "test_stages_that_are_each_secure_enough_are_refused_where_all_are_not",
           (Mend("dpmpc/aggregation/plan/plan.py", "math.fsum(each.derived.undetected or 0.0 for each in",
                 "math.fsum(0.0 for each in"),)),
    # -- words and cells -----------------------------------------------------------------------------------------------
    Attack("an owner brings a sum half-way round, so that one record turns a sign",
           "tests/learning/test_naming.py::test_a_bound_that_does_not_go_round_would_be_seen"),
    Attack("who writes a plan says words that no release opened",
           "tests/synthesis/test_words_first.py::test_a_plan_says_no_word_that_no_release_could_have_opened",
           (Mend("dpmpc/learning/naming.py", "        _check_spelled(self.spelled)\n", ""),)),
    Attack("who writes a schema says names that a spreadsheet takes for formulas",
           "tests/synthesis/test_words_first.py::"
           "test_no_schema_and_no_plan_of_tables_takes_a_name_that_may_not_be_shown",
           (Mend("dpmpc/records/columns.py", "and not word.startswith((\"bucket \", \"=\", \"+\", \"-\", \"@\"))",
                 ""),)),
    Attack("signs that two neighbours turn are opened too often",
           "tests/aggregation/test_mutated_plans.py::test_a_bound_for_votes_that_is_too_low_would_be_caught"),
    Attack("an owner fills another's cells",
           "tests/statistics/test_own_cells.py::test_no_site_reaches_anothers_cells_whatever_it_sends[sharing]",
           (Mend("dpmpc/aggregation/party/adder.py", "return share if own is None else self._holder.kept(share, own)",
                 "return share"),)),
    # -- small ---------------------------------------------------------------------------------------------------------
    Attack("persons and owners of CSV files end a synthesis",
           f"{_UNITS}[synth-person-csv]",
           (Mend("dpmpc/records/persons.py", "len(owner_numbers(table, kept.owners)[1])",
                 "len(table.rows(f'DISTINCT \"{kept.owners}\"'))"),)),
    Attack("persons of JSON lines end everything",
           f"{_UNITS}[stats-person-jsonl]",
           (Mend("dpmpc/intake/files.py", "Column(name, quoted(name), \"VARCHAR\")",
                 "Column(name, f\"({quoted(name)} || '')\", \"VARCHAR\")"),)),
    Attack("labels of an estimator are texts and numbers",
           "tests/estimators/test_targets_of_texts.py::test_labels_of_mixed_types_end_in_one_line",
           (Mend("dpmpc/estimators/targets.py", "    if len({isinstance(value, str) for value in held}) > 1:\n",
                 "    if False:\n"),)),
    Attack("others of the machine read a run's page, verdict and figures",
           "tests/cli/test_private_files.py::test_what_commands_write_of_a_run_is_for_its_user_alone",
           (Mend("dpmpc/folders.py", "beside.touch(mode=0o666 if public else 0o600)", "beside.touch(mode=0o666)"),)),
    Attack("README's first model has an if in its promise",
           "tests/test_readme.py::test_every_command_of_the_readme_runs",
           (Mend("README.md", " --classes no --classes yes", ""),)),
    Attack("a site greets with a time that is no number, and clocks are said to agree",
           "tests/consortium/test_trying.py::test_clocks_ports_and_disks_are_told",
           (Mend("dpmpc/consortium/dry_run.py", "if not abs(ahead) <= _CLOCK", "if abs(ahead) > _CLOCK"),)),
    Attack("a process whose memory ends leaves records that were passing",
           "tests/processes/test_exhausted.py::test_a_process_without_memory_says_its_line_and_ends",
           (Mend("dpmpc/processes/exhausted.py", "        _spare.clear()\n", ""),)),
    Attack("a flood of callers from one address takes the places of others",
           "tests/mpc/test_listener.py::test_a_flood_from_one_address_takes_no_place_from_another"),
    Attack("a flood comes from all addresses of one IPv6 network",
           "tests/mpc/test_listener.py::test_nor_does_one_from_all_addresses_of_an_ipv6_network",
           (Mend("dpmpc/mpc/transport/listener.py", "network = ipaddress.IPv6Network((found, 64), strict=False)",
                 "network = found"),)),
    Attack("strangers fill a log with lines that differ",
           "tests/mpc/test_listener.py::test_the_log_names_so_many_strangers_and_everybody_else",
           (Mend("dpmpc/mpc/transport/listener.py", " or self._named <= MOST_NAMED", " or self._named"),)),
    Attack("each caller that speaks no TLS costs a connection",
           "tests/mpc/test_listener.py::test_no_tls_begins_for_callers_that_speak_none",
           (Mend("dpmpc/mpc/transport/listener.py", "if not first or (self._tls is not None and first != _TLS):",
                 "if not first:"),)),
)  # fmt: skip


def tree(folder: Path) -> Path:
    """A copy of this tree without what git leaves out, and with its compiled kernels."""
    asked = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(asked, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    kernels = [path.relative_to(ROOT).as_posix() for path in (ROOT / "dpmpc").rglob("*.so")]
    for name in [*names.strip("\0").split("\0"), *kernels]:
        if not (ROOT / name).exists():
            continue  # removed, and not yet committed
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def played(attack: Attack, copy: Path) -> tuple[bool, str]:
    """(whether the attack's test did as it has to with the mend taken out, its last line)."""
    whole = {mend.file: (copy / mend.file).read_text(encoding="utf-8") for mend in attack.mends}
    try:
        for mend in attack.mends:
            path = copy / mend.file
            path.write_text(mend.taken_out(path.read_text(encoding="utf-8")), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", attack.test]
        environment = {**os.environ, "PYTHONPATH": f"{copy}:{copy / 'experiments'}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=copy, env=environment, text=True, capture_output=True, check=False)
    finally:
        for name, text in whole.items():
            (copy / name).write_text(text, encoding="utf-8")
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    last = lines[-1] if lines else done.stderr.strip()[-200:].replace("\n", " ")
    # 1 is a test that failed; others are of pytest itself, which found no test, say
    return done.returncode == (0 if attack.itself else 1), last


def rows(attacks: Sequence[Attack]) -> Iterator[tuple[Attack, bool, str]]:
    """Each attack and what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = tree(Path(folder))
        for attack in attacks:
            yield (attack, *played(attack, copy))


def main(wanted: Sequence[str]) -> int:
    """The program."""
    chosen = [each for each in ATTACKS if not wanted or any(text in f"{each.what} {each.test}" for text in wanted)]
    bad = 0
    print("| attack | test | mend taken out | |\n| --- | --- | --- | --- |")
    for attack, seen, last in rows(chosen):
        bad += not seen
        how = "by the test itself" if attack.itself else ", ".join(sorted({f"`{mend.file}`" for mend in attack.mends}))
        said = ("shown" if attack.itself else "it fails") if seen else f"**NOT SEEN**: {last}"
        print(f"| {attack.what} | `{attack.test.rpartition('/')[2]}` | {how} | {said} |", flush=True)
    print(f"\n{len(chosen) - bad} of {len(chosen)} are seen")
    return 1 if bad or not chosen else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

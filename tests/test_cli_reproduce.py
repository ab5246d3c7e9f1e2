"""``equipoise reproduce`` and what all commands share: sentences, exit codes, nothing loaded."""

import signal
import subprocess
import sys
import time

import pytest

click = pytest.importorskip("click")
from click.testing import CliRunner  # noqa: E402  click is optional

from equipoise.cli.main import COMMANDS, main  # noqa: E402
from equipoise.exceptions import InvalidInputError  # noqa: E402
from equipoise.paper import (  # noqa: E402
    STUDIES,
    Claim,
    Finding,
    Reproduction,
    StudyOutcome,
    StudyStep,
)
from equipoise.paper.registry import NAMES, PARTS  # noqa: E402
from interrupts import heed_interrupts  # noqa: E402


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(main, list(arguments))


@pytest.fixture
def studies(monkeypatch):
    """A stand-in for the studies that can be told how to end."""

    class Studies:
        def __init__(self):
            self.error, self.calls = None, []

        def __call__(self, names, *, progress, **options):
            self.calls.append((names, options))
            progress(StudyStep("synthetic", 0, 2))
            progress(StudyStep("synthetic", 1, 2, "unit"))
            if self.error is not None:
                raise self.error
            claims = [
                Claim(
                    "here", f"claim {i}", {"exact": Finding(i > 0, ""), "text": Finding(True, "")}
                )
                for i in range(3)
            ]
            outcome = StudyOutcome("synthetic", "Title", tuple(claims), "no data for half of it")
            return Reproduction((outcome,), f"{options['out']}/README.md")

    stand_in = Studies()
    monkeypatch.setattr("equipoise.paper.runner.reproduce", stand_in)
    return stand_in


def _fresh(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_lists_every_command_and_loads_nothing_heavy():
    code = """
import sys
from equipoise.cli import main
sys.argv = ["equipoise", "--help"]
try:
    main()
except SystemExit as end:
    print("code", end.code)
print(*sys.modules)
"""
    done = _fresh(code)
    shown, modules = done.stdout.split("code 0")
    for name in COMMANDS:
        assert f"  {name} " in shown
    assert not {"numpy", "sklearn", "scipy", "matplotlib", "pandas"} & set(modules.split())


def test_help_of_reproduce_names_the_studies_and_loads_nothing_heavy():
    code = """
import sys
from equipoise.cli import main
sys.argv = ["equipoise", "reproduce", "--help"]
try:
    main()
except SystemExit:
    print(*sys.modules)
"""
    done = _fresh(code)
    for name in NAMES:
        assert name in done.stdout
    assert "--debug" in done.stdout
    assert "numpy" not in done.stdout.split()


def test_the_list_says_which_study_makes_which_figure_or_table(run):
    done = run("reproduce", "--list")
    assert done.exit_code == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    for part, study in PARTS.items():
        assert part in lines[study]
    assert set(STUDIES) < set(lines)


def test_names_of_studies_figures_and_tables_are_completed():
    from click.shell_completion import ShellComplete

    complete = ShellComplete(main, {}, "equipoise", "_EQUIPOISE_COMPLETE")
    found = complete.get_completions(["reproduce"], "figure-")
    assert [item.value for item in found] == [name for name in NAMES if name.startswith("figure-")]
    assert {item.value for item in complete.get_completions(["reproduce"], "")} == set(NAMES)


def test_a_figure_may_be_asked_for_as_the_paper_calls_it(run, studies):
    assert run("reproduce", "figure-2", "shift").exit_code == 0
    assert studies.calls[0][0] == ("figure-2", "shift")


def test_without_click_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['click'] = None\nfrom equipoise.cli import main; main()"
    done = _fresh(code)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == "Error: the command line needs click: pip install 'equipoise[cli]'\n"


def test_the_module_runs_as_a_command():
    command = [sys.executable, "-m", "equipoise.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("equipoise")


def test_options_reach_the_studies(run, studies):
    done = run(
        "reproduce", "rates", "shift", "--quick", "-o", "there", "--seed", "7", "--data", "d"
    )
    assert done.exit_code == 0
    assert studies.calls == [
        (
            ("rates", "shift"),
            {"quick": True, "seed": 7, "out": "there", "data": "d", "from_records": False},
        )
    ]
    assert run("reproduce", "--from-records").exit_code == 0
    assert studies.calls.pop()[1]["from_records"] is True
    assert run("reproduce").exit_code == 0
    assert studies.calls[1][0] is None


def test_the_result_is_told_in_lines_and_what_is_missing_as_a_warning(run, studies):
    done = run("reproduce", "--out", "there")
    assert "2 of the paper's 3 claims held" in done.stdout and "there/README.md" in done.stdout
    assert "Warning: synthetic: no data for half of it" in done.stderr
    # In a pipe there are no bars.
    assert "%" not in done.output


def test_a_study_without_claims_of_the_papers_counts_its_own(run, monkeypatch):
    claims = [
        Claim("beyond the paper", "much", {"exact": Finding(held, "")}) for held in (True, False)
    ]
    done = Reproduction((StudyOutcome("fashion", "Title", tuple(claims)),), "README.md")
    monkeypatch.setattr("equipoise.paper.runner.reproduce", lambda *names, **options: done)
    shown = run("reproduce", "fashion").stdout
    assert "1 of 2 claims held when solved exactly; none is the paper's." in shown


def test_findings_that_hang_on_a_reading_are_counted(run, monkeypatch):
    found = {"exact": Finding(True, "")}
    claims = [
        Claim("here", "much", found, "a tenth", {"a half": {"exact": Finding(held, "")}})
        for held in (True, False)
    ]
    outcome = StudyOutcome("synthetic", "Title", tuple(claims))
    monkeypatch.setattr(
        "equipoise.paper.runner.reproduce",
        lambda names, **options: Reproduction((outcome,), "page"),
    )
    assert "1 of these findings depend on how the claim is read." in run("reproduce").stdout


def test_quiet_says_nothing(run, studies):
    assert run("reproduce", "--quiet").output == ""


def test_an_unknown_study_names_the_known_ones(run):
    done = run("reproduce", "figure2")
    assert done.exit_code == 2
    assert "'figure2' is not one of" in done.stderr
    for name in NAMES:
        assert name in done.stderr


@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["--seed", "x"], ["--nonsense"]])
def test_wrong_usage_is_exit_code_two(run, arguments):
    assert run("reproduce", *arguments).exit_code == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvalidInputError("the file is\nhalf"), "Error: the file is half\n"),
        (PermissionError(13, "Permission denied", "/out"), "Error: Permission denied: '/out'\n"),
        (FileNotFoundError("Covertype is not here."), "Error: Covertype is not here.\n"),
        (ZeroDivisionError("oops"), "Error: ZeroDivisionError: oops (this is a bug; --debug shows"),
    ],
)
def test_errors_are_one_sentence_and_exit_code_one(run, studies, error, words):
    studies.error = error
    done = run("reproduce")
    assert done.exit_code == 1
    assert done.stderr.startswith(words) and done.stderr.count("\n") == 1
    assert not done.stdout and "Traceback" not in done.output


@pytest.mark.parametrize("arguments", [["--debug", "reproduce"], ["reproduce", "--debug"]])
def test_debug_shows_where_it_happened(run, studies, arguments):
    studies.error = InvalidInputError("half")
    done = run(*arguments)
    assert done.exception is studies.error


def test_an_interruption_is_exit_code_130_and_says_that_work_is_kept(run, studies):
    studies.error = KeyboardInterrupt()
    done = run("reproduce")
    assert done.exit_code == 130
    assert done.stderr == "Interrupted. What was finished is kept.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for a single process")
def test_a_real_interruption_keeps_finished_units_and_the_next_run_uses_them(tmp_path):
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-m", "equipoise.cli", "reproduce", "rates", "--quick"]
    command += ["--out", str(tmp_path)]
    pipes = {"stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, preexec_fn=heed_interrupts, **pipes)  # noqa: PLW1509
    _wait_for(lambda: list(tmp_path.glob(".units/rates-*.json")) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and said == "Interrupted. What was finished is kept.\n"
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.glob(".units/rates-*.json")}
    assert kept and not (tmp_path / "rates").exists()
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "rates" / "README.md").is_file()
    assert {file: file.stat().st_mtime_ns for file in kept} == kept


def _wait_for(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


def test_a_place_that_cannot_be_written_is_a_sentence(run, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("")
    done = run("reproduce", "rates", "--quick", "--out", str(tmp_path / "file" / "results"))
    assert done.exit_code in (1, 2)
    assert "file" in done.stderr and "Traceback" not in done.output


def test_a_data_path_that_is_not_there_is_a_sentence(run, tmp_path):
    pytest.importorskip("matplotlib")
    place = tmp_path / "absent"
    done = run("reproduce", "covertype", "--data", str(place), "--out", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert (
        done.stderr.startswith("Error: path must be a Covertype file") and "absent" in done.stderr
    )


@pytest.mark.parametrize("quick", [True, False])
def test_the_quick_version_does_not_speak_of_the_papers_training(run, studies, quick):
    shown = run("reproduce", *(["--quick"] if quick else [])).stdout
    assert ("how a shortened form of the paper's training fared" in shown) == quick


def test_warnings_are_one_line(run, monkeypatch):
    import warnings

    def warn(names, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("the worst case\nrests on few rows", UserWarning, stacklevel=1)
        return Reproduction((), "page")

    monkeypatch.setattr("equipoise.paper.runner.reproduce", warn)
    assert "Warning: the worst case rests on few rows\n" in run("reproduce").stderr


def test_an_unknown_command_is_exit_code_two(run):
    done = run("nonsense")
    assert done.exit_code == 2 and "nonsense" in done.stderr


def test_every_command_loads_and_takes_debug(run):
    for name in COMMANDS:
        done = run(name, "--help")
        assert done.exit_code == 0, name
        assert "--debug" in done.stdout
